"""Corruptions of answers with edits: mistakes that a splitting allocator could make.

Each operator returns another answer, or raises NotApplicable. The cost is linear
in the edits.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.edits import (
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
)
from verilocc_bench.selftest.mutate import NotApplicable, choose
from verilocc_bench.targets import MaskChange

EditOperator = Callable[[AllocationProblem, Answer, random.Random], Answer]


def _with_insertions(answer: Answer, insertions: Sequence[Insertion]) -> Answer:
    return replace(answer, edits=replace(answer.edits, insertions=tuple(insertions)))


def _pick(edits: Edits, generator: random.Random, *kinds: EditKind) -> int:
    """The number of a random insertion of these kinds, or of any kind without `kinds`."""
    fitting = [n for n, i in enumerate(edits.insertions) if not kinds or i.kind in kinds]
    return choose(fitting, generator)


def _changed(answer: Answer, number: int, change: Callable[[Insertion], Insertion]) -> Answer:
    insertions = list(answer.edits.insertions)
    insertions[number] = change(insertions[number])
    return _with_insertions(answer, insertions)


def lost_move(_: AllocationProblem, answer: Answer, generator: random.Random) -> Answer:
    """An insertion is missing, or one transfer of a parallel move."""
    number = _pick(answer.edits, generator)
    insertions = list(answer.edits.insertions)
    insertion = insertions[number]
    if len(insertion.transfers) > 1 and generator.random() < 0.7:
        kept = list(insertion.transfers)
        del kept[generator.randrange(len(kept))]
        insertions[number] = replace(insertion, transfers=tuple(kept))
    else:
        del insertions[number]
    return _with_insertions(answer, insertions)


def lost_replacement(_: AllocationProblem, answer: Answer, generator: random.Random) -> Answer:
    """An operand keeps its own place."""
    left = list(answer.edits.replacements)
    left.remove(choose(left, generator))
    return replace(answer, edits=replace(answer.edits, replacements=tuple(left)))


def wrong_slot(_: AllocationProblem, answer: Answer, generator: random.Random) -> Answer:
    """A spill or a reload takes other slots: another edit's, or shifted ones."""
    number = _pick(answer.edits, generator, EditKind.SPILL, EditKind.RELOAD)

    def change(insertion: Insertion) -> Insertion:
        (transfer,) = insertion.transfers
        end, slots = "destination", transfer.destination
        if insertion.kind is EditKind.RELOAD:
            end, slots = "source", transfer.source  # type: ignore[assignment]
        assert isinstance(slots, SlotSpan)
        first = generator.choice([f for f in range(slots.first + 3) if f != slots.first])
        return replace(
            insertion, transfers=(replace(transfer, **{end: replace(slots, first=first)}),)
        )

    return _changed(answer, number, change)


def swapped_spills(_: AllocationProblem, answer: Answer, generator: random.Random) -> Answer:
    """Two spills, or two reloads, exchange their registers."""
    kind = generator.choice((EditKind.SPILL, EditKind.RELOAD))
    numbers = [n for n, i in enumerate(answer.edits.insertions) if i.kind is kind]
    if len(numbers) < 2:
        raise NotApplicable
    first, second = generator.sample(numbers, 2)
    insertions = list(answer.edits.insertions)
    wheres = insertions[first].where, insertions[second].where
    insertions[first] = replace(insertions[first], where=wheres[1])
    insertions[second] = replace(insertions[second], where=wheres[0])
    return _with_insertions(answer, insertions)


def wrong_lanes(problem: AllocationProblem, answer: Answer, generator: random.Random) -> Answer:
    """A transfer, or a replaced operand, takes other lanes of the register."""
    spans = _spans(answer)
    wide = [(key, span) for key, span in spans if _width(problem, answer, span.register) > 1]
    key, span = choose(wide, generator)
    width = _width(problem, answer, span.register)
    count = width if span.first is None else (span.last or 0) - span.first + 1
    if count == width:
        # The move is replaced by two transfers that exchange lanes.
        return _crossed(answer, key, width, generator)
    first = generator.randrange(width - count + 1)
    return _put_span(answer, key, RegisterSpan(span.register, first, first + count - 1))


def _crossed(
    answer: Answer, key: tuple[str, int, int], width: int, generator: random.Random
) -> Answer:
    """A move of a whole register becomes a move that permutes its lanes."""
    what, number, index = key
    if what == "replace" or answer.edits.insertions[number].kind is not EditKind.MOVE:
        raise NotApplicable
    insertion = answer.edits.insertions[number]
    transfer = insertion.transfers[index]
    assert isinstance(transfer.destination, RegisterSpan)
    assert isinstance(transfer.source, RegisterSpan)
    order = list(range(width))
    generator.shuffle(order)
    destination, source = transfer.destination.register, transfer.source.register
    lanes = tuple(
        Transfer(RegisterSpan(destination, to, to), RegisterSpan(source, of, of))
        for to, of in enumerate(order)
    )
    transfers = insertion.transfers[:index] + lanes + insertion.transfers[index + 1 :]
    return _changed(answer, number, lambda i: replace(i, transfers=transfers))


def sequential(_: AllocationProblem, answer: Answer, generator: random.Random) -> Answer:
    """A parallel move is done one transfer after the other."""
    parallel = [n for n, i in enumerate(answer.edits.insertions) if len(i.transfers) > 1]
    number = choose(parallel, generator)
    insertion = answer.edits.insertions[number]
    transfers = list(insertion.transfers)
    generator.shuffle(transfers)
    insertions = list(answer.edits.insertions)
    insertions[number : number + 1] = [replace(insertion, transfers=(t,)) for t in transfers]
    return _with_insertions(answer, insertions)


def moved_place(problem: AllocationProblem, answer: Answer, generator: random.Random) -> Answer:
    """An insertion happens a little earlier or later, or on another edge."""
    number = _pick(answer.edits, generator)
    where = answer.edits.insertions[number].where
    blocks = problem.function.blocks
    if isinstance(where, OnEdge):
        others: list[At | OnEdge] = [
            OnEdge(where.source, s) for s in blocks[where.source].successors if s != where.target
        ]
        others += [At(where.target, 0), At(where.source, len(blocks[where.source].instructions))]
        return _changed(answer, number, lambda i: replace(i, where=generator.choice(others)))
    index = max(0, where.index + generator.choice((-2, -1, 1, 2)))
    if index > len(blocks[where.block].instructions):
        raise NotApplicable
    return _changed(answer, number, lambda i: replace(i, where=At(where.block, index)))


def masked_place(problem: AllocationProblem, answer: Answer, generator: random.Random) -> Answer:
    """An insertion goes to the wrong side of an instruction that changes the mask."""
    target = problem.target
    places: list[At | OnEdge] = []
    for block, index, instruction in problem.function.instructions():
        change = target.mask_change(instruction)
        if change & MaskChange.WIDENS:
            places += [At(block, at) for at in range(index + 1)]
        if change & MaskChange.NARROWS:
            last = len(problem.function.blocks[block].instructions)
            places += [At(block, at) for at in range(index + 1, last + 1)]
            places += [OnEdge(block, s) for s in problem.function.blocks[block].successors]
    number = _pick(answer.edits, generator)
    where = answer.edits.insertions[number].where
    block = where.source if isinstance(where, OnEdge) else where.block
    near = [p for p in places if (p.source if isinstance(p, OnEdge) else p.block) == block]
    place = choose(near, generator)
    return _changed(answer, number, lambda i: replace(i, where=place))


def wrong_constant(problem: AllocationProblem, answer: Answer, generator: random.Random) -> Answer:
    """Another constant is made again."""
    number = _pick(answer.edits, generator, EditKind.REMATERIALIZE)
    (transfer,) = answer.edits.insertions[number].transfers
    sites = [
        At(block, index)
        for block, index, instruction in problem.function.instructions()
        if instruction.opcode in problem.target.constant_opcodes
        and At(block, index) != transfer.source
    ]
    site = choose(sites, generator)
    changed = (replace(transfer, source=site),)
    return _changed(answer, number, lambda i: replace(i, transfers=changed))


def other_register(problem: AllocationProblem, answer: Answer, generator: random.Random) -> Answer:
    """A transfer, or a replaced operand, names another register."""
    key, span = choose(_spans(answer), generator)
    registers = range(len(problem.function.virtual_registers))
    other = choose([*registers, *answer.edits.new], generator)
    if _width(problem, answer, other) != _width(problem, answer, span.register):
        raise NotApplicable
    return _put_span(answer, key, replace(span, register=other))


def backwards(_: AllocationProblem, answer: Answer, generator: random.Random) -> Answer:
    """A move goes the other way."""
    number = _pick(answer.edits, generator, EditKind.MOVE)

    def change(insertion: Insertion) -> Insertion:
        turned = []
        for transfer in insertion.transfers:
            assert not isinstance(transfer.source, At)
            turned.append(Transfer(transfer.source, transfer.destination))
        return replace(insertion, transfers=tuple(turned))

    return _changed(answer, number, change)


def other_order(_: AllocationProblem, answer: Answer, generator: random.Random) -> Answer:
    """Two insertions change places in the list."""
    insertions = list(answer.edits.insertions)
    if len(insertions) < 2:
        raise NotApplicable
    at = generator.randrange(len(insertions) - 1)
    insertions[at], insertions[at + 1] = insertions[at + 1], insertions[at]
    return _with_insertions(answer, insertions)


def new_elsewhere(problem: AllocationProblem, answer: Answer, generator: random.Random) -> Answer:
    """A new register is put at another base of its class."""
    number = choose(list(answer.edits.new), generator)
    spelled = answer.edits.new[number]
    legal = problem.placements.legal
    (bases,) = [b for c, b in legal.items() if c.name == spelled] or [{}]
    name = choose(list(bases.values()), generator)
    return replace(answer, assignment={**answer.assignment, f"%{number}": name})


def old_elsewhere(problem: AllocationProblem, answer: Answer, generator: random.Random) -> Answer:
    """A register of the function is put at another base of its class."""
    number = generator.randrange(len(problem.function.virtual_registers))
    bases = problem.placements.legal[problem.function.virtual_registers[number]]
    name = choose(list(bases.values()), generator)
    return replace(answer, assignment={**answer.assignment, f"%{number}": name})


def invalid_edit(problem: AllocationProblem, answer: Answer, generator: random.Random) -> Answer:
    """An edit with a place, a size or a register that does not exist."""
    number = _pick(answer.edits, generator)
    insertion = answer.edits.insertions[number]
    blocks = problem.function.blocks
    block = generator.randrange(len(blocks))
    none = [s for s in range(len(blocks)) if s not in blocks[block].successors]
    wheres: list[At | OnEdge] = [At(len(blocks), 0), At(block, len(blocks[block].instructions) + 1)]
    wheres += [OnEdge(block, successor) for successor in none]
    unknown = RegisterSpan(len(problem.function.virtual_registers) + len(answer.edits.new))
    small = RegisterSpan(0, 0, 64)
    transfer = insertion.transfers[0]
    choices = [replace(insertion, where=where) for where in wheres]
    for span in (unknown, small):
        if isinstance(transfer.destination, RegisterSpan):
            broken = replace(transfer, destination=span)
            choices.append(replace(insertion, transfers=(broken, *insertion.transfers[1:])))
    changed = generator.choice(choices)
    return _changed(answer, number, lambda _: changed)


EDIT_OPERATORS: dict[str, EditOperator] = {
    operator.__name__: operator
    for operator in (
        lost_move,
        lost_replacement,
        wrong_slot,
        swapped_spills,
        wrong_lanes,
        sequential,
        moved_place,
        masked_place,
        wrong_constant,
        other_register,
        backwards,
        other_order,
        new_elsewhere,
        old_elsewhere,
        invalid_edit,
    )
}


def mutate_edits(
    name: str, problem: AllocationProblem, answer: Answer, generator: random.Random
) -> Answer | None:
    """The answer after one operator, or None if the operator does not apply."""
    try:
        return EDIT_OPERATORS[name](problem, answer, generator)
    except NotApplicable:
        return None


Key = tuple[str, int, int]
"""("destination" or "source", insertion, transfer) or ("replace", replacement, 0)."""


def _spans(answer: Answer) -> list[tuple[Key, RegisterSpan]]:
    """Every register span in the edits, with its place."""
    found: list[tuple[Key, RegisterSpan]] = []
    for number, insertion in enumerate(answer.edits.insertions):
        for index, transfer in enumerate(insertion.transfers):
            if isinstance(transfer.destination, RegisterSpan):
                found.append((("destination", number, index), transfer.destination))
            if isinstance(transfer.source, RegisterSpan):
                found.append((("source", number, index), transfer.source))
    for number, each in enumerate(answer.edits.replacements):
        found.append((("replace", number, 0), each.span))
    return found


def _put_span(answer: Answer, key: Key, span: RegisterSpan) -> Answer:
    what, number, index = key
    if what == "replace":
        replacements: list[Replacement] = list(answer.edits.replacements)
        replacements[number] = replace(replacements[number], span=span)
        return replace(answer, edits=replace(answer.edits, replacements=tuple(replacements)))
    insertion = answer.edits.insertions[number]
    transfers = list(insertion.transfers)
    if what == "destination":
        transfers[index] = replace(transfers[index], destination=span)
    else:
        transfers[index] = replace(transfers[index], source=span)
    return _changed(answer, number, lambda i: replace(i, transfers=tuple(transfers)))


def _width(problem: AllocationProblem, answer: Answer, register: int) -> int:
    """The width of a register; a new one has the width of the function's class that it names."""
    classes = problem.function.virtual_registers
    if register < len(classes):
        return classes[register].width
    spelled = answer.edits.new.get(register)
    return next((c.width for c in classes if c.name == spelled), 0)
