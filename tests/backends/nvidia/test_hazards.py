"""Waits that are missing are told, and no others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.backends.nvidia.assembled_kernels import LOOP, PRODUCT, assembled, code
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


FP64 = """
.version 8.7
.target sm_80
.address_size 64
.visible .entry doubles(.param .u64 data)
.reqntid 32
{
    .reg .b64 %address<3>;
    .reg .f64 %d<8>;
    .reg .pred %p;
    ld.param.u64 %address0, [data];
    cvta.to.global.u64 %address1, %address0;
    ld.global.f64 %d0, [%address1];
    ld.global.f64 %d1, [%address1+8];
    add.f64 %d2, %d0, %d1;
    fma.rn.f64 %d3, %d2, %d1, %d0;
    mul.f64 %d4, %d3, %d2;
    setp.gt.f64 %p, %d4, %d0;
    selp.f64 %d5, %d4, %d3, %p;
    fma.rn.f64 %d6, %d5, %d4, %d3;
    st.global.f64 [%address1], %d6;
    ret;
}
"""
SPECIAL = """
.version 8.7
.target sm_80
.address_size 64
.visible .entry specials(.param .u64 data)
.reqntid 32
{
    .reg .b64 %address<3>;
    .reg .f32 %f<8>;
    .reg .b32 %b<8>;
    ld.param.u64 %address0, [data];
    cvta.to.global.u64 %address1, %address0;
    ld.global.f32 %f0, [%address1];
    ld.global.b32 %b0, [%address1+4];
    sin.approx.f32 %f1, %f0;
    ex2.approx.f32 %f2, %f0;
    popc.b32 %b1, %b0;
    bfind.u32 %b2, %b0;
    cvt.rn.f32.s32 %f3, %b1;
    cvt.rzi.s32.f32 %b3, %f2;
    fma.rn.f32 %f4, %f1, %f2, %f3;
    add.s32 %b4, %b2, %b3;
    st.global.f32 [%address1], %f4;
    st.global.b32 [%address1+4], %b4;
    ret;
}
"""


@pytest.mark.parametrize(("ptx", "name"), [(FP64, "doubles"), (SPECIAL, "specials")])
def test_units_work_in_order(ptx: str, name: str) -> None:
    assert find_hazards(code(assembled(ptx), name)) == ()
