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
from tests.backends.nvidia.assembly import NO_BARRIERS, assemble, changed, encoded
from verilocc_bench.backends.nvidia.flow import opcode_stem
from verilocc_bench.backends.nvidia.hazards import Hazard, HazardKind, find_hazards
from verilocc_bench.backends.nvidia.records import SassFunction, SassInstruction

WAITS = 0x3F << 116


@pytest.fixture(name="loop")
def _loop() -> SassFunction:
    return code(assembled(LOOP), "sums")


def first(function: SassFunction, stem: str) -> tuple[int, SassInstruction]:
    instructions = enumerate(function.instructions)
    return next((n, each) for n, each in instructions if opcode_stem(each.opcode) == stem)


def test_a_wait_that_is_taken_away_is_a_hazard(loop: SassFunction) -> None:
    missing = 0
    for index, instruction in enumerate(loop.instructions):
        if instruction.encoding & WAITS:
            without = changed(loop, index, encoding=instruction.encoding & ~WAITS)
            missing += bool(find_hazards(without))
    assert missing >= 5


def test_a_load_that_counts_nothing_is_read_too_early(loop: SassFunction) -> None:
    index, load = first(loop, "LDG")
    hazards = find_hazards(changed(loop, index, encoding=load.encoding | NO_BARRIERS))
    reads = [h for h in hazards if h.kind is HazardKind.READ_AFTER_WRITE and h.earlier == index]
    assert reads
    base = load.definitions[0].first
    registers = {name for hazard in reads for name in hazard.registers}
    assert registers <= {f"R{base + offset}" for offset in range(4)}


def test_what_happens_on_one_path_only_counts(loop: SassFunction) -> None:
    """A store at the end of the loop still reads when the loop begins again."""
    index, store = first(loop, "STS")
    load, early = first(loop, "MUFU")
    definitions = (replace(early.definitions[0], first=store.uses[-1].first),)
    function = changed(loop, load, definitions=definitions)
    bare = encoded(function, lambda _, each: each.encoding | NO_BARRIERS)
    assert any(
        hazard.kind is HazardKind.WRITE_AFTER_READ
        and (hazard.earlier, hazard.later) == (index, load)
        for hazard in find_hazards(bare)
    )


def joining(text: str, words: dict[int, int]) -> tuple[Hazard, ...]:
    """What is found in a function with these encodings, in which nothing else has a barrier."""
    return find_hazards(encoded(assemble(text), lambda n, _: words.get(n, NO_BARRIERS)))


def raised(barrier: int) -> int:
    return barrier << 110 | 7 << 113


@pytest.mark.parametrize("wait", [0, 1])
def test_where_paths_meet_a_barrier_counts_only_if_it_does_on_both(wait: int) -> None:
    """A load whose own barrier says that it is done, and after it another on one path alone.

    Loads read their addresses in order, so where the second follows, waiting for its barrier
    says that the first has read too. At the join only what holds on both paths counts.
    """
    text = "LDG.E R0, [R2]\n@P0 BRA L(1)\nLDG.E R4, [R6]\nL1:\nNOP\nMOV R2, 0x1\nEXIT"
    words = {0: raised(0), 2: raised(1), 3: NO_BARRIERS | 1 << 116 + wait}
    hazard = Hazard(HazardKind.WRITE_AFTER_READ, 0, 4, ("R2",))
    assert joining(text, words) == (() if wait == 0 else (hazard,))


def test_what_is_outstanding_on_one_path_is_outstanding() -> None:
    text = "@P0 BRA L(1)\nLDG.E R4, [R6]\nL1:\nNOP\nMOV R2, R4\nEXIT"
    hazard = Hazard(HazardKind.READ_AFTER_WRITE, 1, 3, ("R4",))
    assert joining(text, {1: raised(1)}) == (hazard,)


@pytest.mark.parametrize(
    ("wait", "waits"),
    [
        *(("DEPBAR.LE SB2, 0x0", True), ("DEPBAR.LE SB2, 0x1", False)),
        *(("DEPBAR.LE SB0, 0x0, {3,2}", True), ("DEPBAR.LE SB0, 0x0, {3}", False)),
        ("@P0 DEPBAR.LE SB2, 0x0", False),
    ],
)
def test_which_barriers_depbar_waits_for(wait: str, waits: bool) -> None:
    text = f"LDG.E R0, [R6]\n{wait}\nMOV R2, R0\nEXIT"
    hazard = Hazard(HazardKind.READ_AFTER_WRITE, 0, 2, ("R0",))
    assert joining(text, {0: raised(2)}) == (() if waits else (hazard,))


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
