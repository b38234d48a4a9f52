"""Waits that are missing are told, and no others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.backends.nvidia.assembled_kernels import (
    LOOP,
    PRODUCT,
    START,
    assembled,
    code,
    entry,
    module,
)
from verilocc_bench.backends.nvidia.flow import opcode_stem
from verilocc_bench.backends.nvidia.hazards import HazardKind, find_hazards
from verilocc_bench.backends.nvidia.records import SassFunction, SassInstruction

NO_BARRIERS = 7 << 110 | 7 << 113
WAITS = 0x3F << 116


@pytest.fixture(name="loop")
def _loop() -> SassFunction:
    return code(assembled(LOOP), "sums")


def changed(function: SassFunction, index: int, instruction: SassInstruction) -> SassFunction:
    instructions = list(function.instructions)
    instructions[index] = instruction
    return replace(function, instructions=tuple(instructions))


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


DOUBLES = module(
    entry(
        "doubles",
        f"""{START}
    ld.global.f64 %e0, [%d1];
    ld.global.f64 %e1, [%d1+8];
    add.f64 %e2, %e0, %e1;
    fma.rn.f64 %e3, %e2, %e1, %e0;
    mul.f64 %e4, %e3, %e2;
    setp.gt.f64 %p0, %e4, %e0;
    selp.f64 %e5, %e4, %e3, %p0;
    fma.rn.f64 %e6, %e5, %e4, %e3;
    st.global.f64 [%d1], %e6;
""",
    )
)
SPECIAL = module(
    entry(
        "specials",
        f"""{START}
    ld.global.f32 %f0, [%d1];
    ld.global.b32 %r0, [%d1+4];
    sin.approx.f32 %f1, %f0;
    ex2.approx.f32 %f2, %f0;
    popc.b32 %r1, %r0;
    bfind.u32 %r2, %r0;
    cvt.rn.f32.s32 %f3, %r1;
    cvt.rzi.s32.f32 %r3, %f2;
    fma.rn.f32 %f4, %f1, %f2, %f3;
    add.s32 %r4, %r2, %r3;
    st.global.f32 [%d1], %f4;
    st.global.b32 [%d1+4], %r4;
""",
    )
)


@pytest.mark.parametrize(
    ("ptx", "name"),
    [(LOOP, "sums"), (PRODUCT, "product"), (DOUBLES, "doubles"), (SPECIAL, "specials")],
)
def test_the_compilers_own_code_has_none(ptx: str, name: str) -> None:
    """Units work in order, too."""
    assert find_hazards(code(assembled(ptx), name)) == ()
