"""Parallel moves one after another: the values end where they should, whatever the cycles."""

from __future__ import annotations

import random
import re

import pytest

from verilocc_bench.backends.amdgpu.parallel_moves import BlockedCycle, Unit, sequential_moves

NAMES = {"vgpr": "v", "agpr": "a", "sgpr": "s"}
SOURCES = {"v": "vas", "a": "va", "s": "s"}


def units(name: str) -> list[Unit]:
    if name.startswith("vcc"):
        return [("vcc", n) for n in {"vcc": (0, 1), "vcc_lo": (0,), "vcc_hi": (1,)}[name]]
    return [(NAMES[file], int(n)) for file, n in re.findall(r"(.gpr)(\d+)", name)]


def run(lines: list[str], values: dict[Unit, object]) -> dict[Unit, object]:
    """What the units hold after the instructions."""
    values = dict(values)
    for line in lines:
        left, right = line.split(" = ")
        destinations = [u for name in re.findall(r"\$(\w+)", left) for u in units(name)]
        sources = [
            u for name in re.findall(r"\$(\w+)", right) if name != "exec" for u in units(name)
        ]
        if "V_SWAP_B32" in line:
            assert len(destinations) == 2
            assert sources == destinations[::-1]
        assert len(sources) == len(destinations), line
        read = [values.get(u, u) for u in sources]
        values.update(zip(destinations, read, strict=True))
    return values


def test_random_moves() -> None:
    for seed in range(300):
        check_random_moves(random.Random(seed))


def check_random_moves(chance: random.Random) -> None:
    size = chance.randint(1, 6)
    pool = [(file, n) for file in "vas" for n in range(size)]
    destinations = chance.sample(pool, chance.randint(1, len(pool)))
    pairs = [(d, chance.choice([u for u in pool if u[0] in SOURCES[d[0]]])) for d in destinations]
    if chance.random() < 0.5:  # a permutation of each file: cycles only
        pairs = []
        for file in "vas":
            of_file = [u for u in pool if u[0] == file]
            pairs += zip(of_file, chance.sample(of_file, size), strict=True)
    free = {"v": 100, "s": 100}
    lines = sequential_moves(pairs, free)
    start = {u: f"old {u}" for u in pool}
    end = run(lines, start)
    wanted = {**start, **{d: start[s] for d, s in pairs}}
    assert {u: end[u] for u in pool} == wanted
    assert set(end) <= {*pool, ("v", 100), ("s", 100)}


def test_swaps_pairs_and_cycles() -> None:
    v0, v1, v2 = ("v", 0), ("v", 1), ("v", 2)
    assert sequential_moves([(v0, v1), (v1, v0)], {}) == [
        "    $vgpr0, $vgpr1 = V_SWAP_B32 $vgpr1, $vgpr0, implicit $exec"
    ]
    pair = [(("v", 4 + n), ("v", 2 + n)) for n in range(2)]
    assert sequential_moves(pair, {}) == [
        "    renamable $vgpr4_vgpr5 = COPY renamable $vgpr2_vgpr3"
    ]
    odd = [(("v", 3 + n), ("v", 6 + n)) for n in range(2)]
    assert len(sequential_moves(odd, {})) == 2
    vcc = [(("vcc", n), ("s", 2 + n)) for n in range(2)]
    assert sequential_moves(vcc, {}) == ["    renamable $vcc = COPY renamable $sgpr2_sgpr3"]
    assert sequential_moves([(v2, v2)], {}) == []


@pytest.mark.parametrize("file", ["a", "s", "vcc"])
def test_cycles_need_a_free_register(file: str) -> None:
    cycle = [((file, 0), (file, 1)), ((file, 1), (file, 0))]
    with pytest.raises(BlockedCycle) as error:
        sequential_moves(cycle, {"s" if file == "a" else "v": 9})
    assert set(error.value.units) == {(file, 0), (file, 1)}
    assert len(sequential_moves(cycle, {"s": 9, "a": 9})) == 3
