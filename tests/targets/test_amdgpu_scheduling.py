"""What the scheduler after allocation keeps in order, and wait states, by opcode."""

from __future__ import annotations

import pytest

from verilocc_bench.dataset import load_rows
from verilocc_bench.ir import Instruction, parse_function
from verilocc_bench.targets import get_target
from verilocc_bench.targets.amdgpu_scheduling import stays_behind, wait_states


def behind(*opcodes: str) -> list[list[int]]:
    masks = stays_behind([Instruction(opcode) for opcode in opcodes])
    return [[bit for bit in range(len(opcodes)) if mask >> bit & 1] for mask in masks]


def test_loads_pass_loads_and_stores_pass_nothing_of_their_memory() -> None:
    assert behind("DS_READ_B64", "DS_READ_B64", "DS_WRITE_B64", "DS_READ2_B32") == [
        [],
        [],
        [0, 1],
        [2],
    ]
    assert behind("GLOBAL_LOAD_DWORD", "DS_WRITE_B32", "GLOBAL_ATOMIC_ADD_F32") == [[], [], [0]]
    assert behind("DS_WRITE2ST64_B64", "BUFFER_STORE_DWORD_OFFEN_exact", "V_MOV_B32") == [[]] * 3


def test_barriers_keep_memory_operations_on_their_side() -> None:
    assert behind("DS_READ_B64", "V_ADD_U32", "S_BARRIER", "S_LOAD_DWORD", "V_ADD_U32") == [
        [],
        [],
        [0],
        [2],
        [],
    ]
    assert behind("DS_READ_B64", "WAVE_BARRIER", "S_WAITCNT") == [[], [0], [1]]


@pytest.mark.parametrize(
    ("opcode", "states"),
    [
        ("V_MFMA_F32_4X4X4F16", 5),
        ("V_MFMA_F32_16X16X16F16", 11),
        ("V_MFMA_F32_32X32X8_BF16_1K", 19),
        ("V_MFMA_I32_32X32X16_I8", 19),
        ("V_SMFMAC_F32_16X16X32_F16", 11),
        ("V_ADD_F32", 0),
    ],
)
def test_wait_states(opcode: str, states: int) -> None:
    assert wait_states(Instruction(opcode)) == states


def test_every_matrix_instruction_of_mini_needs_some() -> None:
    seen = set()
    for row in load_rows("mini").rows:
        if row.arch != "sm_80":
            for _, _, instruction in parse_function(row.normalized).instructions():
                if "MFMA" in instruction.opcode:
                    seen.add(instruction.opcode)
                    assert get_target(row.arch).wait_states(instruction) > 0
    assert len(seen) > 3
