"""Blocks, and what is known of EXEC, in random code: by single instructions and truth tables."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise, product

import pytest

from tests.backends.amdgpu.recovered_code import (
    Term,
    following,
    instruction,
    reachable,
    recovered_code,
    terms,
)
from verilocc_bench.backends.amdgpu.recovery.records import FIRST_VCC, RecoveredInstruction
from verilocc_bench.backends.amdgpu.recovery.recovered_flow import find_blocks
from verilocc_bench.backends.amdgpu.recovery.recovered_mask import analyse_mask
from verilocc_bench.errors import RejectedKernel


def test_blocks_have_the_edges_of_the_code() -> None:
    for seed in range(120):
        code, _ = recovered_code(seed, masks=True)
        blocks = find_blocks(code)
        reached = reachable(code)
        assert [each for block in blocks for each in block.instructions] == [
            code[at] for at in sorted(reached)
        ]
        edges = {
            (one.address, other.address)
            for block in blocks
            for one, other in pairwise(block.instructions)
        }
        for block in blocks:
            last = block.instructions[-1].address
            edges |= {(last, blocks[n].instructions[0].address) for n in block.successors}
            assert len(set(block.successors)) == len(block.successors)
        assert edges == {(4 * at, 4 * to) for at in reached for to in following(code, at)}
        # A block ends where another path may come in, and nowhere else.
        for at in reached - {0}:
            begins = any(block.instructions[0] is code[at] for block in blocks)
            is_target = any(4 * at == each.target for each in code)
            after_jump = code[at - 1].target is not None or code[at - 1].opcode == "S_ENDPGM"
            assert begins == (is_target or after_jump)


def test_code_that_leads_out_of_the_kernel_is_refused() -> None:
    generator = random.Random(0)
    for forms, target, reason in (
        (("S_NOP", "S_BRANCH", "S_ENDPGM"), 12, "S_BRANCH, at 0x4: branches out of the kernel"),
        (("S_NOP", "S_SLEEP", "S_WAIT"), None, "S_WAIT, at 0x8: the code goes on behind its end"),
    ):
        code = [instruction(4 * at, form, generator) for at, form in enumerate(forms)]
        code[1] = replace(code[1], target=target)
        with pytest.raises(RejectedKernel) as refused:
            find_blocks(code)
        assert (refused.value.kind, refused.value.reason) == ("control-flow", reason)


def is_full(ways: list[Term], full: set[int | None]) -> bool:
    """True if what is written has all ones, whatever is in the sources that are not full."""
    return bool(ways) and all(
        change(*values) == 3
        for change, sources in ways
        for values in product(*((3,) if s in full else range(4) for s in sources))
    )


def widens(each: RecoveredInstruction) -> bool:
    """True if EXEC may have a bit afterwards that it had not before, by trying all values."""
    for half, ways in terms(each).items():
        if half < 0 and not ways:
            return True
        for (change, sources), before in product(ways if half < 0 else (), range(4)):
            known = {half: (before,), None: (3,)}
            for values in product(*(known.get(source, range(4)) for source in sources)):
                if change(*values) & ~before & 3:
                    return True
    return False


def test_exec_is_known_to_be_full_where_all_values_make_it_so() -> None:
    """By a second dataflow, over single instructions, and truth tables."""
    seen = {True: 0, False: 0}
    for seed in range(250):
        code, _ = recovered_code(seed, masks=True)
        everything: set[int | None] = {None, -1, -2, *range(FIRST_VCC + 2)}
        facts = [everything] * len(code)
        full_waves = seed % 4 > 0
        facts[0] = {None, -1, -2} if full_waves else {None}
        pending = sorted(reachable(code))
        while pending:
            at = pending.pop()
            after = set(facts[at])
            for unit, ways in terms(code[at]).items():
                (after.add if is_full(ways, facts[at]) else after.discard)(unit)
            for to in following(code, at):
                if not facts[to] <= after:
                    facts[to] = facts[to] & after
                    pending.append(to)
        blocks = find_blocks(code)
        mask = analyse_mask(blocks, full_waves=full_waves)
        for b, block in enumerate(blocks):
            for i, each in enumerate(block.instructions):
                full = {-1, -2} <= facts[each.address // 4]
                assert mask.partial[b][i] == (not full), (seed, each)
                assert mask.widens[b][i] == (not full and widens(each)), (seed, each)
                seen[full] += 1
    assert min(seen.values()) > 200


def test_where_different_versions_meet_a_version_begins() -> None:
    """A version has the place where it begins: a block, or an instruction that widens EXEC."""
    met = 0
    for seed in range(200):
        blocks = find_blocks(recovered_code(seed, masks=True)[0])
        mask = analyse_mask(blocks)
        arriving: dict[int, set[tuple[int, int]]] = {n: set() for n in range(len(blocks))}
        arriving[0].add((0, -1))
        pending = [(0, (0, -1))]
        while pending:
            b, version = pending.pop()
            if mask.merges[b]:
                version = b, -1
            version = max(
                [version, *((b, i) for i, wider in enumerate(mask.widens[b]) if wider)],
                key=lambda place: (place[0] == b, place[1]),
            )
            for successor in blocks[b].successors:
                if version not in arriving[successor]:
                    arriving[successor].add(version)
                    pending.append((successor, version))
        assert mask.merges[0]
        assert any(map(any, mask.widens)) or not any(mask.merges[1:])
        for b, versions in arriving.items():
            assert mask.merges[b] or len(versions) == 1
            met += len(versions) > 1
    assert met > 20


def test_a_partial_mask_that_is_saved_over_a_full_one_is_not_full() -> None:
    forms = (
        "S_MOV_B64 =sgpr0_sgpr1 -1",
        "S_AND_B64 =exec exec vcc",
        "S_AND_SAVEEXEC_B64 =sgpr0_sgpr1 vcc",
        "S_MOV_B64 =exec sgpr0_sgpr1",
        "S_ENDPGM",
    )
    code = [instruction(4 * n, form, random.Random(0)) for n, form in enumerate(forms)]
    assert analyse_mask(find_blocks(code)).partial == ((False, False, True, True, True),)
