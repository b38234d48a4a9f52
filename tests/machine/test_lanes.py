"""Opcodes that move values between lanes, and to and from accumulation registers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.machine.assembly import kernel_of, program

pytestmark = pytest.mark.slow

BODY = program("lanes")


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
