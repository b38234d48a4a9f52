"""Recovered webs of random code keep every value: all paths are walked from each definition."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence

import pytest

from tests.backends.amdgpu.recovered_code import (
    HALVES,
    LIVE_IN,
    PAIRS,
    VECTORS,
    following,
    instruction,
    recovered_code,
)
from verilocc_bench.backends.amdgpu.recovery.inactive_lanes import needed_inactive_lanes
from verilocc_bench.backends.amdgpu.recovery.records import (
    FIRST_VCC,
    RecoveredInstruction,
    is_vector,
    units_of,
)
from verilocc_bench.backends.amdgpu.recovery.recovered_flow import find_blocks
from verilocc_bench.backends.amdgpu.recovery.recovered_mask import analyse_mask
from verilocc_bench.backends.amdgpu.recovery.webs import find_webs

Reference = tuple[int, int, int]
"""(instruction, operand, unit); instruction -1 for an argument."""


class Walks:
    """What reaches what in code, by walking every path from each definition by itself."""

    def __init__(self, code: Sequence[RecoveredInstruction], live_in: Sequence[int]) -> None:
        self.code, self.blocks = code, find_blocks(code)
        self.mask = analyse_mask(self.blocks)
        self.place = {
            each.address // 4: (b, i)
            for b, block in enumerate(self.blocks)
            for i, each in enumerate(block.instructions)
        }
        self.reaching: dict[Reference, set[Reference]] = defaultdict(set)
        """The definitions that a use sees."""
        self.before: dict[tuple[int, int], set[Reference]] = defaultdict(set)
        """The definitions that an instruction finds in a unit, whichever lanes they are in."""
        for unit in live_in:
            self.walk((-1, 0, unit))
        for at in self.place:
            for number, operand in enumerate(code[at].operands):
                for unit in operand.units if operand.definition else ():
                    if unit < FIRST_VCC:
                        self.walk((at, number, unit))

    def facts(self, at: int) -> tuple[bool, bool, bool]:
        """EXEC is partial at an instruction, widened by it, and of another version before it."""
        b, i = self.place[at]
        return self.mask.partial[b][i], self.mask.widens[b][i], self.mask.merges[b] and not i

    def walk(self, definition: Reference) -> None:
        at, _, unit = definition
        pending = [(0, False)]
        if at >= 0:
            pending = [(to, False) for to in following(self.code, at)]
        seen = set(pending)
        while pending:
            at, hidden = pending.pop()
            partial, widens, merges = self.facts(at)
            hidden &= not merges
            each = self.code[at]
            self.before[at, unit].add(definition)
            writes = False
            for number, operand in enumerate(each.operands):
                if unit not in operand.units:
                    continue
                writes |= operand.definition
                sees = each.reads_all_lanes or not hidden
                if (each.keeps_lanes if operand.definition else sees) and (
                    partial or not operand.undef
                ):
                    self.reaching[at, number, unit].add(definition)
            if writes and not (partial and is_vector(unit)):
                continue
            hidden = (hidden or writes) and not widens
            new = {(to, hidden) for to in following(self.code, at)} - seen
            seen |= new
            pending += new

    def other_lanes_needed(self, at: int, unit: int) -> bool:
        """True if a lane that EXEC does not select after an instruction may be read later."""
        pending = [(to, False) for to in following(self.code, at)]
        seen = set(pending)
        while pending:
            at, active = pending.pop()
            partial, _, merges = self.facts(at)
            each = self.code[at]
            for lane in (False, True) if merges else (active,):
                mentions = [o for o in each.operands if unit in o.units]
                reads = any(not o.definition or each.keeps_lanes for o in mentions)
                if reads and (lane or each.reads_all_lanes):
                    return True
                if any(o.definition for o in mentions) and (lane or not partial):
                    continue
                new = set(self.after(at, active=lane)) - seen
                seen |= new
                pending += new
        return False

    def after(self, at: int, *, active: bool) -> list[tuple[int, bool]]:
        """The next instructions, and whether EXEC may select a lane there."""
        each = self.code[at]
        states = {active}
        if self.facts(at)[1]:
            states = {False, True}
        elif any(o.definition and o.register in HALVES for o in each.operands):
            states |= {False}
        return [(to, state) for to in following(self.code, at) for state in states]


def test_lanes_outside_exec_are_needed_where_a_walk_reads_them() -> None:
    needs = 0
    for seed in range(100):
        walks = Walks(recovered_code(seed, masks=True)[0], LIVE_IN)
        units = sorted({u for name in (*PAIRS, *VECTORS) for u in units_of(name)})
        needed = needed_inactive_lanes(walks.blocks, walks.mask)
        for at, (b, i) in walks.place.items():
            expected = sum(1 << unit for unit in units if walks.other_lanes_needed(at, unit))
            assert needed[b][i] == expected, (seed, at)
            needs += bool(expected)
    assert needs > 200


def groups_of(walks: Walks) -> dict[Reference, frozenset[Reference]]:
    """For each reference those of its web."""
    group: dict[Reference, frozenset[Reference]] = {}
    for at in walks.place:
        for number, operand in enumerate(walks.code[at].operands):
            for unit in operand.units:
                joined = {(at, number, unit)} | walks.reaching[at, number, unit]
                if operand.tied_to is not None:
                    joined.add((at, operand.tied_to, unit))
                whole = frozenset().union(*(group.get(one, {one}) for one in joined))
                group.update(dict.fromkeys(whole, whole))
    return group


def check_webs(code: Sequence[RecoveredInstruction], live_in: Sequence[int]) -> int:
    """Compares webs with walks. Returns how many definitions read their own register."""
    walks = Walks(code, live_in)
    group = groups_of(walks)
    webs = find_webs(walks.blocks, walks.mask, live_in)
    web_of: dict[Reference, int] = {(-1, 0, unit): web for unit, web in webs.live_ins}
    kept = 0
    for at, (b, i) in walks.place.items():
        row = webs.operands[b][i]
        order = [known.definition for known in row]
        assert order == sorted(order, reverse=True)
        for known in row:
            own = {(at, known.operand, unit) for unit in known.units}
            web_of.update(zip(sorted(own), known.webs, strict=True))
            sees = any(walks.reaching[key] for key in own)
            assert known.undefined == (not known.definition and not sees)
            if known.definition:
                keeps = sees or any(
                    walks.facts(at)[0]
                    and is_vector(unit)
                    and walks.other_lanes_needed(at, unit)
                    and group[at, known.operand, unit] & walks.before[at, unit]
                    for unit in known.units
                )
                keeps &= all(o.tied_to != known.operand for o in code[at].operands)
                assert (known.operand in webs.kept[b][i]) == keeps
                kept += keeps
    by_web: dict[int, set[Reference]] = defaultdict(set)
    for reference, web in web_of.items():
        by_web[web].add(reference)
    operands = (operand for rows in webs.operands for row in rows for operand in row)
    read = {web for operand in operands if not operand.definition for web in operand.webs}
    for web, members in by_web.items():
        groups = {group[each] for each in members}
        if web not in read:  # an argument that only stays beside what nobody reads
            groups = {frozenset(each for each in found if each[0] >= 0) for found in groups}
        assert groups == {frozenset(members)}
    return kept


def test_webs_are_unions_of_what_the_walks_find() -> None:
    kept = 0
    for seed in range(250):
        code, _ = recovered_code(seed, masks=bool(seed % 4))
        kept += check_webs(code, LIVE_IN if seed % 3 else [])
    assert kept > 40


TWO_VERSIONS = """
V_MOV =vgpr0 #
S_CBRANCH_SCC0 24
S_OR_B64 =exec exec sgpr2_sgpr3
V_MOV =vgpr0 #
"""
"""The first value is hidden on both paths, and seen again where they meet."""

TWO_HIDDEN = """
S_CBRANCH_SCC0 24
V_MOV =vgpr0 #
V_MOV =vgpr0 #
S_BRANCH 32
V_MOV =vgpr0 #
V_MOV =vgpr0 #
S_OR_B64 =exec exec sgpr2_sgpr3
"""
"""Each path hides a value of its own."""

ENDED = """
V_MOV =vgpr0 #
S_MOV_B64 =exec sgpr0_sgpr1
V_MOV =vgpr0 #
S_AND_B64 =exec exec vcc
V_MOV =vgpr0 #
S_OR_B64 =exec exec sgpr2_sgpr3
"""
"""The third value is written to all lanes: no lane holds the first two any more."""


@pytest.mark.parametrize(("text", "values"), [(TWO_VERSIONS, 3), (TWO_HIDDEN, 5), (ENDED, 2)])
def test_hidden_values_of_all_paths_are_seen_again(text: str, values: int) -> None:
    text = f"V_MOV =vgpr0 #\nS_AND_SAVEEXEC_B64 =sgpr0_sgpr1 vcc{text}V_ADD =vgpr1 vgpr0 vgpr0"
    code = []
    for at, line in enumerate([*text.splitlines(), "S_ENDPGM"]):
        form, _, target = line.partition(" ") if "BRANCH" in line else (line, "", "")
        destination = int(target) if target else None
        code.append(instruction(4 * at, form, random.Random(0), destination))
    assert check_webs(code, LIVE_IN) > 0
    walks = Walks(code, LIVE_IN)
    assert sum(len(each) == values for each in walks.reaching.values()) == 2
