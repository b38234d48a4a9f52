"""Rewrites a function by a plan, and gives the edits that do the same.

In the rewritten function, stores, loads and constants are instructions, and code
on edges has blocks of its own, so liveness and every allocator see them.

Cost: linear in the function and its edits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from verilocc_bench.allocators.splitting.candidates import SplitPlan
from verilocc_bench.allocators.splitting.regions import UnitRegions
from verilocc_bench.allocators.splitting.split_webs import Web, WebFinder, Webs
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.edits import (
    At,
    EditKind,
    Edits,
    Insertion,
    OnEdge,
    RegisterSpan,
    Replacement,
    SlotSpan,
    Transfer,
)
from verilocc_bench.ir import (
    Block,
    Function,
    Instruction,
    Operand,
    RegisterClass,
    VirtualLanes,
    format_class,
)


@dataclass(frozen=True, slots=True)
class Homes:
    """The homes of units while they are away.

    `registers[unit]` is the class of the single registers that take its lanes.
    `constants[unit]` is the place where its value is made. The other units go to
    slots.
    """

    registers: Mapping[int, RegisterClass]
    constants: Mapping[int, At]


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A function with a plan carried out.

    `origin[block][index]` is the (block, position) in the original after an
    instruction (see `demand`); for an inserted instruction it is the position
    before the next one. `home_unit[register]` is the unit whose home a new
    register is. `units_of[register]` are the units with lanes in a register.
    """

    function: Function
    edits: Edits
    origin: tuple[tuple[tuple[int, int], ...], ...]
    webs: Webs
    home_unit: Mapping[int, int]
    units_of: Mapping[int, Sequence[int]]


def rewrite(
    problem: AllocationProblem,
    finder: WebFinder,
    plan: SplitPlan,
    homes: Homes,
) -> Rewritten:
    """Carries out a plan."""
    return _Rewriter(problem, finder, plan, homes).rewrite()


@dataclass(frozen=True, slots=True)
class _Transferred:
    """A unit that is stored from a web, or brought back to it."""

    is_store: bool
    unit: int
    web: Web


class _Rewriter:
    def __init__(
        self, problem: AllocationProblem, finder: WebFinder, plan: SplitPlan, homes: Homes
    ) -> None:
        self.problem, self.plan, self.homes = problem, plan, homes
        self.units: Sequence[UnitRegions] = finder.units
        self.classes = list(finder.classes)
        self.webs: Webs = finder.webs(plan)
        self.classes += self.webs.new
        self.slots: dict[int, int] = {}
        self.next_slot = 0
        self.home_registers: dict[tuple[int, int], int] = {}
        self.insertions: list[Insertion] = []
        self.replacements: list[Replacement] = []
        self.stores: dict[At | OnEdge, list[_Transferred]] = {}
        self.loads: dict[At | OnEdge, list[_Transferred]] = {}

    def rewrite(self) -> Rewritten:
        function = self.problem.function
        for number in sorted(
            {u for u, _ in self.plan.away} | {u for u, _ in self.plan.stored_after}
        ):
            self._collect(number)
        blocks, origins = [], []
        for number, block in enumerate(function.blocks):
            made, origin = self._block(number, block)
            blocks.append(Block(tuple(made), block.successors))
            origins.append(tuple(origin))
        edges = {w for w in (*self.stores, *self.loads) if isinstance(w, OnEdge)}
        for edge in sorted(edges, key=lambda e: (e.source, e.target)):
            code = self._code(edge)
            successors = blocks[edge.source].successors
            redirected = tuple(len(blocks) if s == edge.target else s for s in successors)
            blocks[edge.source] = replace(blocks[edge.source], successors=redirected)
            blocks.append(Block(tuple(code), (edge.target,)))
            origins.append(((edge.target, 0),) * len(code))
        files = {file.name: file for file in function.files}
        own = len(function.virtual_registers)
        new = {own + n: format_class(c, files) for n, c in enumerate(self.classes[own:])}
        edits = Edits(new, tuple(self.insertions), tuple(self.replacements))
        changed = replace(function, virtual_registers=tuple(self.classes), blocks=tuple(blocks))
        homes = {register: unit for (unit, _), register in self.home_registers.items()}
        return Rewritten(changed, edits, tuple(origins), self.webs, homes, self._units_of())

    def _units_of(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for number, each in enumerate(self.units):
            unit = each.unit
            names = {self.webs.at[unit.register, a.block, a.index].name for a in unit.accesses}
            for name in names:
                found.setdefault(name, []).append(number)
        return found

    def _collect(self, number: int) -> None:
        """Notes the places where a unit is stored and brought back."""
        each, plan = self.units[number], self.plan
        unit = each.unit

        def web_at(access: int) -> Web:
            a = unit.accesses[access]
            return self.webs.at[unit.register, a.block, a.index]

        for access, a in enumerate(unit.accesses):
            if (number, access) in plan.stored_after:
                self._store(At(a.block, a.index + 1), number, web_at(access))
        for place, region in enumerate(each.regions):
            if (number, place) not in plan.away:
                continue
            stored = (number, place) in plan.stored_at_entry
            for part in region.parts:
                if stored and part.entry is not None:
                    a = unit.accesses[part.entry]
                    if (number, part.entry) not in plan.stored_after:
                        self._store(At(a.block, a.index + 1), number, web_at(part.entry))
                if part.exit is not None:
                    a = unit.accesses[part.exit]
                    self._load(At(a.block, a.index), number, web_at(part.exit))
        for edge in each.edges:
            where = OnEdge(edge.source_block, edge.target_block)
            source, target = (number, edge.source), (number, edge.target)
            if source in plan.away and target not in plan.away:
                self._load(where, number, self.webs.during[target])
            if target in plan.stored_at_entry and source not in plan.away:
                self._store(where, number, self.webs.during[source])

    def _store(self, where: At | OnEdge, unit: int, web: Web) -> None:
        self.stores.setdefault(where, []).append(_Transferred(True, unit, web))

    def _load(self, where: At | OnEdge, unit: int, web: Web) -> None:
        self.loads.setdefault(where, []).append(_Transferred(False, unit, web))

    def _block(self, number: int, block: Block) -> tuple[list[Instruction], list[tuple[int, int]]]:
        made: list[Instruction] = []
        origin: list[tuple[int, int]] = []
        for index in range(len(block.instructions) + 1):
            code = self._code(At(number, index))
            made += code
            origin += [(number, 2 * index)] * len(code)
            if index < len(block.instructions):
                made.append(self._instruction(number, index, block.instructions[index]))
                origin.append((number, 2 * index + 1))
        return made, origin

    def _instruction(self, block: int, index: int, instruction: Instruction) -> Instruction:
        operands = list(instruction.definitions + instruction.uses)
        for number, operand in enumerate(operands):
            lanes = operand.location
            if not isinstance(lanes, VirtualLanes):
                continue
            web = self.webs.at.get((lanes.register, block, index))
            if web is None or web.name == lanes.register:
                continue
            own = VirtualLanes(web.name, lanes.first - web.first, lanes.count)
            operands[number] = replace(operand, location=own)
            self.replacements.append(Replacement(block, index, number, self._span(own)))
        count = len(instruction.definitions)
        if tuple(operands) == instruction.definitions + instruction.uses:
            return instruction
        return replace(
            instruction, definitions=tuple(operands[:count]), uses=tuple(operands[count:])
        )

    def _code(self, where: At | OnEdge) -> list[Instruction]:
        """The instructions inserted at a place: first the stores, then the loads."""
        made: list[Instruction] = []
        for transfers in (self.stores.get(where, ()), self.loads.get(where, ())):
            to_slots: list[_Transferred] = []
            for each in transfers:
                if each.unit in self.homes.constants:
                    made.append(self._constant(where, each))
                elif each.unit in self.homes.registers:
                    made += self._moves(where, each)
                else:
                    to_slots.append(each)
            made += self._slot_code(where, to_slots)
        return made

    def _constant(self, where: At | OnEdge, each: _Transferred) -> Instruction:
        lanes = self.units[each.unit].unit.lanes
        to = VirtualLanes(each.web.name, lanes[0] - each.web.first, len(lanes))
        source = self.homes.constants[each.unit]
        self._insert(where, EditKind.REMATERIALIZE, self._span(to), source)
        return Instruction("CONSTANT", (Operand(to),))

    def _moves(self, where: At | OnEdge, each: _Transferred) -> list[Instruction]:
        """One parallel move of a unit's lanes."""
        made = []
        transfers = []
        for lane in self.units[each.unit].unit.lanes:
            key = each.unit, lane
            if key not in self.home_registers:
                self.home_registers[key] = len(self.classes)
                self.classes.append(self.homes.registers[each.unit])
            home = VirtualLanes(self.home_registers[key], 0, 1)
            own = VirtualLanes(each.web.name, lane - each.web.first, 1)
            to, source = (home, own) if each.is_store else (own, home)
            transfers.append(Transfer(self._span(to), self._span(source)))
            made.append(Instruction("MOVE", (Operand(to),), (Operand(source),)))
        self.insertions.append(Insertion(where, EditKind.MOVE, tuple(transfers)))
        return made

    def _slot_code(self, where: At | OnEdge, transfers: list[_Transferred]) -> list[Instruction]:
        """Spills or reloads; adjacent lanes of one register are moved at once."""
        lanes = sorted(
            (t.web.name, lane, t.is_store, t.web.first, t.web.register)
            for t in transfers
            for lane in self.units[t.unit].unit.lanes
        )
        made: list[Instruction] = []
        first = 0
        for last, (name, lane, is_store, offset, register) in enumerate(lanes):
            if last + 1 < len(lanes) and lanes[last + 1][:2] == (name, lane + 1):
                continue
            start = lanes[first][1]
            own = VirtualLanes(name, start - offset, lane - start + 1)
            slots = SlotSpan(self._slot(register) + start, own.count)
            if is_store:
                self._insert(where, EditKind.SPILL, slots, self._span(own))
                made.append(Instruction("SPILL", (), (Operand(own),)))
            else:
                self._insert(where, EditKind.RELOAD, self._span(own), slots)
                made.append(Instruction("RELOAD", (Operand(own),)))
            first = last + 1
        return made

    def _insert(
        self,
        where: At | OnEdge,
        kind: EditKind,
        destination: RegisterSpan | SlotSpan,
        source: RegisterSpan | SlotSpan | At,
    ) -> None:
        self.insertions.append(Insertion(where, kind, (Transfer(destination, source),)))

    def _slot(self, register: int) -> int:
        """The slot of a register's lane 0; aligned so that four lanes can move at once."""
        if register not in self.slots:
            width = self.classes[register].width
            step = min(4, 1 << (width - 1).bit_length())
            self.next_slot += -self.next_slot % step
            self.slots[register] = self.next_slot
            self.next_slot += width
        return self.slots[register]

    def _span(self, lanes: VirtualLanes) -> RegisterSpan:
        if lanes.count == self.classes[lanes.register].width:
            return RegisterSpan(lanes.register)
        return RegisterSpan(lanes.register, lanes.first, lanes.first + lanes.count - 1)
