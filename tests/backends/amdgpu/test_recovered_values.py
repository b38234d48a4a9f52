"""Recovered webs of random code keep every value, by executions of both.

The code runs on four lanes, once in its own registers, and once with a storage of its own for
each web. There a definition that does not read its own register leaves nothing in the lanes that
EXEC does not select: something else may have been in its register before.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence

from tests.backends.amdgpu.recovered_code import (
    LIVE_IN,
    PAIRS,
    following,
    reachable,
    recovered_code,
    terms,
)
from verilocc_bench.backends.amdgpu.recovery.execution_mask import MaskFlow, analyse_mask
from verilocc_bench.backends.amdgpu.recovery.flow import find_blocks
from verilocc_bench.backends.amdgpu.recovery.records import (
    FIRST_VCC,
    CodeBlock,
    RecoveredInstruction,
    is_vector,
    units_of,
)
from verilocc_bench.backends.amdgpu.recovery.webs import CodeWebs, find_webs


def read_webs(webs: CodeWebs) -> set[int]:
    operands = (operand for rows in webs.operands for row in rows for operand in row)
    return {web for operand in operands if not operand.definition for web in operand.webs}


Values = dict[int, list[object]]
"""For each unit or web what is in its lanes; scalars have it in lane 0. None is nothing known."""


class Execution:
    """One random execution, in registers and in webs."""

    def __init__(
        self, blocks: tuple[CodeBlock, ...], mask: MaskFlow, webs: CodeWebs, seed: int
    ) -> None:
        self.blocks, self.mask, self.webs = blocks, mask, webs
        self.chance = random.Random(seed)
        self.all = self.exec = self.chance.choice((0b1111, 0b1111, 0b0111, 0b0101))
        self.bits = {unit: self.chance.randrange(4) for name in PAIRS for unit in units_of(name)}
        self.values: Values = defaultdict(lambda: [None] * 4)
        self.stored: Values = defaultdict(lambda: [None] * 4)
        self.read = read_webs(webs)
        for unit in LIVE_IN:
            self.values[unit] = [f"argument {unit}"] * 4
        for unit, web in webs.live_ins:
            self.stored[web] = [f"argument {unit}"] * 4

    def run(self) -> None:
        b = 0
        for step in range(30):
            for i in range(len(self.blocks[b].instructions)):
                self.step(b, i, step)
            if not self.blocks[b].successors:
                break
            b = self.chance.choice(self.blocks[b].successors)

    def step(self, b: int, i: int, step: int) -> None:
        each = self.blocks[b].instructions[i]
        assert self.mask.partial[b][i] or self.exec == self.all
        lanes = self.exec
        self.check_uses(b, i, self.all if each.reads_all_lanes else lanes)
        mask = self.exec
        values = {**self.bits, -1: mask & 3, -2: mask >> 2}
        new = {
            unit: change(*(3 if s is None else values[s] for s in sources))
            for unit, ways in terms(each).items()
            for change, sources in [self.chance.choice(ways or [(self.anything, ())])]
        }
        tied = {o.tied_to for o in each.operands if o.tied_to is not None}
        assert not tied & self.webs.kept[b][i]
        for operand in self.webs.operands[b][i]:
            if operand.definition:
                for offset, (unit, web) in enumerate(zip(operand.units, operand.webs, strict=True)):
                    value = f"{step} {b} {i} {operand.operand} {offset}"
                    kept = operand.operand in tied | self.webs.kept[b][i]
                    for lane in range(4 if is_vector(unit) else 1):
                        if lanes >> lane & 1 or not is_vector(unit):
                            self.values[unit][lane] = self.stored[web][lane] = value
                        elif not kept:
                            self.stored[web][lane] = "lost"
        for unit, bits in new.items():
            if unit >= 0:
                self.bits[unit] = bits
            else:
                half = -1 - unit
                mask = mask & ~(3 << 2 * half) | (bits << 2 * half & self.all)
        assert self.mask.widens[b][i] or not mask & ~self.exec
        self.exec = mask

    def anything(self) -> int:
        return self.chance.randrange(4)

    def check_uses(self, b: int, i: int, lanes: int) -> None:
        each = self.blocks[b].instructions[i]
        for operand in self.webs.operands[b][i]:
            if operand.definition and not each.keeps_lanes:
                own = operand.operand in self.webs.kept[b][i]
                assert not own or (is_vector(operand.units[0]) and self.mask.partial[b][i])
                continue
            for unit, web in zip(operand.units, operand.webs, strict=True):
                # What nobody reads may be made of anything.
                for lane in range(4 if is_vector(unit) else 1) if web in self.read else ():
                    value = self.values[unit][lane]
                    if value is None or not (lanes >> lane & 1 or not is_vector(unit)):
                        continue
                    assert not operand.undefined
                    assert not operand.definition or operand.operand in self.webs.kept[b][i]
                    assert self.stored[web][lane] == value


def test_every_use_finds_the_value_that_the_registers_have() -> None:
    hidden = 0
    for seed in range(150):
        code, _ = recovered_code(seed, masks=True)
        blocks = find_blocks(code)
        mask = analyse_mask(blocks)
        webs = find_webs(blocks, mask, LIVE_IN)
        for attempt in range(4):
            Execution(blocks, mask, webs, attempt).run()
        hidden += sum(bool(each) for row in webs.kept for each in row)
    assert hidden > 30


def reaching(
    code: Sequence[RecoveredInstruction], *, scalars: bool
) -> Iterator[set[tuple[int, int, int]]]:
    """The (instruction, operand, unit) that one definition reaches, with that definition.

    Walks every path from it until its unit is written again.
    """
    arguments = [(-1, 0, unit) for unit in LIVE_IN]
    definitions = [
        (at, number, unit)
        for at in sorted(reachable(code))
        for number, operand in enumerate(code[at].operands)
        for unit in operand.units
        if operand.definition
    ]
    for at, number, unit in arguments + definitions:
        if unit >= FIRST_VCC or (scalars and is_vector(unit)):
            continue
        found, pending, seen = {(at, number, unit)}, following(code, at) if at >= 0 else [0], set()
        if at >= 0:  # a use that repeats the definition belongs to it, whatever it reads
            found |= {(at, n, unit) for n, o in enumerate(code[at].operands) if o.tied_to == number}
        while pending:
            place = pending.pop()
            if place in seen:
                continue
            seen.add(place)
            writes = False
            for other, operand in enumerate(code[place].operands):
                if unit in operand.units:
                    writes |= operand.definition
                    if not operand.definition or code[place].keeps_lanes:
                        found.add((place, other, unit))
                    if operand.tied_to is not None:
                        found.add((place, operand.tied_to, unit))
            pending += [] if writes else following(code, place)
        yield found


def test_values_that_share_no_use_share_no_web() -> None:
    """Where nothing writes EXEC, and of scalars everywhere: webs are unions of what is reached."""
    for seed in range(120):
        masks = bool(seed % 2)
        code, _ = recovered_code(seed, masks=masks)
        group: dict[tuple[int, int, int], set[tuple[int, int, int]]] = {}
        for found in reaching(code, scalars=masks):
            joined = set(found).union(*(group.get(each, ()) for each in found))
            group.update(dict.fromkeys(joined, joined))
        blocks = find_blocks(code)
        webs = find_webs(blocks, analyse_mask(blocks), LIVE_IN)
        by_web: dict[int, set[tuple[int, int, int]]] = defaultdict(set)
        for unit, web in webs.live_ins:
            by_web[web].add((-1, 0, unit))
        for block, rows in zip(blocks, webs.operands, strict=True):
            for each, row in zip(block.instructions, rows, strict=True):
                for operand in row:
                    for unit, web in zip(operand.units, operand.webs, strict=True):
                        if not (masks and is_vector(unit)):
                            by_web[web].add((each.address // 4, operand.operand, unit))
        read = read_webs(webs)
        for web, members in by_web.items():
            known = {frozenset(group.get(each, {each})) for each in members}
            if web not in read:  # an argument that only stays beside what nobody reads
                known = {frozenset(each for each in found if each[0] >= 0) for found in known}
            assert known == {frozenset(members)}, (seed, members)
