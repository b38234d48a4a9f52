"""The rules of edits that depend on places or on EXEC.

- A move connects files between which one instruction of the target can move, and
  writes no place twice. Spills and reloads use files that the target can spill.
  A slot that is written from a vector register is reloaded to vector registers
  only, a slot written from a scalar register to scalar registers only, in the
  whole function.
- A replaced operand lies where the operand's own class could lie. Operands that the
  instruction reads from one register stay one.
- A constant is made again in a file that its defining instruction could write.
- Insertions for vector registers stand only where every thread executes them
  whose path passes (edits.execution_mask).

Cost: linear in the edits, and in the instructions of their blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from verilocc_bench.edits import (
    GUARD,
    Action,
    EditedFunction,
    Move,
    Reload,
    Rematerialize,
    Spill,
    VectorPlaces,
)
from verilocc_bench.edits.findings import Finding, FindingKind
from verilocc_bench.ir import FixedUnits, Instruction, VirtualLanes
from verilocc_bench.targets import Target
from verilocc_bench.verification.symbolic.places import Places


def edit_findings(edited: EditedFunction, target: Target, places: Places) -> list[Finding]:
    """A finding of kind `invalid_edit` for every broken rule."""
    rules = _Rules(edited, target, places)
    return [*rules.transfers(), *rules.slots(), *rules.replacements()]


@dataclass(frozen=True, slots=True)
class _EditSite:
    """The place of an action: before instruction `index` of a block, or on an edge out of it."""

    block: int
    index: int
    edge_to: int | None = None

    def __str__(self) -> str:
        if self.edge_to is not None:
            return f"on the edge from bb{self.block} to bb{self.edge_to}"
        return f"bb{self.block} before instruction {self.index}"


class _Rules:
    def __init__(self, edited: EditedFunction, target: Target, places: Places) -> None:
        self.edited, self.target, self.places = edited, target, places
        self.vector_places = VectorPlaces(edited.function, target)

    def actions(self) -> Iterator[tuple[_EditSite, Action]]:
        blocks = self.edited.function.blocks
        for (block, index), actions in self.edited.before.items():
            for action in actions:
                yield _EditSite(block, index), action
        for (block, successor), actions in self.edited.on_edge.items():
            for action in actions:
                yield _EditSite(block, len(blocks[block].instructions), successor), action

    def transfers(self) -> Iterator[Finding]:
        for site, action in self.actions():
            reasons = [*self._wrong_files(action), *self._written_twice(action)]
            if isinstance(action, Rematerialize):
                reasons += self._misplaced_constant(action)
            files = [self.file(register) for register in _spans(action)]
            if not self.target.masked_files.isdisjoint(files):
                reasons += self.vector_places.objections(site.block, site.index)
            for reason in dict.fromkeys(reasons):
                yield _finding(site, reason, _registers(action))

    def file(self, lanes: VirtualLanes) -> str:
        return self.places.bases[lanes.register][0]

    def unit(self, lanes: VirtualLanes) -> tuple[str, int]:
        file, base = self.places.bases[lanes.register]
        return file, base + lanes.first

    def _wrong_files(self, action: Action) -> Iterator[str]:
        if isinstance(action, Move):
            for destination, source in action.pairs:
                to, origin = self.file(destination), self.file(source)
                if origin not in self.target.move_sources.get(to, frozenset()):
                    yield f"no instruction moves from a register of {origin} to one of {to}"
        elif isinstance(action, Spill | Reload):
            lanes = action.source if isinstance(action, Spill) else action.destination
            file = self.file(lanes)
            if file not in self.target.spill_files:
                yield f"spill slots do not hold registers of {file}"

    def _misplaced_constant(self, action: Rematerialize) -> Iterator[str]:
        instruction = self.edited.function.blocks[action.block].instructions[action.index]
        location = instruction.definitions[0].location
        file = self.file(action.destination)
        if isinstance(location, FixedUnits):
            yield f"{instruction.opcode} defines a physical register"
        elif file not in self.target.move_sources:
            yield f"edits write no registers of {file}"
        elif reason := self._misplaced(location, action.destination):
            yield f"{instruction.opcode}: {reason}"

    def _written_twice(self, action: Action) -> Iterator[str]:
        if not isinstance(action, Move):
            return
        seen: set[tuple[str, int]] = set()
        for destination, _ in action.pairs:
            file, first = self.unit(destination)
            for index in range(first, first + destination.count):
                if (file, index) in seen:
                    yield f"the move writes {self.places.unit_name((file, index))} twice"
                seen.add((file, index))

    def slots(self) -> Iterator[Finding]:
        vector: dict[int, set[bool]] = {}
        for _, action in self.actions():
            if isinstance(action, Spill):
                kind = self.file(action.source) in self.target.masked_files
                for slot in range(action.slots.first, action.slots.first + action.slots.count):
                    vector.setdefault(slot, set()).add(kind)
        names = {True: "vector", False: "scalar"}
        for site, action in self.actions():
            if isinstance(action, Reload):
                kind = self.file(action.destination) in self.target.masked_files
                for slot in range(action.slots.first, action.slots.first + action.slots.count):
                    if (not kind) in vector.get(slot, ()):
                        reason = (
                            f"slot{slot} is written from a {names[not kind]} register, "
                            f"reloaded to a {names[kind]} one"
                        )
                        yield _finding(site, reason, _registers(action))
                        break

    def replacements(self) -> Iterator[Finding]:
        for (block, index, operand), lanes in self.edited.replaced.items():
            instruction = self.edited.function.blocks[block].instructions[index]
            if operand == GUARD:
                assert instruction.guard is not None
                location = instruction.guard.location
            else:
                location = (instruction.definitions + instruction.uses)[operand].location
            assert not isinstance(location, FixedUnits)
            reason = self._misplaced(location, lanes) or self._parted(
                instruction, (block, index), location
            )
            if reason:
                yield Finding(
                    FindingKind.INVALID_EDIT,
                    f"bb{block} instruction {index} ({instruction.opcode}): {reason}",
                    block,
                    index,
                    (f"%{lanes.register}",),
                    self.places.unit_name(self.unit(lanes)),
                    operand,
                )

    def _parted(
        self, instruction: Instruction, place: tuple[int, int], location: VirtualLanes
    ) -> str | None:
        """Why the lanes of an operand cannot lie in different places, if they do and cannot."""
        files, same = set(), set()
        for number, operand in enumerate(instruction.definitions + instruction.uses):
            own = operand.location
            if isinstance(own, VirtualLanes) and own.register == location.register:
                unit = self.unit(self.edited.replaced.get((*place, number), own))
                files.add(unit[0])
                if own == location and number >= len(instruction.definitions):
                    same.add(unit)
        if len(files) > 1:
            where = " and ".join(sorted(files))
            return f"operands that are lanes of %{location.register} lie in {where}"
        if len(same) > 1 and any(self.target.reads_once(instruction.opcode, f) for f in files):
            where = " and ".join(self.places.unit_name(unit) for unit in sorted(same))
            return f"operands that are one register, %{location.register}, lie at {where}"
        return None

    def _misplaced(self, location: VirtualLanes, lanes: VirtualLanes) -> str | None:
        """Why an operand cannot lie where the replacing lanes lie; None if it can."""
        register_class = self.edited.function.virtual_registers[location.register]
        file, base = self.unit(lanes)
        where = f"at {self.places.unit_name((file, base))}"
        if location.count == register_class.width:
            if register_class.allows(file, base):
                return None
            return f"an operand of class {register_class.name} cannot start {where}"
        if file not in register_class.files:
            return f"an operand of class {register_class.name} cannot lie {where}"
        step = self.target.file(file).usual_step(location.count)
        if base % step:
            return f"{location.count} lanes cannot start {where}, but at every {step}th"
        return None


def _spans(action: Action) -> list[VirtualLanes]:
    """The registers that an action reads and writes."""
    if isinstance(action, Move):
        return [lanes for pair in action.pairs for lanes in pair]
    return [action.source if isinstance(action, Spill) else action.destination]


def _registers(action: Action) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f"%{lanes.register}" for lanes in _spans(action)))


def _finding(site: _EditSite, reason: str, registers: tuple[str, ...]) -> Finding:
    return Finding(FindingKind.INVALID_EDIT, f"{site}: {reason}", site.block, site.index, registers)
