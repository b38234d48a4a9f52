"""LLVM in processes of its own: errors are rejections, and a crash is survived."""

from __future__ import annotations

import pytest

from dataset_builders.compilers.llvm import LLVMCompiler
from verilocc_bench.errors import RejectedKernel

pytestmark = pytest.mark.slow

KERNEL = """
define amdgpu_kernel void @k(ptr addrspace(1) %p) {
  store i32 1, ptr addrspace(1) %p
  ret void
}
"""


def test_texts_before_and_after_allocation() -> None:
    with LLVMCompiler() as llvm:
        texts = llvm.compile("gfx942", KERNEL)
        assert "GLOBAL_STORE_DWORD_SADDR %" in texts.before
        assert "noVRegs:         true" in texts.greedy
        assert texts.basic is not None
        assert texts == llvm.compile("gfx942", KERNEL)
        assert llvm.version.startswith("22.")


def test_bad_ir_is_a_rejection_and_the_process_goes_on() -> None:
    with LLVMCompiler() as llvm:
        with pytest.raises(RejectedKernel, match="llvm-failed"):
            llvm.compile("gfx942", "nonsense")
        assert llvm.compile("gfx90a", KERNEL).before


def test_a_crash_is_a_rejection_and_a_new_process_is_started() -> None:
    # LLVM ends its process over an inline assembly constraint that it cannot meet.
    fatal = KERNEL.replace("store", 'call void asm sideeffect "", "{v400}"(i32 0)\n  store', 1)
    with LLVMCompiler() as llvm:
        with pytest.raises(RejectedKernel):
            llvm.compile("gfx942", fatal)
        process = llvm._workers["before"]._start()
        process.kill()
        process.wait()
        assert llvm.compile("gfx942", KERNEL).before
