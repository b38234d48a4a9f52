"""LLVM's machine verifier on assigned machine IR: classes, alignment, encodings.

The registers of an answer are written into the compiler's own machine IR,
and LLVM says whether every instruction may have them. It does not say
whether they hold the right values: liveness is not tracked here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import pytest

from tests.sampling import few_rows
from verilocc_bench.allocators import BUILT_IN, Request
from verilocc_bench.analysis import AllocationProblem, parse_register_name
from verilocc_bench.backends.amdgpu.normalize import normalize_machine_function
from verilocc_bench.backends.amdgpu.read import parse_mir
from verilocc_bench.dataset import RawRow, Row, embedded_path, load_rows, read_parquet
from verilocc_bench.edits import assignment_alone
from verilocc_bench.targets.amdgpu_sub_registers import SUB_REGISTERS
from verilocc_bench.verification import FastVerifier, FindingKind

pytestmark = pytest.mark.slow

ROWS = [row for row in load_rows("mini").rows if row.arch.startswith("gfx")]
RAW = {
    raw.id: raw.content
    for path in embedded_path().glob("raw/data/*/*/*.parquet")
    for raw in read_parquet(path, RawRow)
}
NAMES = {"v": "vgpr", "a": "agpr", "s": "sgpr"}
VIRTUAL = re.compile(r"%(\d+)(?:\.(sub\w+))?(?::\w+)?(?:\((?:s|p)\d+\))?(?![\w.])")


def physical(file: str, first: int, count: int) -> str:
    if file == "vcc":
        return "$vcc" if count == 2 else ("$vcc_lo", "$vcc_hi")[first]
    return "$" + "_".join(f"{NAMES[file]}{first + index}" for index in range(count))


def assigned(row: Row, problem: AllocationProblem, answer: Mapping[str, str]) -> str:
    """The row's machine IR with the answer's registers instead of virtual ones."""
    text = RAW[row.id]
    module = parse_mir(text)
    normalized = normalize_machine_function(module.functions[0], module, problem.target)
    numbers = {name[1:]: number for number, name in enumerate(normalized.original_names)}

    def replace(match: re.Match[str]) -> str:
        number = numbers[match[1]]
        base = parse_register_name(problem.target, answer[f"%{number}"])
        lanes = SUB_REGISTERS[match[2]] if match[2] else None
        width = problem.function.virtual_registers[number].width
        first, count = (lanes.first, lanes.count) if lanes else (0, width)
        assert base is not None
        return physical(base.file, base.index + first, count)

    head, body = text.split("\nbody:")
    start = head.rindex("\nregisters:")
    rest = re.sub(r", virtual-reg: '[^']*'", "", head[head.index("\nliveins:", start) :])
    head = head[:start] + "\nregisters: []" + rest
    head = re.sub(r"noVRegs: +false", "noVRegs: true", head)
    head = re.sub(r"tracksRegLiveness: true", "tracksRegLiveness: false", head)
    body = re.sub(r"(?m)^(\s+)undef (\$)", r"\1\2", VIRTUAL.sub(replace, body))
    return f"{head}\nbody:{body}"


OPTIONS = ("-x", "mir", "-run-pass=none", "-verify-machineinstrs")


@pytest.mark.parametrize("model", ["compiler", "linear-scan", "graph-coloring"])
@pytest.mark.parametrize("row", few_rows(ROWS), ids=lambda row: f"{row.arch}-{row.kernel}-{row.id}")
def test_llvm_accepts_the_registers_of_valid_answers(
    row: Row, model: str, llc: Callable[..., str]
) -> None:
    problem = AllocationProblem.from_text(row.normalized)
    answer = BUILT_IN[model].allocate(Request(problem, label=row.label))
    llc(assigned(row, problem, assignment_alone(answer)), row.arch, *OPTIONS)


def test_llvm_refuses_what_is_misaligned_or_in_the_wrong_file(llc: Callable[..., str]) -> None:
    row = ROWS[0]
    problem = AllocationProblem.from_text(row.normalized)
    assert row.label is not None
    classes = problem.function.virtual_registers
    pair = next(f"%{n}" for n, c in enumerate(classes) if c.name == "V2")
    single = next(f"%{n}" for n, c in enumerate(classes) if c.name == "V")
    for key, name, kind in (
        (pair, "v101", FindingKind.MISALIGNED),
        (single, "a7", FindingKind.WRONG_CLASS),
    ):
        answer = {**row.label, key: name}
        verdict = FastVerifier(problem).verify(answer)
        assert kind in {finding.kind for finding in verdict.findings}
        with pytest.raises(AssertionError, match="Machine code for function"):
            llc(assigned(row, problem, answer), row.arch, *OPTIONS)
