"""Webs of machine code in which EXEC masks lanes.

As in the sm_80 back end, a *site* is one register unit that one instruction defines,
and sites that reach a common use form a web. What differs is the mask: a vector
instruction writes only the lanes that EXEC selects. So a definition under a partial
EXEC *hides* the values before it: a use under the same or a narrower mask sees the new
value alone, and once EXEC may select other lanes, the hidden values are seen again, in
these lanes. A definition must keep what it hides if that is read later
(`inactive_lanes`): it reads its own register.

State at a place: for each unit the sites that a use sees, and all that some lane holds.
Both only grow at a block's entry, so the dataflow ends. Cost: a few passes over the code.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from verilocc_bench.backends.amdgpu.recovery.inactive_lanes import needed_inactive_lanes
from verilocc_bench.backends.amdgpu.recovery.records import (
    FIRST_VCC,
    CodeBlock,
    RecoveredInstruction,
    RecoveredOperand,
    is_vector,
)
from verilocc_bench.backends.amdgpu.recovery.recovered_mask import MaskFlow

Place = tuple[int, int]
"""(block, instruction)."""

_State = tuple[list[int], list[int]]
"""By unit: the visible sites, and the sites of all lanes, hidden or not."""


@dataclass(frozen=True, slots=True)
class WebOperand:
    """An operand that a virtual register replaces: `webs` are the webs of its units.

    `undefined` is true if nothing has written any of the units of a use.
    """

    operand: int
    units: tuple[int, ...]
    webs: tuple[int, ...]
    definition: bool
    undefined: bool


@dataclass(frozen=True, slots=True)
class CodeWebs:
    """The webs of a kernel, as numbers.

    `operands[b][i]` are the operands of instruction i of block b. `kept[b][i]` are the
    definitions, by the number of the operand, that read their own register. `live_ins`
    are the units that hold arguments at the entry and are read, with their webs.
    """

    operands: tuple[tuple[tuple[WebOperand, ...], ...], ...]
    kept: tuple[tuple[frozenset[int], ...], ...]
    live_ins: tuple[tuple[int, int], ...]


def find_webs(blocks: Sequence[CodeBlock], mask: MaskFlow, live_in: Sequence[int]) -> CodeWebs:
    """The webs of a kernel's registers but VCC; the units `live_in` have values at the entry."""
    return _Finder(blocks, mask, live_in).find()


def replaced(instruction: RecoveredInstruction) -> Iterator[tuple[int, RecoveredOperand]]:
    """The operands that virtual registers replace, definitions first, with their numbers.

    VCC stays as it is: many instructions name it without an operand.
    """
    for wanted in (False, True):
        for number, operand in enumerate(instruction.operands):
            if operand.units and operand.units[0] < FIRST_VCC and operand.definition != wanted:
                yield number, operand


class _Finder:
    def __init__(self, blocks: Sequence[CodeBlock], mask: MaskFlow, live_in: Sequence[int]) -> None:
        self.blocks, self.mask, self.live_in = blocks, mask, live_in
        self.needed = needed_inactive_lanes(blocks, mask)
        self.bit_sites: dict[int, list[int]] = defaultdict(list)  # by unit: the site of each bit
        self.bits: dict[int, int] = {}  # by site: its bit among the sites of its unit
        self.site_of: dict[tuple[int, int, int, int], int] = {}
        self.parent: list[int] = []
        self.hidden_at: dict[int, list[int]] = {}
        self.keeps_values: set[tuple[int, int, int]] = set()
        self.entry_sites = {unit: self.new_site(unit) for unit in live_in}
        for b, block in enumerate(blocks):
            for i, instruction in enumerate(block.instructions):
                for number, operand in replaced(instruction):
                    if operand.definition:
                        for offset, unit in enumerate(operand.units):
                            self.site_of[b, i, number, offset] = self.new_site(unit)

    def new_site(self, unit: int) -> int:
        site = len(self.parent)
        self.parent.append(site)
        self.bits[site] = 1 << len(self.bit_sites[unit])
        self.bit_sites[unit].append(site)
        return site

    def find(self) -> CodeWebs:
        entries = self._solve()
        uses: dict[tuple[int, int, int], tuple[list[int], bool]] = {}
        for b in range(len(self.blocks)):
            state = _copied(entries[b])
            for i in range(len(self.blocks[b].instructions)):
                self._join_uses(b, i, state, uses)
                self._step(b, i, state, record=True)
        return self._webs(uses)

    def _solve(self) -> list[_State]:
        """The state at the entry of each block."""
        entries: list[_State] = [([0] * FIRST_VCC, [0] * FIRST_VCC) for _ in self.blocks]
        for unit, site in self.entry_sites.items():
            entries[0][0][unit] = entries[0][1][unit] = self.bits[site]
        pending = [0]
        seen = {0}
        while pending:
            b = min(pending)
            pending.remove(b)
            state = _copied(entries[b])
            for i in range(len(self.blocks[b].instructions)):
                self._step(b, i, state)
            for successor in self.blocks[b].successors:
                if self._merge(entries[successor], state, self.mask.merges[successor]) or (
                    successor not in seen
                ):
                    seen.add(successor)
                    if successor not in pending:
                        pending.append(successor)
        return entries

    @staticmethod
    def _merge(entry: _State, state: _State, begins_version: bool) -> bool:
        changed = False
        arriving = (state[1], state[1]) if begins_version else state
        for known, new in zip(entry, arriving, strict=True):
            for unit in range(FIRST_VCC):
                if new[unit] & ~known[unit]:
                    known[unit] |= new[unit]
                    changed = True
        return changed

    def _step(self, b: int, i: int, state: _State, *, record: bool = False) -> None:
        """The state after an instruction."""
        instruction = self.blocks[b].instructions[i]
        visible, held = state
        partial = self.mask.partial[b][i]
        for number, operand in replaced(instruction):
            if not operand.definition:
                continue
            for offset, unit in enumerate(operand.units):
                site = self.site_of[b, i, number, offset]
                visible[unit] = self.bits[site]
                if partial and is_vector(unit):
                    if record:
                        self.hidden_at[site] = self._sites(unit, held[unit])
                    held[unit] |= self.bits[site]
                else:
                    held[unit] = self.bits[site]
        if self.mask.widens[b][i]:
            visible[:] = held

    def _sites(self, unit: int, mask: int) -> list[int]:
        found = []
        sites = self.bit_sites[unit]
        while mask:
            low = mask & -mask
            found.append(sites[low.bit_length() - 1])
            mask ^= low
        return found

    def _join_uses(
        self,
        b: int,
        i: int,
        state: _State,
        uses: dict[tuple[int, int, int], tuple[list[int], bool]],
    ) -> None:
        """Joins the sites that reach each use; a use that nothing reaches is a site itself."""
        instruction = self.blocks[b].instructions[i]
        visible, held = state
        for number, operand in replaced(instruction):
            if operand.definition:
                if instruction.keeps_lanes:
                    for offset, unit in enumerate(operand.units):
                        before = self._sites(unit, held[unit])
                        self._join([self.site_of[b, i, number, offset], *before])
                        if before:
                            self.keeps_values.add((b, i, number))
                continue
            sites, nothing = [], True
            # Under a partial EXEC an undef use keeps the lanes that EXEC does not select.
            dead = operand.undef and not self.mask.partial[b][i]
            for offset, unit in enumerate(operand.units):
                reaching = (held if instruction.reads_all_lanes else visible)[unit]
                found = [] if dead else self._sites(unit, reaching)
                nothing &= not found
                if operand.tied_to is not None:
                    found.append(self.site_of[b, i, operand.tied_to, offset])
                if not found:
                    found = [self.new_site(unit)]
                self._join(found)
                sites.append(found[0])
            uses[b, i, number] = sites, nothing

    def _join(self, sites: Sequence[int]) -> None:
        first = self.root(sites[0])
        for site in sites[1:]:
            self.parent[self.root(site)] = first

    def root(self, site: int) -> int:
        """The representative of a site's web."""
        parent = self.parent
        while parent[site] != site:
            parent[site] = parent[parent[site]]
            site = parent[site]
        return site

    def _webs(self, uses: dict[tuple[int, int, int], tuple[list[int], bool]]) -> CodeWebs:
        operands, kept = [], []
        read = {self.root(site) for sites, _ in uses.values() for site in sites}
        for b, block in enumerate(self.blocks):
            rows, keeps = [], []
            for i, instruction in enumerate(block.instructions):
                row = []
                for number, operand in replaced(instruction):
                    if operand.definition:
                        sites = [self.site_of[b, i, number, n] for n in range(len(operand.units))]
                        nothing = False
                    else:
                        sites, nothing = uses[b, i, number]
                    webs = tuple(self.root(site) for site in sites)
                    row.append(WebOperand(number, operand.units, webs, operand.definition, nothing))
                rows.append(tuple(row))
                keeps.append(self._kept(b, i, instruction))
            operands.append(tuple(rows))
            kept.append(tuple(keeps))
        live_ins = tuple(
            (unit, self.root(site))
            for unit, site in self.entry_sites.items()
            if self.root(site) in read
        )
        return CodeWebs(tuple(operands), tuple(kept), live_ins)

    def _kept(self, b: int, i: int, instruction: RecoveredInstruction) -> frozenset[int]:
        """The definitions that read their own register, as far as no tied operand does so."""
        # An instruction with a dead tie writes all of its register, so it keeps nothing.
        tied = {operand.tied_to for operand in instruction.operands}
        found = set()
        for number, operand in replaced(instruction):
            if not operand.definition or number in tied:
                continue
            sites = [self.site_of[b, i, number, n] for n in range(len(operand.units))]
            if (b, i, number) in self.keeps_values or any(
                self.needed[b][i] >> unit & 1
                and any(self.root(site) == self.root(o) for o in self.hidden_at.get(site, ()))
                for site, unit in zip(sites, operand.units, strict=True)
            ):
                found.add(number)
        return frozenset(found)


def _copied(state: _State) -> _State:
    return list(state[0]), list(state[1])
