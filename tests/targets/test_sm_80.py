"""sm_80 as data: files, what is reserved, occupancy."""

from __future__ import annotations

import json

import pytest

from verilocc_bench.analysis import parse_register_name
from verilocc_bench.dataset import load_rows
from verilocc_bench.targets import get_target
from verilocc_bench.targets.nvidia import RESERVED
from verilocc_bench.targets.nvidia_budget import nameable_registers

TARGET = get_target("sm_80")


def test_the_register_files() -> None:
    assert {file.name: file.count for file in TARGET.files} == {
        "R": 255, "UR": 63, "P": 7, "UP": 7,
    }  # fmt: skip
    for name in ("R254", "UR62", "P6", "UP6"):
        assert parse_register_name(TARGET, name) is not None
    for name in ("R255", "RZ", "UR63", "URZ", "P7", "PT", "UP7", "B0", "v0"):
        assert parse_register_name(TARGET, name) is None
    assert [(units.file, units.first, units.count) for units in RESERVED] == [
        ("R", 1, 1),
        ("UR", 0, 4),
    ]


@pytest.mark.parametrize(
    ("registers", "warps"),
    # The CUDA occupancy calculator's warps by registers a thread, less the two that ptxas adds.
    [(0, 64), (30, 64), (31, 48), (38, 48), (39, 40), (62, 32), (63, 28), (70, 28), (126, 16),
     (127, 12), (166, 12), (167, 8), (253, 8)],
)  # fmt: skip
def test_occupancy(registers: int, warps: int) -> None:
    assert TARGET.occupancy({"R": registers}) == warps


def test_the_labels_keep_within_what_ptxas_names() -> None:
    for row in load_rows("mini").rows:
        if row.arch == "sm_80":
            limit = json.loads(row.provenance)["register_limit"]
            assert f"registers R:{nameable_registers(limit)} " in row.normalized
            assert json.loads(row.registers_used)["R"] <= nameable_registers(limit)


def test_one_warp_is_no_warps() -> None:
    assert [TARGET.counted_occupancy(count) for count in (0, 1, 12)] == [
        "0 warps",
        "1 warp",
        "12 warps",
    ]
    assert get_target("gfx942").counted_occupancy(1) == "1 wave"
