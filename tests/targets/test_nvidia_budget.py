"""Register limits of NVIDIA kernels, from numbers and from a cubin's attributes."""

from __future__ import annotations

import struct

import pytest

from verilocc_bench.errors import InputError
from verilocc_bench.targets.nvidia_budget import (
    LaunchBounds,
    nameable_registers,
    read_launch_bounds,
    register_limit,
)

# What ptxas 13.5 writes for `.reqntid 32` and `.maxnreg 48`, shortened.
INFORMATION = bytes.fromhex(
    "0437 0400 87000000"  # a version
    "0135 0000"
    "0317 4000"
    "031b 3000"  # 48 registers
    "024c 0100"
    "0410 0c00 200000000100000001000000"  # 32 x 1 x 1 threads
)


@pytest.mark.parametrize(
    ("threads", "limit"),
    [(1, 255), (128, 255), (256, 255), (257, 168), (384, 168), (512, 128), (640, 96),
     (768, 80), (769, 72), (1024, 64), (None, 255)],
)  # fmt: skip
def test_the_block_limits_the_registers_of_a_thread(threads: int | None, limit: int) -> None:
    assert register_limit(threads) == limit
    assert register_limit(threads, 40) == 40
    assert LaunchBounds(threads).register_limit == limit


@pytest.mark.parametrize("threads", [0, -1, 1025])
def test_impossible_blocks_are_refused(threads: int) -> None:
    with pytest.raises(ValueError, match="block"):
        register_limit(threads)


def test_two_registers_are_kept_back() -> None:
    assert nameable_registers(255) == 253
    assert nameable_registers(64) == 62
    assert nameable_registers(1) == 0


def test_launch_bounds_are_read_from_the_attributes() -> None:
    assert read_launch_bounds(INFORMATION) == LaunchBounds(32, 48)
    assert read_launch_bounds(INFORMATION).register_limit == 48
    assert read_launch_bounds(b"") == LaunchBounds(None, 255)
    largest = bytes.fromhex("0405 0c00") + struct.pack("<III", 16, 8, 4)
    assert read_launch_bounds(largest) == LaunchBounds(512, 255)


@pytest.mark.parametrize(
    "information",
    [
        INFORMATION[:-1],
        INFORMATION[:-13],
        b"\x09\x00\x00\x00",
        b"\x00",
        bytes.fromhex("0410 0400 20000000"),
        bytes.fromhex("0410 0c00 200000000100000000000000"),
        bytes.fromhex("0410 0c00 ffffffffffffffffffffffff"),
        bytes.fromhex("031b 0000"),
    ],
)
def test_damaged_attributes_are_input_errors(information: bytes) -> None:
    with pytest.raises(InputError):
        read_launch_bounds(information)
