"""Jumps through tables, branches on an operand, and rare operations, as ptxas writes them.

What ptxas cannot be made to write is a patched word: nvdisasm's own life ranges, the
gate of every cubin, say whether it is read as NVIDIA reads it.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks.timing_operations import registers_of
from tests.backends.nvidia.assembled_kernels import (
    LOOP,
    assembled,
    embedded,
    entry,
    linear_scan,
    lowered_kernel,
    module,
    normalized,
    permuted,
)
from tests.backends.nvidia.test_kept_apart import model_of
from tests.sampling import some_of
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.backends.nvidia.cubin import read_cubin
from verilocc_bench.backends.nvidia.normalize import NormalizedSass
from verilocc_bench.backends.nvidia.read import disassembled_function
from verilocc_bench.backends.nvidia.records import SassInstruction
from verilocc_bench.dataset import load_rows
from verilocc_bench.ir import Assignment
from verilocc_bench.verification import FastVerifier
from verilocc_bench.verification.verifier import IndependentVerifier

pytestmark = pytest.mark.slow

_LOADS = """
    ld.param.u64 %d1, [data]; mov.u32 %r2, %tid.x; mul.wide.u32 %d2, %r2, 4;
    cvta.to.global.u64 %d1, %d1; add.u64 %d3, %d1, %d2;
    ld.global.u32 %r3, [%d3]; ld.global.u32 %r4, [%d3+512]; ld.global.u32 %r5, [%d3+1024];
    ld.global.u32 %r6, [%d3+2048]; ld.global.u32 %r7, [%d3+2052];
    ld.global.u32 %r8, [%d3+2056]; ld.global.u32 %r9, [%d3+2060];
    mov.b32 %f1, %r6; mov.b32 %f2, %r7; mov.b32 %f3, %r8; mov.b32 %f4, %r9;
"""


def kernel(code: str) -> str:
    return module(entry("k", f"{_LOADS}{code}\n"))


_WAYS = 8
TABLE = kernel(
    "and.b32 %r10, %r3, 7;\nts: .branchtargets "
    + ", ".join(f"L{way}" for way in range(_WAYS))
    + ";\nbrx.idx %r10, ts;\n"
    + "".join(
        f"L{way}: mul.lo.u32 %r11, %r4, {way + 3}; st.global.u32 [%d3+{4 * way}], %r5;\n"
        + ("bra.uni D;\n" if way + 1 < _WAYS else "")
        for way in range(_WAYS)
    )
    + "D: add.u32 %r12, %r11, %r6; st.global.u32 [%d3], %r12;"
)


def _products(kind: str, result: str, lines: list[str]) -> str:
    """A kernel of sparse matrix products, each of the result of the one before."""
    names = [f"%{result}{number}" for number in range(5, 9)]
    stores = "".join(
        f"st.global.b32 [%d3+{4 * number}], {name};\n" for number, name in enumerate(names)
    )
    start = "".join(f"mov.b32 {name}, %r{number};\n" for number, name in enumerate(names, 6))
    made = "".join(
        f"mma.sp.sync.aligned.{shape}.row.col.{kind}.{types} "
        f"{{{found}}}, {{{a}}}, {{{b}}}, {{{found}}}, %r7, 0x0;\n"
        for shape, types, a, b in (line.split(" ") for line in lines)
        for found in [",".join(names[: 2 if kind == "f16" else 4])]
    )
    return kernel(".reg .b32 %q<20>;\n" + start + made + stores)


_TWO, _FOUR = "%r3,%r4", "%r3,%r4,%r5,%r6"
_B2, _B4 = "%r5,%r6", "%r5,%r6,%r8,%r9"
KERNELS = {
    "table": TABLE,
    "movmatrix": kernel(
        "movmatrix.sync.aligned.m8n8.trans.b16 %r10, %r3; st.global.u32 [%d3], %r10;"
    ),
    "comparison of halves": kernel("set.lt.u32.f16x2 %r10, %r3, %r4; st.global.u32 [%d3], %r10;"),
    "sparse f32": _products(
        "f32",
        "f",
        [
            f"m16n8k16 f16.f16.f32 {_TWO} {_B2}",
            f"m16n8k32 f16.f16.f32 {_FOUR} {_B4}",
            f"m16n8k16 bf16.bf16.f32 {_TWO} {_B2}",
            f"m16n8k32 bf16.bf16.f32 {_FOUR} {_B4}",
            f"m16n8k8 tf32.tf32.f32 {_TWO} {_B2}",
            f"m16n8k16 tf32.tf32.f32 {_FOUR} {_B4}",
        ],
    ),
    "sparse f16": _products(
        "f16",
        "q",
        [f"m16n8k16 f16.f16.f16 {_TWO} {_B2}", f"m16n8k32 f16.f16.f16 {_FOUR} {_B4}"],
    ),
    "sparse integers": _products(
        "s32",
        "q",
        [
            f"m16n8k32 s8.s8.s32 {_TWO} {_B2}",
            f"m16n8k64 s8.u8.s32 {_FOUR} {_B4}",
            f"m16n8k64 s4.s4.s32 {_TWO} {_B2}",
            f"m16n8k128 u4.s4.s32 {_FOUR} {_B4}",
        ],
    ),
}


def round_trip(cubin: bytes) -> NormalizedSass:
    """Writes three assignments into a cubin; the patched code is the renamed problem."""
    problem = normalized(cubin)
    question = AllocationProblem(problem.function)
    own = {f"%{number}": f"{base.file}{base.index}" for number, base in problem.assignment.items()}
    assert FastVerifier(question).verify(own).valid
    assert IndependentVerifier(question).verify(own).valid
    assert lowered_kernel(cubin, problem, problem.assignment).data == cubin
    answers: list[Assignment] = [permuted(problem, 1), linear_scan(problem)]
    for answer in answers:
        lowered = lowered_kernel(cubin, problem, answer)
        assert lowered.changed_instructions
        assert normalized(lowered.data).function == problem.function
    assert lowered_kernel(cubin, problem, answers[0]).runnable
    return problem


@pytest.mark.parametrize("name", some_of(KERNELS, 6))
def test_round_trip(name: str) -> None:
    round_trip(assembled(KERNELS[name]))


def test_a_table_has_all_its_ways_in_every_view() -> None:
    cubin = assembled(TABLE)
    (block,) = [b for b in normalized(cubin).function.blocks if len(b.successors) > 2]
    assert len(block.successors) == _WAYS
    assert block.instructions[-1].opcode == "BRX"
    function = disassembled_function(cubin, "<cubin>", "k")
    model = model_of(function)
    assert model.destroyed(registers_of(function)) == []
    (jump,) = [each for each in function.instructions if each.table]
    ways = {function.labels[label] for label in jump.table}
    assert len(ways) == _WAYS
    assert ways <= {
        step.place for each in model._schedules for step in each if step.part == "issue"
    }


def patched(change: Callable[[SassInstruction], int | None], cubin: bytes) -> bytes:
    """The cubin with the first word that `change` changes."""
    name = read_cubin(cubin).kernel(None).name
    for instruction in disassembled_function(cubin, "<cubin>", name).instructions:
        word = change(instruction)
        if word is not None:
            old = instruction.encoding.to_bytes(16, "little")
            assert cubin.count(old) == 1
            return cubin.replace(old, word.to_bytes(16, "little"))
    raise AssertionError("nothing to patch")


def test_a_branch_on_an_operand() -> None:
    """Bits 87 to 90 of a branch are the predicate; ptxas leaves it to be PT."""

    def change(instruction: SassInstruction) -> int | None:
        if instruction.opcode != "BRA" or instruction.guard is None:
            return None
        other = (instruction.guard.index + 1) % 2
        return instruction.encoding & ~(7 << 87) | other << 87

    problem = round_trip(patched(change, assembled(LOOP)))
    instructions = [each for _, _, each in problem.function.instructions()]
    (branch,) = [each for each in instructions if each.opcode == "BRA" and each.uses]
    assert len(branch.uses) == 2
    assert branch.guard is None


@pytest.mark.exhaustive
def test_a_move_to_a_uniform_register_that_sets_a_predicate() -> None:
    """Bits 81 to 83 are the predicate: NVIDIA's life ranges show it as written."""

    def change(instruction: SassInstruction) -> int | None:
        if instruction.opcode != "R2UR":
            return None
        return instruction.encoding & ~(7 << 81) | 6 << 81

    rows = [row for row in load_rows("mini").rows if "=R2UR " in row.normalized]
    problem = round_trip(patched(change, embedded(min(rows, key=lambda row: row.n_instructions))))
    instructions = [each for _, _, each in problem.function.instructions()]
    (move,) = [i for i in instructions if i.opcode == "R2UR" and len(i.definitions) == 2]
    assert move.uses
