"""Removes a part of a case and shifts its edits. Each function is linear in the case."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from verilocc_bench.edits import At, Edits, Insertion, OnEdge, Replacement
from verilocc_bench.ir import Block, FixedUnits, Function, Instruction, Operand
from verilocc_bench.selftest.case import Case

MovePlace = Callable[[int, int], tuple[int, int] | None]
"""The new place of an instruction, or of the place before it; None if it is gone."""


def without_instructions(case: Case, places: frozenset[tuple[int, int]]) -> Case:
    """The case without these instructions."""
    blocks = tuple(
        replace(
            block,
            instructions=tuple(
                each for i, each in enumerate(block.instructions) if (b, i) not in places
            ),
        )
        for b, block in enumerate(case.function.blocks)
    )

    def before(block: int, index: int) -> tuple[int, int]:
        return block, index - sum(1 for b, i in places if b == block and i < index)

    def instruction(block: int, index: int) -> tuple[int, int] | None:
        return None if (block, index) in places else before(block, index)

    return _moved(case, blocks, before, instruction, lambda source, target: (source, target))


def without_block(case: Case, gone: int, *, bypass: bool) -> Case | None:
    """The case without a block; with `bypass`, its predecessors lead to its successors."""
    if gone == 0:
        return None
    dropped = case.function.blocks[gone]

    def number(block: int) -> int:
        return block - (block > gone)

    blocks = []
    for b, block in enumerate(case.function.blocks):
        if b == gone:
            continue
        following: list[int] = []
        for successor in block.successors:
            if successor != gone:
                following.append(successor)
            elif bypass:
                following += [s for s in dropped.successors if s != gone]
        successors = tuple(dict.fromkeys(number(s) for s in following))
        blocks.append(replace(block, successors=successors))

    def place(block: int, index: int) -> tuple[int, int] | None:
        return None if block == gone else (number(block), index)

    def edge(source: int, target: int) -> tuple[int, int] | None:
        return None if gone in (source, target) else (number(source), number(target))

    return _moved(case, tuple(blocks), place, place, edge)


def without_edge(case: Case, source: int, target: int) -> Case:
    """The case without an edge."""
    blocks = list(case.function.blocks)
    successors = tuple(s for s in blocks[source].successors if s != target)
    blocks[source] = replace(blocks[source], successors=successors)

    def edge(first: int, second: int) -> tuple[int, int] | None:
        return None if (first, second) == (source, target) else (first, second)

    return _moved(case, tuple(blocks), _same, _same, edge)


def with_joined_blocks(case: Case, first: int) -> Case | None:
    """The case with a block and its only successor joined."""
    blocks = case.function.blocks
    if len(blocks[first].successors) != 1:
        return None
    (second,) = blocks[first].successors
    entered = sum(second in block.successors for block in blocks)
    if second in (0, first) or entered != 1:
        return None
    length = len(blocks[first].instructions)
    joined = Block(
        blocks[first].instructions + blocks[second].instructions, blocks[second].successors
    )

    def number(block: int) -> int:
        block = first if block == second else block
        return block - (block > second)

    kept = [joined if b == first else block for b, block in enumerate(blocks) if b != second]
    renamed = tuple(
        replace(block, successors=tuple(number(s) for s in block.successors)) for block in kept
    )

    def place(block: int, index: int) -> tuple[int, int]:
        return number(block), index + (length if block == second else 0)

    def edge(source: int, target: int) -> tuple[int, int] | None:
        return None if (source, target) == (first, second) else (number(source), number(target))

    return _moved(case, renamed, place, place, edge)


def without_operand(case: Case, block: int, index: int, operand: int) -> Case | None:
    """The case without an operand of an instruction; -1 is its guard."""
    instruction = case.function.blocks[block].instructions[index]
    count = len(instruction.definitions)
    if operand < 0:
        if instruction.guard is None:
            return None
        changed = replace(instruction, guard=None)
    elif operand < count:
        definitions = _without(instruction.definitions, operand)
        uses = tuple(replace(u, tied_to=_shifted(u.tied_to, operand)) for u in instruction.uses)
        changed = replace(instruction, definitions=definitions, uses=uses)
    else:
        changed = replace(instruction, uses=_without(instruction.uses, operand - count))
    function = _with_instruction(case.function, block, index, changed)
    if case.edits is None:
        return replace(case, function=function)
    replacements = []
    for each in case.edits.replacements:
        here = (each.block, each.index) == (block, index)
        if here and each.operand == operand:
            continue
        later = here and 0 <= operand < each.operand
        replacements.append(replace(each, operand=each.operand - 1) if later else each)
    edits = replace(case.edits, replacements=tuple(replacements))
    return replace(case, function=function, edits=edits)


def without_marks(case: Case, block: int, index: int, operand: int) -> Case | None:
    """The case with an operand without its marks."""
    instruction = case.function.blocks[block].instructions[index]
    operands = list(instruction.definitions + instruction.uses)
    if operand < 0 or operands[operand] == Operand(operands[operand].location):
        return None
    operands[operand] = Operand(operands[operand].location)
    count = len(instruction.definitions)
    changed = replace(
        instruction, definitions=tuple(operands[:count]), uses=tuple(operands[count:])
    )
    return replace(case, function=_with_instruction(case.function, block, index, changed))


def without_destruction(case: Case, block: int, index: int) -> Case | None:
    """The case with an instruction that destroys nothing."""
    instruction = case.function.blocks[block].instructions[index]
    if not instruction.destroys:
        return None
    changed = replace(instruction, destroys=())
    return replace(case, function=_with_instruction(case.function, block, index, changed))


def without_destroyed(case: Case, mask: tuple[FixedUnits, ...], number: int) -> Case | None:
    """The case whose instructions leave one run of a mask alone."""
    left = _without(mask, number)
    blocks = tuple(
        replace(
            block,
            instructions=tuple(
                replace(each, destroys=left) if each.destroys == mask else each
                for each in block.instructions
            ),
        )
        for block in case.function.blocks
    )
    return replace(case, function=replace(case.function, blocks=blocks))


def without_insertion(case: Case, number: int) -> Case:
    """The case without an insertion."""
    assert case.edits is not None
    left = _without(case.edits.insertions, number)
    return replace(case, edits=replace(case.edits, insertions=left))


def without_transfer(case: Case, number: int, index: int) -> Case | None:
    """The case without one transfer of a parallel move."""
    assert case.edits is not None
    insertions = list(case.edits.insertions)
    transfers = insertions[number].transfers
    if len(transfers) < 2:
        return None
    insertions[number] = replace(insertions[number], transfers=_without(transfers, index))
    return replace(case, edits=replace(case.edits, insertions=tuple(insertions)))


def without_replacement(case: Case, number: int) -> Case:
    """The case with an operand in its own place again."""
    assert case.edits is not None
    left = _without(case.edits.replacements, number)
    return replace(case, edits=replace(case.edits, replacements=left))


def _without(items: tuple, index: int) -> tuple:  # type: ignore[type-arg]
    return items[:index] + items[index + 1 :]


def _shifted(tied_to: int | None, dropped: int) -> int | None:
    if tied_to is None or tied_to == dropped:
        return None
    return tied_to - (tied_to > dropped)


def _same(block: int, index: int) -> tuple[int, int]:
    return block, index


def _with_instruction(
    function: Function, block: int, index: int, instruction: Instruction
) -> Function:
    blocks = list(function.blocks)
    instructions = list(blocks[block].instructions)
    instructions[index] = instruction
    blocks[block] = replace(blocks[block], instructions=tuple(instructions))
    return replace(function, blocks=tuple(blocks))


def _moved(
    case: Case,
    blocks: tuple[Block, ...],
    before: MovePlace,
    instruction: MovePlace,
    edge: MovePlace,
) -> Case:
    """The case with other blocks, and its edits at their new places."""
    function = replace(case.function, blocks=blocks)
    if case.edits is None:
        return replace(case, function=function)
    insertions: list[Insertion] = []
    for insertion in case.edits.insertions:
        where = insertion.where
        is_edge = isinstance(where, OnEdge)
        now = edge(where.source, where.target) if is_edge else before(where.block, where.index)  # type: ignore[union-attr]
        source = insertion.transfers[0].source
        made_at = instruction(source.block, source.index) if isinstance(source, At) else (0, 0)
        if now is None or made_at is None:
            continue
        transfers = insertion.transfers
        if isinstance(source, At):
            transfers = (replace(transfers[0], source=At(*made_at)),)
        place = OnEdge(*now) if is_edge else At(*now)
        insertions.append(replace(insertion, where=place, transfers=transfers))
    replacements: list[Replacement] = []
    for each in case.edits.replacements:
        found = instruction(each.block, each.index)
        if found is not None:
            replacements.append(replace(each, block=found[0], index=found[1]))
    edits = Edits(case.edits.new, tuple(insertions), tuple(replacements))
    return replace(case, function=function, edits=edits)
