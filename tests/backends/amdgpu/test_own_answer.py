"""The compiler's own answer to LLVM IR: the registers, and the code, of llc's own compile."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.backends.amdgpu.machine_ir import RAW, ROWS
from tests.sampling import few_rows, some_of
from verilocc_bench.allocators import BUILT_IN, Request
from verilocc_bench.backends.amdgpu.compare import compare
from verilocc_bench.backends.amdgpu.kernel import MachineKernel, read_kernels
from verilocc_bench.backends.amdgpu.label import compiler_answer
from verilocc_bench.backends.amdgpu.lower import code_input, lower, run_llc_on, write_answer
from verilocc_bench.backends.kernel import ComparedAllocation, ReadOptions
from verilocc_bench.dataset import Row
from verilocc_bench.edits import Answer
from verilocc_bench.errors import InputError
from verilocc_bench.verification import FastVerifier

pytestmark = pytest.mark.slow

Llc = Callable[..., str]
ARCHITECTURES = ("gfx90a", "gfx942")
KERNELS = sorted(Path(__file__).parent.joinpath("kernels").glob("*.ll"))
CONTRADICTED = "llc's own assignment contradicts the printed machine IR"
CONVENTION = "-enable-ipra=0"
LOOP = Path(__file__).parent / "kernels" / "divergent_loop.ll"


def ir_of(row: Row) -> str:
    """The LLVM IR in a row's machine IR, which llc compiles like any other."""
    return textwrap.dedent(RAW[row.id].partition("--- |\n")[2].partition("\n...\n")[0])


def kernels_of(text: str, arch: str) -> list[MachineKernel]:
    found = read_kernels(text.encode(), Path("own.ll"), ReadOptions(arch))
    return [kernel for _, kernel in found if not isinstance(kernel, str)]


def check_all(text: str, arch: str, llc: Llc) -> list[str]:
    """Checks each answer of llc in a file; gives what llc says where it has none."""
    absent = []
    expected = llc(text, arch, "-O3", CONVENTION)
    for kernel in kernels_of(text, arch):
        try:
            label, source = compiler_answer(kernel)
        except InputError as error:
            absent.append(error.message)
            continue
        assert source.startswith("llvm-greedy 22.")
        assert FastVerifier(kernel.problem).verify(label).valid
        assert lower(kernel, Answer(label), Path("own.s")).data == expected.encode()
    return absent


# Each answer compiles its whole file again, and with_calls.ll has fifteen functions.
*SMALL, LARGE = KERNELS


@pytest.mark.parametrize(
    "case",
    [
        *some_of(itertools.product(SMALL, ARCHITECTURES), 9),
        *(pytest.param((LARGE, arch), marks=pytest.mark.exhaustive) for arch in ARCHITECTURES),
    ],
    ids=lambda case: f"{case[0].stem}-{case[1]}",
)
def test_small_kernels(case: tuple[Path, str], llc: Llc) -> None:
    path, arch = case
    for absence in check_all(path.read_text(), arch, llc):
        assert absence.startswith(("llc splits live ranges: ", CONTRADICTED))


# Some rows' IR has what only the first half of a compile makes; llc does not compile it again.
COMPILED_AGAIN = [row for row in ROWS if not re.search(r"llvm\.amdgcn\.(if|loop)\b", ir_of(row))]


@pytest.mark.parametrize(
    "row", few_rows(COMPILED_AGAIN), ids=lambda row: f"{row.arch}-{row.kernel}-{row.id}"
)
def test_kernels_of_the_dataset(row: Row, llc: Llc) -> None:
    text = ir_of(row)
    assert llc(text, row.arch, "-O3") == llc(text, row.arch, "-O3", CONVENTION)
    assert check_all(text, row.arch, llc) == []


@pytest.mark.parametrize("arch", some_of(ARCHITECTURES))
def test_registers_that_parsed_text_gets_are_others(arch: str, llc: Llc) -> None:
    """The machine IR alone has another answer: llc no longer knows all that it knew."""
    text = LOOP.read_text()
    (kernel,) = kernels_of(text, arch)
    parsed = llc(kernel.code.text, arch, "-O3", "-x", "mir", "-start-before=greedy")
    assert parsed != llc(text, arch, "-O3")
    assert check_all(text, arch, llc) == []


def test_other_answers_go_through_machine_ir() -> None:
    (kernel,) = kernels_of(LOOP.read_text(), "gfx942")
    other = BUILT_IN["linear-scan"].allocate(Request(kernel.problem))
    label, _ = compiler_answer(kernel)
    assert other.assignment != label
    own, written = (
        code_input(kernel, answer, write_answer(kernel, answer))
        for answer in (Answer(label), other)
    )
    assert (own.file_name, own.text) == ("kernel.ll", LOOP.read_text())
    assert written.file_name == "kernel.mir"
    assert run_llc_on(kernel, own, "obj") != run_llc_on(kernel, written, "obj")


def test_a_comparison_is_with_llcs_own_code(llc: Llc) -> None:
    text = LOOP.read_text()
    (kernel,) = kernels_of(text, "gfx942")
    label, source = compiler_answer(kernel)
    sides = (ComparedAllocation("answer", None), ComparedAllocation(source, Answer(label)))
    files = compare(kernel, sides, with_files=True).files
    expected = llc(text, "gfx942", "-O3").encode()
    for folder in ("answer", "other"):
        assert files[f"{folder}/kernel.s"] == expected
        assert files[f"{folder}/kernel.ll"] == text
    assert "kernel.ll -o kernel.s" in str(files["commands.sh"])
