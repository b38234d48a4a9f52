"""Distances in cycles: by stall counts, over all paths, plain or not."""

from __future__ import annotations

import pytest

from benchmarks.distance_mining import evidence, mine, table_to_json
from tests.backends.nvidia.assembly import NO_BARRIERS, assemble, encoded
from verilocc_bench.backends.nvidia.distance_table import PairKind, distance_table, table_from_json
from verilocc_bench.backends.nvidia.hazards import HazardKind
from verilocc_bench.backends.nvidia.issue_distances import (
    HORIZON,
    operation_class,
    recent_pairs,
    timed_accesses,
)
from verilocc_bench.backends.nvidia.records import SassFunction

WAR, WAW = HazardKind.WRITE_AFTER_READ, HazardKind.WRITE_AFTER_WRITE


def timed(text: str, stalls: dict[int, int], waits: dict[int, int] | None = None) -> SassFunction:
    """A function with these stall counts and wait masks, by instruction; no barrier is raised."""
    return encoded(
        assemble(text),
        lambda n, _: stalls.get(n, 0) << 105 | NO_BARRIERS | (waits or {}).get(n, 0) << 116,
    )


def distances(function: SassFunction) -> dict[tuple[int, int], tuple[int, int | None]]:
    return {(p.earlier, p.later): (p.cycles, p.plain) for p in recent_pairs(function)}


STRAIGHT = """
IADD3 R2, R3, R4, RZ
FADD R3, R5, R6
MOV R4, R2
EXIT
"""


USED = STRAIGHT.replace("EXIT", "STG.E [R8], R4\nEXIT")
"""The same, with its result stored."""


def test_stall_counts_add_up_and_a_wait_between_is_no_plain_distance() -> None:
    assert distances(timed(STRAIGHT, {0: 2, 1: 0, 2: 5})) == {
        (0, 1): (2, 2), (0, 2): (3, 3), (1, 2): (1, 1),
        (0, 3): (8, 8), (1, 3): (6, 6), (2, 3): (5, 5),
    }  # fmt: skip
    found = distances(timed(STRAIGHT, {0: 2, 1: 1, 2: 1}, {1: 1}))
    assert [found[pair] for pair in ((0, 1), (0, 2), (1, 2))] == [(2, None), (3, None), (1, 1)]


def test_what_is_far_enough_is_forgotten() -> None:
    text = "IADD3 R2, R3, R4, RZ\n" + "NOP\n" * 6 + "EXIT"
    found = distances(timed(text, dict.fromkeys(range(7), 15)))
    assert (0, 4) in found
    assert (0, 5) not in found
    assert max(cycles for cycles, _ in found.values()) < HORIZON


LOOP = """
MOV R2, 0x1
L1:
IADD3 R3, R2, 0x1, RZ
ISETP.GE.AND P0, PT, R3, R4, PT
@P0 BRA L(1)
MOV R5, R3
EXIT
"""


def test_distances_go_around_loops_and_jumps_interrupt_them() -> None:
    found = distances(timed(LOOP, {0: 3, 1: 4, 2: 2, 3: 6}))
    assert found[0, 1] == (3, 3)
    assert found[2, 1] == (8, None)
    assert found[1, 1] == (12, None)
    assert found[1, 4] == (12, None)
    # The jump's own guard is what decides the jump.
    assert found[3, 4] == (6, 6)


def test_only_one_of_two_opposite_guards_takes_effect() -> None:
    text = """
    ISETP.GE.AND P0, PT, R3, R4, PT
    @P0 MOV R5, R3
    @!P0 MOV R6, R3
    ISETP.GE.AND P0, PT, R6, R4, PT
    @P0 MOV R7, R3
    @!P0 MOV R8, R3
    EXIT
    """
    found = distances(timed(text, {}))
    assert (1, 2) not in found
    assert (4, 5) not in found
    assert (1, 5) in found  # another value of the predicate
    assert (1, 4) in found


@pytest.mark.parametrize(
    ("opcode", "name"),
    [
        ("IADD3.X", "integer"),
        ("IMAD.MOV.U32", "multiply-add"),
        ("IMAD.WIDE.U32", "wide product"),
        ("HMMA.16816.F32.BF16", "HMMA.16816.F32"),
        ("HMMA.1688.F32.TF32", "HMMA.1688.F32.TF32"),
        ("IMMA.16832.S8.S8.SAT", "IMMA.16832"),
        ("UIADD3", "uniform"),
        ("LDG.E.128", "memory"),
        ("CS2R", "CS2R"),
    ],
)
def test_classes(opcode: str, name: str) -> None:
    assert operation_class(opcode) == name


def test_operands_of_matrix_products_are_set_apart() -> None:
    (product, *_) = assemble("HMMA.16816.F32 R4, R8, R12, R4\nEXIT").instructions
    found = timed_accesses(product)
    unit = "HMMA.16816.F32"
    assert [each.access for each in found.writes] == [f"{unit} d{n}" for n in (0, 0, 1, 1)]
    assert [(each.access, each.register) for each in found.reads] == [
        *((f"{unit} a", 8 + n) for n in range(4)),
        *((f"{unit} b", 12 + n) for n in range(2)),
        *((f"{unit} c", 4 + n) for n in range(4)),
    ]


def test_late_reads_and_writes_are_left_to_waits() -> None:
    (load, *_) = assemble("@P0 LDG.E R4, [R8]\nEXIT").instructions
    found = timed_accesses(load)
    assert [each.access for each in found.reads] == ["memory guard"]
    assert found.writes == ()
    assert [each.access for each in found.overwrites] == ["variable latency"]


def test_a_table_is_mined_of_the_closest_plain_pairs() -> None:
    near = evidence("near", timed(USED, {0: 3, 1: 1, 2: 1}))
    far = evidence("far", timed(USED, {0: 9, 1: 1, 2: 1}))
    kind = PairKind(WAR, "integer", "multiply-add", "R")
    table = mine([far, near], {"kernels": 2})
    assert (table.cells[kind].cycles, table.cells[kind].pairs) == (3, 2)
    assert table.cells[kind].example == "near: IADD3 at 0x0, FADD at 0x10"
    assert table.least(PairKind(WAR, "half", "integer", "R")) == HORIZON
    assert mine([far], {}).cells[kind].cycles == 9
    assert table_from_json(table_to_json(table)) == table


def test_a_wait_and_two_predicates_are_no_evidence() -> None:
    guarded = "@P0 IADD3 R2, R3, R4, RZ\n@P1 FADD R3, R5, R6\nSTG.E [R8], R2\nEXIT"
    for text, waits, found in (
        (USED, {1: 1, 2: 1}, False),
        (guarded, {}, False),
        (guarded.replace("P1", "P0"), {}, True),
    ):
        assert bool(mine([evidence("x", timed(text, {}, waits))], {}).cells) == found


KEPT_LOOP = """
L1:
IADD3 R2, R2, R3, RZ
IADD3 R3, R2, R4, RZ
ISETP.GE.AND P0, PT, R5, R6, PT
@P0 BRA L(1)
STG.E [R8], {}
EXIT
"""


@pytest.mark.parametrize(
    ("text", "hazards"),
    [
        # Nobody uses the later value: the earlier one may be written over it.
        ("IADD3 R2, R3, R4, RZ\nFADD R2, R5, R6\nEXIT", set()),
        ("IADD3 R2, R3, R4, RZ\nFADD R2, R5, R6\nSTG.E [R8], R2\nEXIT", {WAW}),
        ("IADD3 R2, R3, R4, RZ\nFADD R2, R5, R6\nFADD R7, R2, R6\nEXIT", set()),
        # Nobody uses what the earlier reader makes of its source.
        ("IADD3 R2, R3, R4, RZ\nFADD R3, R5, R6\nSTG.E [R8], R3\nEXIT", set()),
        ("IADD3 R2, R3, R4, RZ\nFADD R3, R5, R6\nSTG.E [R8], R2\nEXIT", {WAR}),
        # Two values around a loop that only use each other.
        (KEPT_LOOP.format("R5"), set()),
        (KEPT_LOOP.format("R2"), {WAR, WAW}),
        # Under a guard the value before stays.
        ("IADD3 R2, R3, R4, RZ\nFADD R3, R5, R6\n@P0 MOV R2, R7\nSTG.E [R8], R2\nEXIT", {WAR, WAW}),
        ("IADD3 R2, R3, R4, RZ\nFADD R3, R5, R6\nMOV R2, R7\nSTG.E [R8], R2\nEXIT", {WAW}),
    ],
)  # fmt: skip
def test_what_nobody_uses_is_no_evidence(text: str, hazards: set[HazardKind]) -> None:
    found = evidence("x", timed(text, {}))
    assert {each.kind.hazard for each in found if each.kind.file == "R"} == hazards


def test_the_packages_table() -> None:
    table = distance_table("sm_80")
    assert table.corpus["kernels"] >= 2_000
    assert table.corpus["ptxas"] == "13.5.37"
    assert len(str(table.corpus["sha256"])) == 64
    for kind, cell in table.cells.items():
        assert 1 <= cell.cycles < HORIZON, kind
        assert cell.pairs >= 1
        assert cell.example
    # A matrix product reads its operands late; what writes late may come at once.
    for operand in "abc":
        reader = f"HMMA.16816.F32 {operand}"
        assert table.least(PairKind(WAR, reader, "integer", "R")) == 7
        assert table.least(PairKind(WAR, reader, "variable latency", "R")) == 1
    assert table.least(PairKind(WAW, "HMMA.16816.F32 d0", "HMMA.16816.F32 d0", "R")) >= 20


@pytest.mark.parametrize(
    ("slow", "fast", "least"),
    [
        ("HFMA2.MMA R6, R2, R3, R4", "IADD3 R6, R2, R3, R4", HORIZON),
        ("HFMA2 R6, R2, R3, R4", "IADD3 R6, R2, R3, R4", 1),
        ("UIADD3 UR5, UR4, 0x1, URZ", "UMOV UR5, 0x7", 8),
    ],
)
def test_a_slow_write_of_a_class_with_fast_ones(slow: str, fast: str, least: int) -> None:
    first, second, _ = assemble(f"{slow}\n{fast}\nEXIT").instructions
    (one,), (other,) = timed_accesses(first).writes, timed_accesses(second).overwrites
    kind = PairKind(WAW, one.access, other.access, one.file)
    assert distance_table("sm_80").least(kind) == least
