"""The symbolic checker with edits, against a walk over all concrete states.

The judge of this file shares nothing with the checker's dataflow: it joins
nothing. A state is what happened on one path: where execution is, which lanes
have a value, which places hold the current value of which lane, and what the
path has decided about predicates. All states are visited, one by one, and
every use looks whether its place holds its lane.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.generated import random_function
from verilocc_bench.edits import (
    At,
    EditedFunction,
    EditKind,
    Edits,
    Insertion,
    Move,
    OnEdge,
    RegisterSpan,
    Reload,
    Replacement,
    SlotSpan,
    Spill,
    Transfer,
    edit_function,
    edits_to_json,
)
from verilocc_bench.edits.findings import FindingKind
from verilocc_bench.ir import (
    FixedUnits,
    Function,
    Instruction,
    Operand,
    RegisterClass,
    VirtualLanes,
    print_function,
)
from verilocc_bench.targets import get_target
from verilocc_bench.verification.symbolic import SymbolicChecker

Lane = tuple[object, int]
Place = tuple[object, ...]
State = tuple[int, frozenset[Lane], frozenset[tuple[Place, Lane]], frozenset[tuple[Lane, bool]]]

MOST_STATES = 6_000


class TooMany(Exception):
    """More states than the walk visits."""


class Walk:
    """All states of one edited function on the places of one answer."""

    def __init__(self, edited: EditedFunction, bases: dict[int, tuple[str, int]]) -> None:
        self.edited, self.function, self.bases = edited, edited.function, bases
        self.wrong = False
        self.read_first: set[Lane] = set()

    def finds_a_difference(self) -> bool:
        blocks = self.function.blocks
        reached = {0}
        pending = [0]
        while pending:
            for successor in blocks[pending.pop()].successors:
                if successor not in reached:
                    reached.add(successor)
                    pending.append(successor)
        candidates = {lane for u in self.function.live_ins for lane in lanes_of(u)}
        candidates |= {
            lanes_of(i.guard.location)[0] for *_, i in self.function.instructions() if i.guard
        }
        # First with all candidates defined and in places of their own, which nothing overwrites:
        # those that are read before they are written hold something at the entry.
        marks = frozenset((("entry", lane), lane) for lane in candidates)
        self.visit([(0, frozenset(candidates), marks, frozenset())])
        present = self.read_first & candidates
        self.wrong = len({self.home(lane) for lane in present}) < len(present)
        self.wrong |= any(
            self.writes_twice(block, index, instruction)
            for block, index, instruction in self.function.instructions()
        )
        held = frozenset((self.home(lane), lane) for lane in present)
        starts: list[State] = [(0, frozenset(present), held, frozenset())]
        apart = [block for block in range(len(blocks)) if block not in reached]
        starts += [(block, frozenset(), frozenset(), frozenset()) for block in apart]
        self.visit(starts)
        return self.wrong

    def visit(self, pending: list[State]) -> None:
        seen = set(pending)
        while pending:
            for state in self.block(pending.pop()):
                if state not in seen:
                    seen.add(state)
                    pending.append(state)
                    if len(seen) > MOST_STATES:
                        raise TooMany

    def home(self, lane: Lane) -> Place:
        return self.place(VirtualLanes(lane[0], lane[1], 1)) if isinstance(lane[0], int) else lane

    def place(self, lanes: VirtualLanes, offset: int = 0) -> Place:
        file, base = self.bases[lanes.register]
        return file, base + lanes.first + offset

    def block(self, state: State) -> list[State]:
        number, *facts = state
        block = self.function.blocks[number]
        states = [tuple(facts)]
        for index, instruction in enumerate(block.instructions):
            actions = self.edited.before.get((number, index), ())
            states = [self.actions(each, actions) for each in states]
            last = index == len(block.instructions) - 1
            if block.branch_guard is not None and last:
                found = []
                for each in states:
                    for acts, after in self.execute(number, index, instruction, each):
                        found += self.edge(number, block.successors[0 if acts else 1], after)
                return found
            states = list(
                {after for s in states for _, after in self.execute(number, index, instruction, s)}
            )
        actions = self.edited.before.get((number, len(block.instructions)), ())
        states = [self.actions(each, actions) for each in states]
        return [
            s for each in states for to in block.successors for s in self.edge(number, to, each)
        ]

    def edge(self, source: int, target: int, facts: tuple) -> list[State]:
        return [(target, *self.actions(facts, self.edited.on_edge.get((source, target), ())))]

    def actions(self, facts: tuple, actions: tuple) -> tuple:
        defined, held, decided = facts
        for action in actions:
            if isinstance(action, Move):
                spans = [
                    (self.place(to, n), self.place(of, n))
                    for to, of in action.pairs
                    for n in range(to.count)
                ]
            elif isinstance(action, Spill):
                spans = [
                    (("slot", action.slots.first + n), self.place(action.source, n))
                    for n in range(action.source.count)
                ]
            elif isinstance(action, Reload):
                spans = [
                    (self.place(action.destination, n), ("slot", action.slots.first + n))
                    for n in range(action.slots.count)
                ]
            else:
                spans = [
                    (self.place(action.destination, n), ("made", action.block, action.index, n))
                    for n in range(action.destination.count)
                ]
            written = {to for to, _ in spans}
            given = {(to, lane) for to, of in spans for place, lane in held if place == of}
            held = frozenset({fact for fact in held if fact[0] not in written} | given)
        return defined, held, decided

    def look(self, lane: Lane, place: Place, defined: frozenset, held: frozenset) -> None:
        if lane in defined and (place, lane) not in held:
            self.wrong = True

    def execute(self, block: int, index: int, instruction: Instruction, facts: tuple) -> list:
        defined, held, decided = facts
        guard = instruction.guard
        acting = [facts]
        outcomes = []
        if guard is not None:
            lane = lanes_of(guard.location)[0]
            if (("entry", lane), lane) in held:
                self.read_first.add(lane)
            instead = self.edited.replaced.get((block, index, -1))
            place = self.home(lane) if instead is None else self.place(instead)
            self.look(lane, place, defined, held)
            known = [value for predicate, value in decided if predicate == lane]
            acting = []
            for value in known or (False, True):
                after = (defined, held, decided | {(lane, value)})
                if value != guard.negated:
                    acting.append(after)
                else:
                    outcomes.append((False, after))
        for each in acting:
            outcomes += [(True, after) for after in self.act(block, index, instruction, each)]
        return outcomes

    def writes(
        self, block: int, index: int, instruction: Instruction
    ) -> list[tuple[Lane, Place, bool]]:
        """The lanes that an instruction defines, where, and whether early."""
        found = []
        for number, operand in enumerate(instruction.definitions):
            instead = self.edited.replaced.get((block, index, number))
            for n, lane in enumerate(lanes_of(operand.location)):
                place = self.home(lane) if instead is None else self.place(instead, n)
                found.append((lane, place, operand.early_clobber))
        return found

    def writes_twice(self, block: int, index: int, instruction: Instruction) -> bool:
        writes = self.writes(block, index, instruction)
        return any(p == place and lane != own for own, p, _ in writes for lane, place, _ in writes)

    def act(self, block: int, index: int, instruction: Instruction, facts: tuple) -> list:
        defined, held, decided = facts
        writes = self.writes(block, index, instruction)
        ended: set[Lane] = set()
        for operand in instruction.definitions:
            if operand.undef and isinstance(operand.location, VirtualLanes):
                register = operand.location.register
                width = self.function.virtual_registers[register].width
                ended |= {(register, n) for n in range(width)}
        early = {(place, lane) for lane, place, is_early in writes if is_early}
        operands = list(enumerate(instruction.uses, len(instruction.definitions)))
        if instruction.guard is not None:
            operands.append((-1, Operand(instruction.guard.location)))
        for number, operand in operands:
            if operand.undef:
                continue
            instead = self.edited.replaced.get((block, index, number))
            for n, lane in enumerate(lanes_of(operand.location)):
                if (("entry", lane), lane) in held:
                    self.read_first.add(lane)
                place = self.home(lane) if instead is None else self.place(instead, n)
                self.look(lane, place, defined, held)
                if lane in defined and any(p == place and own != lane for p, own in early):
                    self.wrong = True
        new = {lane for lane, _, _ in writes}
        places = {place for _, place, _ in writes}
        ended -= new
        left = {f for f in held if f[0] not in places and f[1] not in new | ended}
        for lane in new:
            own = {place for other, place, _ in writes if other == lane}
            left |= {(place, lane) for place in own if len(own) == 1}
        for operand in instruction.definitions:
            left |= {
                (("made", block, index, n), lane)
                for n, lane in enumerate(lanes_of(operand.location))
            }
        known = frozenset(d for d in decided if d[0] not in new | ended)
        return [(frozenset((defined - ended) | new), frozenset(left), known)]


def lanes_of(location: FixedUnits | VirtualLanes) -> list[Lane]:
    owner = location.file if isinstance(location, FixedUnits) else location.register
    return [(owner, location.first + n) for n in range(location.count)]


def with_constants(function: Function, generator: random.Random) -> Function:
    """Some instructions of one definition become moves of constants."""
    opcode = "MOV" if function.target == "sm_80" else "V_MOV_B32"

    def change(instruction: Instruction) -> Instruction:
        if len(instruction.definitions) == 1 and generator.random() < 0.3:
            return Instruction(opcode, instruction.definitions)
        return instruction

    blocks = [replace(b, instructions=tuple(map(change, b.instructions))) for b in function.blocks]
    return replace(function, blocks=tuple(blocks))


class Editor:
    """Draws edits: most are such as a splitting allocator makes, some are anything."""

    def __init__(self, function: Function, generator: random.Random) -> None:
        self.function, self.generator = function, generator
        self.classes = dict(enumerate(function.virtual_registers))
        names = {c.name: c for c in function.virtual_registers}
        count = len(self.classes)
        self.new: dict[int, str] = {}
        for number in range(count, count + generator.randrange(3)):
            self.new[number] = generator.choice(list(names))
            self.classes[number] = names[self.new[number]]
        self.insertions: list[Insertion] = []
        self.replacements: list[Replacement] = []

    def edits(self) -> Edits:
        for _ in range(self.generator.randrange(1, 5)):
            self.generator.choice(
                (self.split, self.split, self.spill, self.spill, self.move, self.make_again)
            )()
        return Edits(self.new, tuple(self.insertions), tuple(self.replacements))

    def where(self) -> At | OnEdge:
        blocks = self.function.blocks
        block = self.generator.randrange(len(blocks))
        if blocks[block].successors and self.generator.random() < 0.25:
            return OnEdge(block, self.generator.choice(blocks[block].successors))
        return At(block, self.generator.randint(0, len(blocks[block].instructions)))

    def span(self, count: int) -> RegisterSpan | None:
        fitting = [n for n, c in self.classes.items() if c.width >= count]
        if not fitting:
            return None
        register = self.generator.choice(fitting)
        first = self.generator.randint(0, self.classes[register].width - count)
        return RegisterSpan(register, first, first + count - 1)

    def split(self) -> None:
        """An operand is read from, or written to, another register, with a move beside it."""
        found = [
            (block, index, number, operand.location)
            for block, index, i in self.function.instructions()
            for number, operand in enumerate((*i.definitions, *i.uses))
            if isinstance(operand.location, VirtualLanes)
        ] + [
            (block, index, -1, i.guard.location)
            for block, index, i in self.function.instructions()
            if i.guard is not None and isinstance(i.guard.location, VirtualLanes)
        ]
        if not found:
            return
        block, index, number, own = self.generator.choice(found)
        other = self.span(own.count)
        if other is None:
            return
        instruction = self.function.blocks[block].instructions[index]
        original = RegisterSpan(own.register, own.first, own.first + own.count - 1)
        at, pair = At(block, index), (other, original)
        if 0 <= number < len(instruction.definitions):
            at, pair = At(block, index + 1), (original, other)
        self.replacements.append(Replacement(block, index, number, other))
        if self.generator.random() < 0.9:
            self.insertions.append(Insertion(at, EditKind.MOVE, (Transfer(*pair),)))

    def spill(self) -> None:
        count = self.generator.choice((1, 1, 2))
        span = self.span(count)
        if span is None:
            return
        slots = SlotSpan(self.generator.randrange(2), count)
        self.insertions.append(Insertion(self.where(), EditKind.SPILL, (Transfer(slots, span),)))
        back = span if self.generator.random() < 0.7 else self.span(count)
        assert back is not None
        if self.generator.random() < 0.8:
            reload = Transfer(back, slots)
            self.insertions.append(Insertion(self.where(), EditKind.RELOAD, (reload,)))

    def move(self) -> None:
        transfers = []
        for _ in range(self.generator.randint(1, 2)):
            destination, source = self.span(1), self.span(1)
            assert destination is not None
            assert source is not None
            transfers.append(Transfer(destination, source))
        self.insertions.append(Insertion(self.where(), EditKind.MOVE, tuple(transfers)))

    def make_again(self) -> None:
        constants = [
            (block, index, i.definitions[0].location)
            for block, index, i in self.function.instructions()
            if i.opcode != "OP"
        ]
        if not constants:
            return
        block, index, location = self.generator.choice(constants)
        span = self.span(location.count)
        if self.generator.random() < 0.6 and isinstance(location, VirtualLanes):
            last = location.first + location.count - 1
            span = RegisterSpan(location.register, location.first, last)
        if span is not None:
            transfer = Transfer(span, At(block, index))
            self.insertions.append(Insertion(self.where(), EditKind.REMATERIALIZE, (transfer,)))


def judged(seed: int, *, guarded: bool) -> tuple[bool, bool, str] | None:
    """Whether the walk finds a difference, whether the checker does, and the case in words."""
    generator = random.Random(seed)
    function = random_function(seed, registers=5, blocks=4, guarded=guarded)
    function = with_constants(function, generator)
    target = get_target(function.target)
    if not function.virtual_registers:
        return None
    editor = Editor(function, generator)
    edits = editor.edits()
    edited, findings = edit_function(function, target, edits)
    if findings:
        return None
    bases = {n: drawn_base(c, generator) for n, c in edited.registers.items()}
    checker = SymbolicChecker(function)
    for _ in range(12):
        answer = {f"%{n}": name(base) for n, base in bases.items()}
        if not checker.check(
            {f"%{n}": answer[f"%{n}"] for n in range(len(function.virtual_registers))}
        ):
            break
        bases = {n: drawn_base(c, generator) for n, c in edited.registers.items()}
    answer = {f"%{n}": name(base) for n, base in bases.items()}
    kinds = {finding.kind for finding in checker.check(answer, edits)}
    try:
        differs = Walk(edited, bases).finds_a_difference()
    except TooMany:
        return None
    story = f"seed {seed}\n{print_function(function)}\n{answer}\n{edits_to_json(edits)}\n{kinds}"
    return differs, FindingKind.WRONG_VALUE in kinds, story


def drawn_base(register_class: RegisterClass, generator: random.Random) -> tuple[str, int]:
    bases = generator.choice(register_class.ranges)
    return bases.file, generator.choice(list(bases))


def name(base: tuple[str, int]) -> str:
    return f"vcc_{('lo', 'hi')[base[1]]}" if base[0] == "vcc" else f"{base[0]}{base[1]}"


@pytest.mark.slow
@pytest.mark.parametrize("guarded", [False, True], ids=["plain", "guarded"])
@pytest.mark.parametrize("start", range(0, 1500, 500))
def test_edited_functions_agree_with_all_their_states(start: int, guarded: bool) -> None:
    found = [
        outcome
        for seed in range(start, start + 500)
        if (outcome := judged(seed, guarded=guarded)) is not None
    ]
    for differs, rejected, story in found:
        assert differs == rejected, story
    valid = sum(not differs for differs, _, _ in found)
    assert len(found) > 150
    assert len(found) / 10 < valid < len(found) * 9 / 10  # both verdicts are put to the test
