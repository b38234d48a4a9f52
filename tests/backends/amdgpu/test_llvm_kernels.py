"""Machine IR as LLVM writes it, of kernels that use everything the targets have."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sampling import some_of
from verilocc_bench.backends.amdgpu.kernel import read_kernel
from verilocc_bench.backends.amdgpu.mir_gate import normalized_problem
from verilocc_bench.backends.amdgpu.normalize import normalize_machine_function
from verilocc_bench.backends.amdgpu.read import parse_mir
from verilocc_bench.backends.kernel import ReadOptions
from verilocc_bench.errors import InputError
from verilocc_bench.ir import parse_function, print_function
from verilocc_bench.targets import get_target
from verilocc_bench.targets.amdgpu_sub_registers import SUB_REGISTERS

KERNELS = sorted(Path(__file__).parent.joinpath("kernels").glob("*.ll"))
ARCHITECTURES = ("gfx90a", "gfx942")
REFUSED = {
    "whole_wave": r"mir:\d+: whole-wave mode is not supported: ENTER_STRICT_WWM",
}
Llc = Callable[..., str]


def normalized(text: str, arch: str) -> dict[str, str]:
    module = parse_mir(text, "x.mir")
    texts = {}
    for machine in module.functions:
        try:
            target = get_target(arch)
            _, problem = normalized_problem(text, machine, module, target, source="x.mir")
        except InputError as error:
            texts[machine.name] = str(error)
        else:
            texts[machine.name] = problem.normalized
    return texts


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda path: path.stem)
def test_normalizes_or_refuses_by_name(kernel: Path, arch: str, llc: Llc) -> None:
    mir = llc(kernel.read_text(), arch, "-stop-before=greedy")
    texts = normalized(mir, arch)
    assert len(texts) == len(re.findall("^define", kernel.read_text(), re.MULTILINE))
    for name, text in texts.items():
        if name in REFUSED:
            assert re.search(REFUSED[name], text)
        else:
            assert print_function(parse_function(text)) == text


@pytest.mark.parametrize("kernel", some_of(KERNELS, 4), ids=lambda path: path.stem)
def test_inferred_successors_are_those_of_llvm(kernel: Path, llc: Llc) -> None:
    source = kernel.read_text()
    full = llc(source, "gfx942", "-stop-before=greedy")
    simple = llc(source, "gfx942", "-stop-before=greedy", "-simplify-mir")
    plain = {n: t for n, t in normalized(full, "gfx942").items() if n not in REFUSED}
    short = {n: t for n, t in normalized(simple, "gfx942").items() if n not in REFUSED}
    assert plain == short


@pytest.mark.parametrize("kernel", some_of(KERNELS, 4), ids=lambda path: path.stem)
def test_renumbering_leaves_the_text(kernel: Path, llc: Llc) -> None:
    mir = llc(kernel.read_text(), "gfx942", "-stop-before=greedy")
    start = mir.index("\n...\n")
    ids = list(range(4096))
    random.Random(7).shuffle(ids)
    module, functions = mir[:start], mir[start:]
    functions = re.sub(r"(?<=%)\d+\b", lambda m: str(ids[int(m[0])]), functions)
    functions = re.sub(r"(?<=- \{ id: )\d+(?=, class)", lambda m: str(ids[int(m[0])]), functions)
    before, after = normalized(mir, "gfx942"), normalized(module + functions, "gfx942")
    assert before == after


def test_names_in_quotes_find_their_attributes(llc: Llc) -> None:
    kernel = Path(__file__).parent / "kernels" / "functions.ll"
    module = parse_mir(llc(kernel.read_text(), "gfx942", "-stop-before=greedy"))
    names = ["many", "a name: with 'quotes', # and \\", "123", "a-b é"]
    assert [f.name for f in module.functions] == names
    assert all(module.attributes[name]["target-cpu"] == "gfx942" for name in names)
    assert [module.calling_conventions[name] for name in names] == ["ccc", *["amdgpu_kernel"] * 3]
    for machine in module.functions[1:]:
        function = normalize_machine_function(machine, module, get_target("gfx942")).function
        assert function.file("v").count == 256  # that of 256 threads


def test_parts_of_tuples(llc: Llc) -> None:
    kernel = Path(__file__).parent / "kernels" / "tuples.ll"
    mir = llc(kernel.read_text(), "gfx942", "-stop-before=greedy")
    named = set(re.findall(r"%\d+\.(lo16_hi16\w+)", mir))
    assert {SUB_REGISTERS[name].count for name in named} == {7, 12}
    texts = normalized(mir, "gfx942")
    assert re.search(r"\.0-6\b", texts["vectors"])
    assert re.search(r"\.0-11\b", texts["scalars"])


@pytest.mark.usefixtures("llc")
def test_lines_of_what_llc_makes_are_not_those_of_a_file() -> None:
    path = Path(__file__).parent / "whole_wave.ll"
    with pytest.raises(InputError, match=r"wave\.ll: .*, in line \d+ of the machine IR that llc"):
        read_kernel(path.read_bytes(), path, ReadOptions("gfx942"))


def test_mutated_files_raise_nothing_but_input_errors(llc: Llc) -> None:
    kernel = Path(__file__).parent / "kernels" / "inline_assembly.ll"
    mir = llc(kernel.read_text(), "gfx942", "-stop-before=greedy", "-simplify-mir")
    generator = random.Random(1)
    for _ in range(600):
        start = generator.randrange(mir.index("registers:"), len(mir))
        end = start + generator.choice([1, 2, 9, 90])
        piece = mir[start:end]
        junk = generator.choice(["²", "9" * 5000, "/*", "(", '"', "%bb.", " :: ", "\r", "\0", "\n"])
        mutant = generator.choice(
            [
                mir[:start],
                mir[:start] + mir[end:],
                mir[:start] + 2 * piece + mir[end:],
                mir[:start] + mir[end : end + 9] + piece + mir[end + 9 :],
                mir[:start] + junk + mir[end:],
            ]
        )
        try:
            module = parse_mir(mutant, "x.mir")
            for machine in module.functions:
                normalize_machine_function(machine, module, get_target("gfx942"), source="x.mir")
        except InputError as error:
            assert error.line is not None  # noqa: PT017
            assert error.source == "x.mir"  # noqa: PT017
