"""Subroutines as ptxas makes them, against NVIDIA's life ranges by context, and written back."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.backends.nvidia.assembled_kernels import SUBROUTINES, assembled, linear_scan, permuted
from tests.backends.nvidia.assembly import assemble, encoded
from tests.sampling import in_turns
from verilocc_bench.allocators import answer_from_assignment
from verilocc_bench.backends.kernel import ReadOptions
from verilocc_bench.backends.nvidia import context_code, flow
from verilocc_bench.backends.nvidia.context_code import copies_of, with_contexts
from verilocc_bench.backends.nvidia.cubin import read_cubin
from verilocc_bench.backends.nvidia.kernel import SassKernel, read_kernel
from verilocc_bench.backends.nvidia.life_range_gate import check_marks
from verilocc_bench.backends.nvidia.life_ranges import LifeRanges, parse_life_ranges
from verilocc_bench.backends.nvidia.read import disassembled_function, load_kernel
from verilocc_bench.backends.nvidia.tools import life_ranges
from verilocc_bench.backends.nvidia.write_back import write_assignment
from verilocc_bench.errors import RejectedKernel
from verilocc_bench.ir import PhysicalRegister
from verilocc_bench.verification import FastVerifier, IndependentVerifier

ARCHITECTURES = ("sm_80", "sm_90")
SOURCE = Path("subroutines.cubin")
sm_80_first = pytest.mark.parametrize(
    "architecture", ["sm_80", pytest.param("sm_90", marks=pytest.mark.exhaustive)]
)


def cubin(architecture: str) -> bytes:
    return assembled(SUBROUTINES, architecture)


@cache
def kernel(data: bytes, name: str) -> SassKernel:
    return read_kernel(data, SOURCE, ReadOptions(function=name))


@pytest.mark.parametrize(("name", "architecture"), in_turns(["ratios", "says"], ARCHITECTURES))
def test_the_label_is_valid_and_written_back_byte_by_byte(name: str, architecture: str) -> None:
    data = cubin(architecture)
    subject = kernel(data, name)
    assert subject.label is not None
    for verifier in (FastVerifier(subject.problem), IndependentVerifier(subject.problem)):
        assert verifier.verify(subject.label).valid
    same = write_assignment(subject.code, subject.code.normalized.assignment)
    assert (same.data, same.hazards_before) == (data, 0)


@sm_80_first
def test_other_registers_leave_the_text(architecture: str) -> None:
    subject = kernel(cubin(architecture), "ratios")
    assert len(copies_of(flow.control_flow(subject.code.function))) == 7
    normalized = subject.code.normalized
    assignment = linear_scan(normalized)
    answer = answer_from_assignment(subject.problem, assignment)
    assert FastVerifier(subject.problem).verify(answer).valid
    lowered = write_assignment(subject.code, assignment)
    assert lowered.changed_instructions
    assert kernel(lowered.data, "ratios").problem.normalized == subject.problem.normalized
    assert write_assignment(subject.code, permuted(normalized, 1)).runnable


def test_a_call_that_nothing_reaches() -> None:
    """ptxas leaves one behind a branch that is always taken."""
    text = Path(__file__).with_name("dead_call.ptx").read_text()
    subject = kernel(assembled(text, "sm_80"), "shuffles")
    function = subject.code.function
    reached = {i for block in flow.control_flow(function) for i in block.instructions}
    calls = [i for i, each in enumerate(function.instructions) if flow.calls_subroutine(each)]
    assert calls
    assert reached.isdisjoint(calls)
    assert write_assignment(subject.code, permuted(subject.code.normalized, 1)).runnable


def test_a_callee_that_is_not_known_has_its_registers() -> None:
    """The count of registers may grow, but not fall: the callee's need is in it."""
    subject = kernel(cubin("sm_80"), "says")
    label = subject.code.normalized.assignment
    pair = next(n for n, base in label.items() if base.index >= 16 and base.file == "R")
    for index, more in ((18, 0), (24, 4)):
        other = {**label, pair: PhysicalRegister("R", index)}
        assert write_assignment(subject.code, other).register_count == 24 + more
    narrow = {**label, pair: PhysicalRegister("R", 16)}
    assert write_assignment(subject.code, narrow).register_count == 24


@sm_80_first
def test_without_contexts_the_life_ranges_are_others(architecture: str) -> None:
    data = cubin(architecture)
    place, gated = load_kernel(data, SOURCE, "ratios")
    selection = [place.symbol_index]
    ranges = parse_life_ranges(life_ranges(data, SOURCE, selection))["ratios"]
    assert check_marks(gated.function, ranges) is None
    blocks = flow.control_flow(gated.function)
    assert len(gated.ranges.rows) > 6 * len(ranges.rows)
    rows = gated.ranges.rows
    gated.normalized(255)
    copied = LifeRanges("ratios", (*ranges.rows, *rows[len(ranges.rows) :]))
    with pytest.raises(RejectedKernel, match="by NVIDIA's life ranges"):
        replace(gated, ranges=copied).normalized(255)
    with pytest.raises(RejectedKernel, match="lack a row"):
        replace(gated, ranges=LifeRanges("ratios", rows[: len(rows) // 2])).normalized(255)
    jumps = disassembled_function(with_contexts(data, place, gated.function, blocks), "", "ratios")
    reached = (i for block in flow.control_flow(jumps) for i in block.instructions)
    assert not {"RET.REL.NODEC", "CALL.REL.NOINC"} & {jumps.instructions[i].opcode for i in reached}
    assert read_cubin(data).kernel("ratios").code_size < 16 * len(jumps.instructions) / 6


def test_a_copy_of_a_call_jumps_to_its_own_subroutine(monkeypatch: pytest.MonkeyPatch) -> None:
    function = assemble(
        """
        ISETP.NE.AND P0, PT, RZ, RZ, PT
        MOV R4, 0x40
        MOV R5, RZ
        @P0 CALL.REL.NOINC `(more)
        @P0 EXIT
        EXIT
        more:
        MOV R6, RZ
        @P0 RET.REL.NODEC R4 `(f)
        RET.REL.NODEC R4 `(f)
        NOP
        """
    )
    # The bits of a guard tell the words apart.
    function = encoded(function, lambda n, _: n << 12)
    place = read_cubin(cubin("sm_80")).kernel("ratios")
    monkeypatch.setattr(context_code, "with_other_code", lambda *given: given)
    data, written_to, code = with_contexts(b"data", place, function, flow.control_flow(function))
    assert (data, written_to) == (b"data", place)
    words = [int.from_bytes(code[at : at + 16], "little") for at in range(0, len(code), 16)]
    size = 9

    def jump(at: int, to: int, guard: int) -> int:
        offset = 16 * (to - at - 1) & (1 << 50) - 1
        return context_code._JUMP & ~0xF000 | guard << 12 | offset << 32

    wanted = [n << 12 for n in range(size)] * 2
    wanted[3] = jump(3, size + 6, 3)
    wanted[size + 3] |= 0x947  # a call in code that this copy does not reach is a BRA
    for number, behind in ((7, 2 * size), (8, 2 * size + 2)):
        wanted[size + number] = jump(size + number, behind, number)
        wanted += [context_code._COMPARISON | 4 << 24 | 5 << 32, jump(behind + 1, 4, 7)]
    assert words == wanted
    alone = encoded(assemble("EXIT"), lambda *_: 5)
    given = with_contexts(b"data", place, alone, flow.control_flow(alone))
    assert given == (b"data", place, (5).to_bytes(16, "little"))
    far = context_code._Code(assemble("EXIT", "sm_90"), [0])
    far.jump(0, 70)
    assert far.words == [context_code._JUMP | 0x14 << 16 | 1 << 34]


def test_a_return_to_another_caller_contradicts_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text's edges are those of the code, by copy."""
    _, gated = load_kernel(cubin("sm_80"), SOURCE, "ratios")
    blocks = list(flow.control_flow(gated.function))
    ends = {n: b.instructions[-1] for n, b in enumerate(blocks) if b.instructions}
    returning = [n for n, i in ends.items() if flow.returns(gated.function.instructions[i])]
    outer = [n for n in returning if len(blocks[n].calls) == 1]
    first, second = outer
    wrong = {first: blocks[second].successors, second: blocks[first].successors}
    gated.function.known_blocks[:] = [
        replace(block, successors=wrong.get(number, block.successors))
        for number, block in enumerate(blocks)
    ]
    with pytest.raises(RejectedKernel, match=r"by NVIDIA's life ranges|leads"):
        gated.normalized(255)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_registers_that_a_callee_destroys_are_nvidias(architecture: str) -> None:
    data = cubin(architecture)
    place, gated = load_kernel(data, SOURCE, "says")
    ranges = parse_life_ranges(life_ranges(data, SOURCE, [place.symbol_index]))["says"]
    call = next(i for i in gated.function.instructions if i.destroys)
    (at,) = [n for n, row in enumerate(ranges.rows) if row.address == call.address]

    def changed(defined: int, live: int) -> LifeRanges:
        row = ranges.rows[at]
        general = replace(row.marks[0], defined=defined, live=live)
        rows = [*ranges.rows]
        rows[at] = replace(row, marks=(general, *row.marks[1:]))
        return replace(ranges, rows=tuple(rows))

    marks = ranges.rows[at].marks[0]
    assert check_marks(gated.function, ranges) is None
    kept, destroyed = 1 << 16, 1 << 14
    for wrong in (
        changed(marks.defined | kept, marks.live | kept),
        changed(marks.defined & ~destroyed, marks.live),
    ):
        assert "CALL.ABS.NOINC" in str(check_marks(gated.function, wrong))
