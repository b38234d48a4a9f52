"""Kernels of machine IR without LLVM IR: their descriptor, and what is missing in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from verilocc_bench.allocators import BUILT_IN, Request
from verilocc_bench.backends.amdgpu.kernel import MachineKernel, read_kernel
from verilocc_bench.backends.amdgpu.kernel_definition import UNKNOWN_ARGUMENTS
from verilocc_bench.backends.amdgpu.label import compiler_answer
from verilocc_bench.backends.amdgpu.lower import lower
from verilocc_bench.backends.amdgpu.read import MirFile
from verilocc_bench.backends.kernel import LoweredCode, ReadOptions

KERNEL = """\
---
name: 'of "one"\\'
tracksRegLiveness: true
machineFunctionInfo:
  isEntryFunction: true
body: |
  bb.0:
    liveins: $vgpr0, $sgpr4_sgpr5
    %0:vgpr_32 = COPY $vgpr0
    %1:sreg_64 = COPY $sgpr4_sgpr5
    undef %2.sub0:vreg_64_align2 = V_ADD_U32_e32 3, %0, implicit $exec
    %2.sub1:vreg_64_align2 = V_MOV_B32_e32 7, implicit $exec
    S_ENDPGM 0, implicit %2, implicit %1
...
"""
FUNCTION = KERNEL.replace("isEntryFunction: true", "isEntryFunction: false").replace("one", "two")


def read(text: str) -> MachineKernel:
    name = 'of "one"\\' if "one" in text else 'of "two"\\'
    return read_kernel(text.encode(), Path("x.mir"), ReadOptions("gfx942", name))


def lowered(text: str, output: str) -> LoweredCode:
    kernel = read(text)
    return lower(kernel, BUILT_IN["linear-scan"].allocate(Request(kernel.problem)), Path(output))


@pytest.mark.usefixtures("llc")
@pytest.mark.parametrize("text", [KERNEL, KERNEL + FUNCTION, FUNCTION + KERNEL])
def test_the_descriptor_has_the_registers(text: str) -> None:
    code = lowered(text, "x.s")
    assert code.document["machine_code"] == {
        "vgprs": 2,
        "agpr_offset": 4,
        "sgprs": 6,
        "scratch_bytes": 0,
        "waves": 8,
    }
    assert code.document["missing"] == UNKNOWN_ARGUMENTS
    assert UNKNOWN_ARGUMENTS in code.lines
    assert isinstance(code.data, bytes)
    assert b"vgpr_count:     2" in code.data
    assert lowered(text, "x.o").data[:4] == b"\x7fELF"


def test_written_machine_ir_defines_the_kernel() -> None:
    text = str(lowered(KERNEL, "x.mir").data)
    assert text.startswith('--- |\n  define amdgpu_kernel void @"of \\22one\\22\\5C"() {\n')
    module = MirFile(text).module
    assert module.calling_conventions == {'of "one"\\': "amdgpu_kernel"}


@pytest.mark.usefixtures("llc")
def test_functions_need_none() -> None:
    code = lowered(FUNCTION, "x.s")
    assert code.document["missing"] is None
    assert compiler_answer(read(KERNEL))[0]
