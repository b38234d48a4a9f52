"""The symbolic checker with edits, against a walk over all concrete states.

The judge of this file shares nothing with the checker's dataflow: it joins nothing. A state is what
happened on one path: where execution is, which lanes have a value, which places hold the current
value of which lane, and what the path has decided about predicates. All states are visited, one by
one, and every use looks whether its place holds its lane.
"""

from __future__ import annotations

import random

import pytest

from verilocc_bench.analysis import AllocationProblem, parse_register_name
from verilocc_bench.edits import EditedFunction, Move, Reload, Spill, edit_function, edits_to_json
from verilocc_bench.edits.findings import FindingKind
from verilocc_bench.ir import FixedUnits, Instruction, Operand, VirtualLanes
from verilocc_bench.selftest.case_answers import random_answer
from verilocc_bench.selftest.edit_mutate import EDIT_OPERATORS, mutate_edits
from verilocc_bench.selftest.generate import random_function
from verilocc_bench.selftest.random_edits import random_edits
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


def judged(seed: int, target: str) -> tuple[bool, bool, str] | None:
    """Whether the walk finds a difference, whether the checker does, and the case in words."""
    generator = random.Random(seed)
    problem = AllocationProblem(random_function(seed, registers=5, blocks=4, target=target))
    answer = random_answer(problem, generator)
    given = random_edits(problem, answer, generator, 3) if answer else None
    if given is None:
        return None
    for _ in range(generator.randrange(4)):
        operator = generator.choice(list(EDIT_OPERATORS))
        mutant = mutate_edits(operator, problem, given, generator)
        if mutant and not edit_function(problem.function, problem.target, mutant.edits)[1]:
            given = mutant
    kinds = {f.kind for f in SymbolicChecker(problem.function).check(given.assignment, given.edits)}
    if not kinds <= {FindingKind.WRONG_VALUE, FindingKind.OVERLAP, FindingKind.EARLY_CLOBBER}:
        return None
    edited, _ = edit_function(problem.function, problem.target, given.edits)
    bases = {}
    for number in edited.registers:
        base = parse_register_name(problem.target, given.assignment[f"%{number}"])
        assert base is not None
        bases[number] = base.file, base.index
    try:
        differs = Walk(edited, bases).finds_a_difference()
    except TooMany:
        return None
    story = f"{seed}\n{problem.normalized}{given.assignment}\n{edits_to_json(given.edits)}\n{kinds}"
    return differs, bool(kinds), story


@pytest.mark.slow
@pytest.mark.parametrize("target", ["gfx942", "sm_80"])
@pytest.mark.parametrize("start", range(0, 1500, 500))
def test_edited_functions_agree_with_all_their_states(start: int, target: str) -> None:
    outcomes = [judged(seed, target) for seed in range(start, start + 500)]
    found = [outcome for outcome in outcomes if outcome is not None]
    for differs, rejected, story in found:
        assert differs == rejected, story
    valid = sum(not differs for differs, _, _ in found)
    assert len(found) > 150
    assert len(found) / 10 < valid < len(found) * 9 / 10  # both verdicts are put to the test
