"""Waits that are missing are told, and no others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.lower.kernels import LOOP, PRODUCT, assembled, code
from verilocc_bench.lower import HazardKind, find_hazards
from verilocc_bench.parse.sass.flow import opcode_stem
from verilocc_bench.parse.sass.records import SassFunction, SassInstruction

NO_BARRIERS = 7 << 110 | 7 << 113
WAITS = 0x3F << 116


@pytest.fixture(name="loop")
def _loop() -> SassFunction:
    return code(assembled(LOOP), "sums")


def changed(function: SassFunction, index: int, instruction: SassInstruction) -> SassFunction:
    instructions = list(function.instructions)
    instructions[index] = instruction
    return replace(function, instructions=tuple(instructions))


@pytest.mark.parametrize(("ptx", "name"), [(LOOP, "sums"), (PRODUCT, "product")])
def test_the_compilers_own_code_has_none(ptx: str, name: str) -> None:
    assert find_hazards(code(assembled(ptx), name)) == ()


def test_a_wait_that_is_taken_away_is_a_hazard(loop: SassFunction) -> None:
    missing = 0
    for index, instruction in enumerate(loop.instructions):
        if instruction.encoding & WAITS:
            without = replace(instruction, encoding=instruction.encoding & ~WAITS)
            missing += bool(find_hazards(changed(loop, index, without)))
    assert missing >= 5


def test_a_load_that_counts_nothing_is_read_too_early(loop: SassFunction) -> None:
    index = next(i for i, x in enumerate(loop.instructions) if opcode_stem(x.opcode) == "LDG")
    load = loop.instructions[index]
    hazards = find_hazards(
        changed(loop, index, replace(load, encoding=load.encoding | NO_BARRIERS))
    )
    reads = [h for h in hazards if h.kind is HazardKind.READ_AFTER_WRITE and h.earlier == index]
    assert reads
    first = load.definitions[0].first
    registers = {name for hazard in reads for name in hazard.registers}
    assert registers <= {f"R{first + offset}" for offset in range(4)}


def test_what_happens_on_one_path_only_counts(loop: SassFunction) -> None:
    """A store at the end of the loop still reads when the loop begins again."""
    index = next(i for i, x in enumerate(loop.instructions) if opcode_stem(x.opcode) == "STS")
    store = loop.instructions[index]
    value = store.uses[-1]
    load = next(i for i, x in enumerate(loop.instructions) if opcode_stem(x.opcode) == "MUFU")
    early = loop.instructions[load]
    early = replace(early, definitions=(replace(early.definitions[0], first=value.first),))
    without = replace(store, encoding=store.encoding | NO_BARRIERS)
    function = changed(changed(loop, index, without), load, early)
    bare = replace(
        function,
        instructions=tuple(
            replace(i, encoding=i.encoding | NO_BARRIERS) for i in function.instructions
        ),
    )
    assert any(
        hazard.kind is HazardKind.WRITE_AFTER_READ
        and (hazard.earlier, hazard.later) == (index, load)
        for hazard in find_hazards(bare)
    )
