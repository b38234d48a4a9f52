"""Compilation of inner loops by numba, and the random numbers that they draw.

Loops use integers alone: the same input gives the same result on every
machine. Import this module only when a search begins.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.errors import MissingExtraError

try:
    from verilocc_bench.compilation import Compilation
except ModuleNotFoundError:
    raise MissingExtraError("numba", "exact", "the search for assignments") from None


compiled = Compilation(Path(__file__).parent, "the search").compiled


def random_state(seed: int) -> NDArray[np.uint64]:
    """A state for `next_random`; equal seeds give equal numbers."""
    return np.array([(seed * 0x9E3779B97F4A7C15 + 0xD1B54A32D192ED03) % 2**64 | 1], np.uint64)


@compiled
def next_random(state: NDArray[np.uint64], below: int) -> int:
    """The next number from 0 to `below` - 1; xorshift64* (Vigna, "An experimental exploration of
    Marsaglia's xorshift generators, scrambled", TOMS 2016)."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return int((x * np.uint64(2685821657736338717)) >> np.uint64(33)) % below


@compiled
def random_rise(state: NDArray[np.uint64], temperature: int) -> int:
    """The rise of the cost that a step may have: k temperatures with probability 2^-(k+1).

    The distribution is geometric, where Metropolis has an exponential one: it
    needs no logarithm, and only integers.
    """
    rise = 0
    while rise < 20 and next_random(state, 2) == 0:
        rise += 1
    return rise * temperature
