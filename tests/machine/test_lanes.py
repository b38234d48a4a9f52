"""Opcodes that move values between lanes, and to and from accumulation registers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.machine.assembly import kernel_of

pytestmark = pytest.mark.slow

BODY = (
    """
s_load_dwordx4 s[4:7], s[0:1], 0x0
v_lshlrev_b32_e32 v1, 2, v0
s_waitcnt lgkmcnt(0)
global_load_dword v2, v1, s[4:5]
s_waitcnt vmcnt(0)
v_readlane_b32 s10, v2, 5
s_mov_b32 s11, 0x46
s_nop 4
v_readlane_b32 s12, v2, s11
s_mov_b64 exec, 0xf0
v_readfirstlane_b32 s13, v2
s_mov_b64 exec, 0
v_readfirstlane_b32 s14, v2
s_mov_b64 exec, -1
v_mov_b32_e32 v3, 7
s_nop 4
v_writelane_b32 v3, s10, 9
v_mov_b32_e32 v4, v2
v_mov_b32_e32 v5, 1
s_mov_b64 exec, 3
v_swap_b32 v4, v5
s_mov_b64 exec, -1
v_accvgpr_write_b32 a0, v2
s_nop 4
v_accvgpr_mov_b32 a1, a0
s_nop 4
v_accvgpr_read_b32 v6, a1
v_mov_b32_e32 v7, s10
v_mov_b32_e32 v8, s12
v_mov_b32_e32 v9, s13
v_mov_b32_e32 v10, s14
"""
    + "\n".join(
        f"global_store_dword v1, v{register}, s[6:7] offset:{256 * place}"
        for place, register in enumerate(range(3, 11))
    )
    + "\ns_endpgm"
)


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942"])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_lanes(arch: str, asynchronous: bool) -> None:
    given = np.arange(64, dtype=np.uint32) * 3 + 100
    out = np.zeros((8, 64), np.uint32)
    execution = kernel_of(BODY, arch).run([given, out, 0], (1, 1, 1), asynchronous=asynchronous)
    got = execution.buffers[1]
    assert got is not None
    written, first, second, accumulated, *scalars = got
    wanted = np.full(64, 7)
    wanted[9] = given[5]
    np.testing.assert_array_equal(written, wanted)
    np.testing.assert_array_equal(first, [1, 1, *given[2:]])
    np.testing.assert_array_equal(second, [*given[:2], *[1] * 62])
    np.testing.assert_array_equal(accumulated, given)
    # Lane 5; lane 0x46 modulo 64; the first active lane; lane 0 where none is active.
    assert [int(row[0]) for row in scalars] == [given[5], given[6], given[4], given[0]]
    assert execution.event_count == 0
