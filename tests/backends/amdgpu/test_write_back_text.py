"""The machine IR with an answer in it, read again, is the edited function, letter by letter.

What is expected comes from the normalized function and the answer alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from tests.backends.amdgpu.machine_ir import ROWS, SPLIT_ROWS, Kernel, answer_of, load
from tests.sampling import few_rows
from verilocc_bench.allocators import BUILT_IN, Request
from verilocc_bench.backends.amdgpu.normalize import normalize_machine_function
from verilocc_bench.backends.amdgpu.read import parse_mir
from verilocc_bench.dataset import Row
from verilocc_bench.edits import Action, Answer, EditedFunction, Move, Reload, Spill, edit_function
from verilocc_bench.ir import FixedUnits, Instruction, Operand, VirtualLanes

Event = tuple[str, tuple[FixedUnits, ...], tuple[FixedUnits, ...]]
SPLIT = [row for row in SPLIT_ROWS if row.n_instructions < 2200]


class Expected:
    """What each block should do, in order."""

    def __init__(self, kernel: Kernel, edited: EditedFunction, answer: dict[str, str]) -> None:
        self.kernel, self.edited = kernel, edited
        self.bases = {number: kernel.register(answer[f"%{number}"]) for number in edited.registers}

    def units(self, lanes: VirtualLanes) -> FixedUnits:
        base = self.bases[lanes.register]
        return FixedUnits(base.file, base.index + lanes.first, lanes.count)

    def each(self, lanes: VirtualLanes) -> Iterator[FixedUnits]:
        units = self.units(lanes)
        for index in range(units.count):
            yield FixedUnits(units.file, units.first + index, 1)

    def operands(self, at: tuple[int, int], operands: Sequence[Operand], first: int):  # type: ignore[no-untyped-def]
        for number, operand in enumerate(operands, first):
            lanes = self.edited.replaced.get((*at, number), operand.location)
            yield self.units(lanes) if isinstance(lanes, VirtualLanes) else lanes

    def instruction(self, at: tuple[int, int], instruction: Instruction) -> Iterator[Event]:
        count = len(instruction.definitions)
        definitions = tuple(self.operands(at, instruction.definitions, 0))
        uses = tuple(self.operands(at, instruction.uses, count))
        if instruction.opcode != "COPY" or definitions != uses:
            yield instruction.opcode, definitions, uses

    def action(self, action: Action) -> Iterator[Event]:
        if isinstance(action, Spill):
            for unit in self.each(action.source):
                yield "spill", (), (unit,)
        elif isinstance(action, Reload):
            for unit in self.each(action.destination):
                yield "reload", (unit,), ()
        elif isinstance(action, Move):
            for destination, source in action.pairs:
                for unit, other in zip(self.each(destination), self.each(source), strict=True):
                    yield "COPY", (unit,), (other,)
        else:
            instruction = self.kernel.problem.function.blocks[action.block].instructions
            yield instruction[action.index].opcode, (self.units(action.destination),), ()

    def block(self, block: int) -> list[Event]:
        events: list[Event] = []
        instructions = self.kernel.problem.function.blocks[block].instructions
        for index in range(len(instructions) + 1):
            for action in self.edited.before.get((block, index), ()):
                events += self.action(action)
            if index < len(instructions):
                events += self.instruction((block, index), instructions[index])
        return events


def found(instruction: Instruction) -> Event:
    name = instruction.opcode
    definitions = tuple(o.location for o in instruction.definitions)
    uses = tuple(o.location for o in instruction.uses)
    if name.startswith("SI_SPILL_"):
        return ("spill", (), uses[:1]) if name.endswith("SAVE") else ("reload", definitions, ())
    return name, definitions, uses  # type: ignore[return-value]


def check(kernel: Kernel, answer: Answer) -> None:
    edited, findings = edit_function(kernel.problem.function, kernel.target, answer.edits)
    assert not findings
    assert not edited.on_edge
    if answer.has_edits:
        text = kernel.lower_unverified(answer).text
    else:
        text = kernel.lower(answer.assignment).text
    # The text says that its registers are assigned; read it here as if they were not.
    module = parse_mir(text.replace("noVRegs:         true", "noVRegs:         false"))
    function = normalize_machine_function(module.functions[0], module, kernel.target).function
    expected = Expected(kernel, edited, dict(answer.assignment))
    assert [b.successors for b in function.blocks] == [
        b.successors for b in kernel.problem.function.blocks
    ]
    for number, block in enumerate(function.blocks):
        assert [found(i) for i in block.instructions] == expected.block(number)
    assert not function.virtual_registers


@pytest.mark.parametrize(
    "row", few_rows(ROWS[::5]), ids=lambda row: f"{row.arch}-{row.kernel}-{row.id}"
)
def test_assignments(row: Row) -> None:
    check(load(row), Answer(answer_of(load(row), "linear-scan")))


@pytest.mark.slow
@pytest.mark.parametrize(
    "row", few_rows(SPLIT), ids=lambda row: f"{row.arch}-{row.kernel}-{row.id}"
)
def test_spill_code(row: Row) -> None:
    kernel = load(row)
    answer = BUILT_IN["spill-everywhere"].allocate(Request(kernel.problem))
    check(kernel, answer)
