"""False dependences: only what a shared register would order, and nothing orders anyway."""

from __future__ import annotations

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.false_dependences import FalseDependence, false_dependences
from verilocc_bench.dataset import load_rows
from verilocc_bench.ir import (
    BaseRange,
    Block,
    Function,
    Instruction,
    Operand,
    RegisterFile,
    VirtualLanes,
)
from verilocc_bench.targets import get_target

Line = tuple[str, tuple[int, ...], tuple[int, ...]]
"""An opcode, the virtual registers that it writes, and those that it reads."""


def listed(*blocks: tuple[list[Line], tuple[int, ...]], width: int = 1) -> list[FalseDependence]:
    """The false dependences of a function whose virtual registers are as wide as told."""
    target = get_target("gfx942")
    files = tuple(file.with_budget(file.count) for file in target.files)
    budgets = {file.name: file.count for file in files}
    bases = {"v": (BaseRange("v", 0, 256 - width, 1 if width == 1 else 2),)}
    register_class = target.make_class(width, bases, budgets)

    def operand(register: int) -> Operand:
        return Operand(VirtualLanes(register, 0, width))

    made, count = [], 0
    for lines, successors in blocks:
        instructions = []
        for opcode, writes, reads in lines:
            count = max(count, *(register + 1 for register in (*writes, *reads)), 0)
            sides = tuple(map(operand, writes)), tuple(map(operand, reads))
            instructions.append(Instruction(opcode, *sides))
        made.append(Block(tuple(instructions), successors))
    assert all(isinstance(file, RegisterFile) for file in files)
    function = Function("gfx942", files, (), (register_class,) * count, (), tuple(made))
    return false_dependences(AllocationProblem(function))


def pairs(*lines: Line) -> set[tuple[int, int, int]]:
    """(virtual register accessed, virtual register written, distance) of one block."""
    found = listed((list(lines), ()))
    return {(each.accessed.register, each.written.register, each.distance) for each in found}


def test_independent_values_are_listed_and_dependent_ones_are_not() -> None:
    # %1 is made of %0, and %3 of %2; nothing connects the two.
    found = pairs(
        ("V_MOV_B32", (0,), ()),
        ("V_ADD_U32", (1,), (0,)),
        ("V_CMP_GT_U32", (), (1,)),
        ("V_MOV_B32", (2,), ()),
        ("V_ADD_U32", (3,), (2,)),
        ("V_CMP_GT_U32", (), (3,)),
    )
    assert found == {
        *((0, 2, 3), (0, 2, 2), (0, 3, 4), (0, 3, 3)),
        *((1, 2, 2), (1, 2, 1), (1, 3, 3), (1, 3, 2)),
    }


def test_a_value_that_is_still_needed_is_no_matter() -> None:
    assert not pairs(("V_MOV_B32", (0,), ()), ("V_MOV_B32", (1,), ()), ("V_ADD_U32", (), (0, 1)))


def test_stores_and_barriers_keep_loads_in_order() -> None:
    def lines(between: str, writing: str) -> tuple[Line, ...]:
        return (
            ("DS_READ_B32", (0,), ()),
            (writing, (), (0,)),
            (between, (), ()),
            ("DS_READ_B32", (1,), ()),
            ("DS_WRITE_B32", (), (1,)),
        )

    assert pairs(*lines("V_NOP", "V_CMP_GT_U32")) == {(0, 1, 3), (0, 1, 2)}
    assert pairs(*lines("V_NOP", "DS_WRITE_B32")) == set()
    # The barrier stays behind the first load, and the second load behind the barrier.
    assert pairs(*lines("S_BARRIER", "V_CMP_GT_U32")) == {(0, 1, 2)}


def test_matrix_instructions_need_wait_states_also_around_a_loop() -> None:
    body: list[Line] = [
        ("DS_READ_B128", (0,), ()),
        ("DS_READ_B128", (1,), ()),
        ("V_MFMA_F32_16X16X16F16", (2,), (0, 0, 1)),
        ("DS_WRITE_B128", (), (2,)),
        ("S_CBRANCH_SCC1", (), ()),
    ]
    found = listed(([], (1,)), (body, (1, 2)), ([("S_ENDPGM", (), ())], ()), width=4)
    # Three instructions from the matrix instruction to the first load of the next round;
    # where the second load writes, %0 is still needed.
    assert {(d.accessed.register, d.written.register, d.distance, d.stalls) for d in found} == {
        *((1, 0, 3, True), (2, 0, 3, True)),
        (2, 1, 4, True),
        *((0, 2, 5, True), (1, 2, 5, True)),
    }
    assert {each.block for each in found} == {1}
    for fillers, distances in ((45, {48}), (46, set())):
        long = body[:3] + [("V_NOP", (), ())] * fillers + body[3:]
        found = listed(([], (1,)), (long, (1, 2)), ([("S_ENDPGM", (), ())], ()), width=4)
        assert {
            d.distance for d in found if (d.accessed.register, d.written.register) == (2, 0)
        } == distances


def test_instructions_of_other_targets_keep_their_order() -> None:
    row = next(row for row in load_rows("mini").rows if row.arch == "sm_80")
    assert false_dependences(AllocationProblem.from_text(row.normalized)) == []


def test_real_kernels_have_pairs_of_two_registers_near_each_other() -> None:
    rows = [row for row in load_rows("mini").rows if row.arch == "gfx90a"]
    row = min(rows, key=lambda each: each.n_instructions)
    problem = AllocationProblem.from_text(row.normalized)
    found = false_dependences(problem)
    assert found == false_dependences(problem)
    assert len(found) > 100
    for each in found:
        assert each.accessed.register != each.written.register
        assert 1 <= each.distance <= 48
