"""Random edits of a valid answer that should leave it valid.

Each edit takes a stretch of a block in which the units that it needs are free. A
register moves to another one there, two registers exchange places, a register
waits in a spill slot while its own register is overwritten, a constant is made
again for one use, or a value crosses the edges of a block in a slot. Taken units
are marked, so edits do not disturb each other. The generator ignores some
subtleties of guards and partial values, so some answers are wrong; the judges
must find them. Each edit costs time linear in the lanes of the function.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.edits import (
    GUARD,
    Answer,
    At,
    EditKind,
    Edits,
    Insertion,
    OnEdge,
    RegisterSpan,
    Replacement,
    SlotSpan,
    Transfer,
    VectorPlaces,
)
from verilocc_bench.ir import Instruction, VirtualLanes
from verilocc_bench.targets import MaskChange

Stretch = tuple[int, int, int]
"""A block and two places in it; insertions stand before these instructions."""


def random_edits(
    problem: AllocationProblem, answer: Mapping[str, str], generator: random.Random, count: int = 2
) -> Answer | None:
    """The answer with up to `count` edits, or None if no edit fits."""
    editor = _RandomEditor(problem, answer, generator)
    kinds = [editor.split, editor.swap, editor.spill, editor.over_edges]
    # Constants with a single definition are rare.
    kinds += [editor.rematerialize] * 3
    made = 0
    for _ in range(8 * count):
        made += generator.choice(kinds)()
        if made == count:
            break
    return editor.result() if made else None


class _RandomEditor:
    def __init__(
        self, problem: AllocationProblem, answer: Mapping[str, str], generator: random.Random
    ) -> None:
        self.problem, self.function = problem, problem.function
        self.generator = generator
        self.classes = list(self.function.virtual_registers)
        names = problem.placements.by_name
        self.base = [names[c][answer[f"%{n}"]] for n, c in enumerate(self.classes)]
        self.assignment = dict(answer)
        self.new: dict[int, str] = {}
        self.insertions: list[Insertion] = []
        self.replacements: list[Replacement] = []
        self.replaced: set[tuple[int, int, int]] = set()
        self.slots = 0
        self.held: dict[int, list[tuple[int, int]]] = {}
        self.touched = [0] * len(self.classes)
        sources = problem.target.move_sources
        self.movable = [
            number
            for number, register_class in enumerate(self.classes)
            if all(file in sources for file in register_class.files)
        ]
        self.vector_places = VectorPlaces(self.function, problem.target)
        self._hold_all()

    def _hold_all(self) -> None:
        """Notes for every unit the registers that hold it, and their points."""
        liveness, placements = self.problem.liveness, self.problem.placements
        for register, base in enumerate(self.base):
            first = liveness.lane_offsets[register]
            for lane in range(self.classes[register].width):
                held = (register, liveness.live[first + lane])
                self.held.setdefault(base + lane, []).append(held)
        for lane, (file, index) in enumerate(liveness.fixed_lanes, liveness.virtual_lane_count):
            unit = placements.first_unit[file] + index
            self.held.setdefault(unit, []).append((-1, liveness.live[lane]))

    def result(self) -> Answer:
        edits = Edits(self.new, tuple(self.insertions), tuple(self.replacements))
        return Answer(self.assignment, edits)

    # Where edits fit.

    def stretch(self, vector: bool, block: int | None = None) -> Stretch | None:
        if block is None:
            block = self.generator.randrange(len(self.function.blocks))
        first, last = self.bounds(block, vector)
        if last - first < 1:
            return None
        begin, end = sorted(self.generator.sample(range(first, last + 1), 2))
        return block, begin, end

    def bounds(self, block: int, vector: bool) -> tuple[int, int]:
        """The first and the last place for insertions in a block; (1, 0) without a place."""
        each = self.function.blocks[block]
        target = self.problem.target
        first, last = 1, len(each.instructions) - (each.branch_guard is not None)
        for index, instruction in enumerate(each.instructions):
            if target.terminators.fullmatch(instruction.opcode):
                last = min(last, index)
            change = target.mask_change(instruction) if vector else MaskChange.NONE
            if change & MaskChange.WIDENS:
                first = index + 1
            if change & MaskChange.NARROWS:
                last = min(last, index)
        first = max(first, 1)
        if vector and first <= last and any(self.vector_places.objections(block, first)):
            return 1, 0  # only some of the threads execute the block
        return first, last

    def points(self, stretch: Stretch) -> int:
        block, begin, end = stretch
        after = self.problem.liveness.after[block]
        return (2 << after[end - 1]) - (1 << after[begin - 1])

    def is_free(self, register: int, base: int, points: int, but: tuple[int, ...] = ()) -> bool:
        """True if no other register holds the units of a register at these points."""
        return not any(
            mask & points
            for unit in range(base, base + self.classes[register].width)
            for holder, mask in self.held.get(unit, ())
            if holder not in but
        )

    def is_untouched(self, registers: Iterable[int], points: int) -> bool:
        return not any(self.touched[register] & points for register in registers)

    def some_register(self, point: int | None = None) -> int:
        """A random register, mostly one that can be moved and holds a value at `point`."""
        liveness = self.problem.liveness
        registers: Sequence[int] = range(len(self.function.virtual_registers))
        if self.movable and self.generator.random() < 0.97:
            registers = self.movable
        if point is not None and self.generator.random() < 0.9:
            living = [
                r
                for r in registers
                if any(
                    liveness.live[liveness.lane_offsets[r] + lane] >> point & 1
                    for lane in range(self.classes[r].width)
                )
            ]
            if living:
                return self.generator.choice(living)
        return self.generator.choice(registers)

    def is_vector(self, register: int) -> bool:
        masked = self.problem.target.masked_files
        # Sometimes the rule for vector registers is ignored.
        return not masked.isdisjoint(self.classes[register].files) and (
            self.generator.random() < 0.97
        )

    def place_new(self, like: int, points: int) -> int | None:
        """A new register of the class of `like`, in units free at these points, or None."""
        legal = self.problem.placements.legal[self.classes[like]]
        bases = [base for base in legal if self.is_free(like, base, points)]
        if not bases:
            return None
        number, base = len(self.classes), self.generator.choice(bases)
        self.classes.append(self.classes[like])
        self.base.append(base)
        self.touched.append(points)
        self.new[number] = self.classes[like].name
        self.assignment[f"%{number}"] = legal[base]
        for unit in range(base, base + self.classes[like].width):
            self.held.setdefault(unit, []).append((number, points))
        return number

    def insert(self, where: At | OnEdge, kind: EditKind, *pairs: tuple[object, object]) -> None:
        transfers = tuple(Transfer(*pair) for pair in pairs)  # type: ignore[arg-type]
        self.insertions.append(Insertion(where, kind, transfers))

    def move(self, where: At | OnEdge, *pairs: tuple[int, int]) -> None:
        spans = [(RegisterSpan(to), RegisterSpan(of)) for to, of in pairs]
        self.insert(where, EditKind.MOVE, *spans)

    def replace(self, stretch: Stretch, other: Mapping[int, int]) -> bool:
        """Replaces registers in a stretch. True if definitions are among the operands."""
        block, begin, end = stretch
        written = False
        for index in range(begin, end):
            instruction = self.function.blocks[block].instructions[index]
            for operand, lanes in _operands(instruction):
                if lanes.register in other and (block, index, operand) not in self.replaced:
                    span = self.span(other[lanes.register], lanes)
                    self.replaced.add((block, index, operand))
                    self.replacements.append(Replacement(block, index, operand, span))
                    written |= 0 <= operand < len(instruction.definitions)
        return written

    def span(self, register: int, lanes: VirtualLanes) -> RegisterSpan:
        if lanes.count == self.classes[register].width:
            return RegisterSpan(register)
        return RegisterSpan(register, lanes.first, lanes.first + lanes.count - 1)

    # The kinds of edits; each returns True if it found a place.

    def draw(self) -> tuple[int, Stretch, int] | None:
        """A register and a stretch in which no edit touches it yet, with its points."""
        guess = self.stretch(False)
        if guess is None:
            return None
        register = self.some_register(self.problem.liveness.after[guess[0]][guess[1] - 1])
        stretch = self.stretch(self.is_vector(register), guess[0])
        if stretch is None:
            return None
        points = self.points(stretch)
        return (register, stretch, points) if self.is_untouched((register,), points) else None

    def split(self) -> bool:
        """A register lives in another one for a while."""
        drawn = self.draw()
        if drawn is None:
            return False
        register, stretch, points = drawn
        new = self.place_new(register, points)
        if new is None:
            return False
        block, begin, end = stretch
        self.move(At(block, begin), (new, register))
        written = self.replace(stretch, {register: new})
        if written or self.generator.random() < 0.4:
            self.move(At(block, end), (register, new))
        self.touched[register] |= points
        return True

    def swap(self) -> bool:
        """Two registers of one class exchange places for a while."""
        drawn = self.draw()
        if drawn is None:
            return False
        register, (block, begin, end), points = drawn
        others = [
            other
            for other in range(len(self.function.virtual_registers))
            if other != register
            and self.classes[other] == self.classes[register]
            and self.base[other] != self.base[register]
            and self.is_untouched((other,), points)
            and self.is_free(other, self.base[other], points, (register, other))
        ]
        if not others or not self.is_free(register, self.base[register], points, (register,)):
            return False
        other = self.generator.choice(others)
        self.move(At(block, begin), (register, other), (other, register))
        self.replace((block, begin, end), {register: other, other: register})
        self.move(At(block, end), (register, other), (other, register))
        self.touched[register] |= points
        self.touched[other] |= points
        return True

    def spill(self) -> bool:
        """A register waits in a slot, mostly while its own place is overwritten."""
        drawn = self.draw()
        if drawn is None:
            return False
        register, (block, begin, end), points = drawn
        body = self.function.blocks[block].instructions[begin:end]
        if any(lanes.register == register for each in body for _, lanes in _operands(each)):
            return False
        slots = self.new_slots(register)
        if slots is None:
            return False
        self.insert(At(block, begin), EditKind.SPILL, (slots, RegisterSpan(register)))
        if self.is_free(register, self.base[register], points, (register,)):
            self.clobber(At(block, begin), register)
        else:
            return True
        self.insert(At(block, end), EditKind.RELOAD, (RegisterSpan(register), slots))
        self.touched[register] |= points
        return True

    def new_slots(self, register: int) -> SlotSpan | None:
        if not self.problem.target.spill_files.issuperset(self.classes[register].files):
            return None
        slots = SlotSpan(self.slots, self.classes[register].width)
        self.slots += slots.count
        return slots

    def clobber(self, where: At, register: int) -> None:
        """Overwrites a register with another of its class, if there is one."""
        others = [r for r, c in enumerate(self.classes) if c == self.classes[register]]
        if self.generator.random() < 0.8:
            self.move(where, (register, self.generator.choice(others)))

    def rematerialize(self) -> bool:
        """A constant is made again for one use of a register that has no other definition."""
        target = self.problem.target
        sites: dict[int, list[At]] = {}
        uses: list[tuple[int, At, int, VirtualLanes]] = []
        for block, index, instruction in self.function.instructions():
            is_constant = instruction.opcode in target.constant_opcodes and not instruction.uses
            for operand, lanes in _operands(instruction):
                if not 0 <= operand < len(instruction.definitions):
                    uses.append((lanes.register, At(block, index), operand, lanes))
                    continue
                right = is_constant and instruction.guard is None
                whole = lanes.count == self.classes[lanes.register].width
                at = At(block, index if right and whole else -1)
                sites.setdefault(lanes.register, []).append(at)
        single = {r for r, found in sites.items() if len(found) == 1 and found[0].index >= 0}
        options = [use for use in uses if use[0] in single and use[0] in self.movable]
        if not options:
            return False
        register, at, operand, lanes = self.generator.choice(options)
        first, last = self.bounds(at.block, self.is_vector(register))
        if not first <= at.index <= last or (at.block, at.index, operand) in self.replaced:
            return False
        new = self.place_new(register, self.points((at.block, at.index, at.index + 1)))
        if new is None:
            return False
        self.insert(at, EditKind.REMATERIALIZE, (RegisterSpan(new), sites[register][0]))
        self.replaced.add((at.block, at.index, operand))
        span = self.span(new, lanes)
        self.replacements.append(Replacement(at.block, at.index, operand, span))
        return True

    def over_edges(self) -> bool:
        """A register crosses the edges out of a block in a slot."""
        block = self.generator.randrange(len(self.function.blocks))
        each = self.function.blocks[block]
        if not each.instructions or not each.successors:
            return False
        point = self.problem.liveness.after[block][-1]
        register = self.some_register(point)
        first, last = self.bounds(block, self.is_vector(register))
        slots = self.new_slots(register)
        at_end = each.instructions[last:]
        used = any(lanes.register == register for i in at_end for _, lanes in _operands(i))
        if slots is None or last < first or used:
            return False
        points = self.points((block, last, len(each.instructions)))
        free = self.is_free(register, self.base[register], points, (register,))
        if not free or not self.is_untouched((register,), points):
            return False
        where = At(block, last)
        self.insert(where, EditKind.SPILL, (slots, RegisterSpan(register)))
        self.clobber(where, register)
        for successor in each.successors:
            edge = OnEdge(block, successor)
            self.insert(edge, EditKind.RELOAD, (RegisterSpan(register), slots))
        self.touched[register] |= points
        return True


def _operands(instruction: Instruction) -> Iterable[tuple[int, VirtualLanes]]:
    """The virtual operands with their numbers."""
    if instruction.guard is not None and isinstance(instruction.guard.location, VirtualLanes):
        yield GUARD, instruction.guard.location
    for number, operand in enumerate(instruction.definitions + instruction.uses):
        if isinstance(operand.location, VirtualLanes):
            yield number, operand.location
