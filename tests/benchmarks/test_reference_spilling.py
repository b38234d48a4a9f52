"""What ptxas and LLVM insert into rows of the split track, compiled again."""

from __future__ import annotations

import dataclasses
import json

import pytest

from benchmarks.inserted_code import InsertedCode, InsertedKind, add_up
from benchmarks.reference_spilling import (
    count_spilling,
    pipeline_splitting,
    reference_spilling,
)
from tests.backends.nvidia.assembled_kernels import LOOP, require_tools
from verilocc_bench.backends.nvidia.text import parse_sass
from verilocc_bench.backends.nvidia.tools import assemble, disassemble
from verilocc_bench.dataset import load_rows
from verilocc_bench.errors import InputError

ROWS = load_rows("mini", track="split").rows
NVIDIA_ROW = min((r for r in ROWS if r.arch == "sm_80"), key=lambda row: row.n_instructions)
AMD_ROW = min((r for r in ROWS if r.arch == "gfx942"), key=lambda row: row.n_instructions)


def test_loads_and_stores_of_local_memory_by_loop() -> None:
    require_tools()
    text = disassemble(assemble(LOOP))
    function = parse_sass(text)[0]
    assert count_spilling(function) == {}
    # Loads and stores of shared memory, taken for such of local memory.
    names = {"LDS": "LDL.LU.64", "STS": "STL.128"}
    instructions = tuple(
        dataclasses.replace(each, opcode=names.get(each.opcode[:3], each.opcode))
        for each in function.instructions
    )
    taken = dataclasses.replace(function, instructions=instructions)
    loads = sum(each.opcode.startswith("LDS") for each in function.instructions)
    stores = sum(each.opcode.startswith("STS") for each in function.instructions)
    found = count_spilling(taken)
    assert loads + stores > 0
    counts = [
        (InsertedKind.VECTOR_RELOAD, loads, 2),
        (InsertedKind.VECTOR_SPILL, stores, 4),
    ]
    for kind, count, lanes in counts:
        here = found.get(kind, InsertedCode())
        assert (here.instructions, here.lanes) == (count, lanes * count)
        assert here.weighted_lanes == lanes * here.weighted_instructions
    assert add_up(found.values()).weighted_instructions > loads + stores  # some are in the loop


def test_a_row_of_sm_80_compiled_again() -> None:
    require_tools()
    pytest.importorskip("triton")
    found = reference_spilling(NVIDIA_ROW)
    recorded = json.loads(NVIDIA_ROW.provenance)
    spills, reloads = (
        found.kinds.get(kind, InsertedCode())
        for kind in (InsertedKind.VECTOR_SPILL, InsertedKind.VECTOR_RELOAD)
    )
    assert found.register_limit == recorded["register_limit"]
    assert spills.instructions == recorded["reference"]["spill_stores"]
    assert reloads.instructions == recorded["reference"]["spill_loads"]
    assert found.instructions <= recorded["reference"]["instructions"]
    assert found.own_instructions <= recorded["instructions"]
    recorded["reference"]["machine_code_sha256"] = "0" * 64
    other = dataclasses.replace(NVIDIA_ROW, provenance=json.dumps(recorded))
    with pytest.raises(InputError, match="other code here than the row's build"):
        reference_spilling(other)


def test_what_is_no_such_row_is_refused() -> None:
    with pytest.raises(InputError, match="split track of sm_80"):
        reference_spilling(AMD_ROW)
    empty = dataclasses.replace(NVIDIA_ROW, provenance="{}")
    with pytest.raises(InputError, match="names no register limit"):
        reference_spilling(empty)


def test_a_row_of_gfx942_compiled_again() -> None:
    pytest.importorskip("triton")
    pytest.importorskip("llvmlite")
    from dataset_builders.compilers.llvm import LLVMCompiler

    with LLVMCompiler() as llvm:
        found = pipeline_splitting(AMD_ROW, llvm)
    total = add_up(found.values())
    assert total.lanes > 0
    assert total.weighted_lanes >= total.lanes >= total.instructions
