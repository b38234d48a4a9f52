"""Kernels with dynamic local memory keep its size among their hidden arguments."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from tests.sampling import some_of
from verilocc_bench.allocators import BUILT_IN, Request
from verilocc_bench.backends.amdgpu.dynamic_memory import (
    kernels_with_dynamic_memory,
    with_dynamic_sizes,
)
from verilocc_bench.backends.amdgpu.kernel import read_kernel
from verilocc_bench.backends.amdgpu.lower import lower
from verilocc_bench.backends.kernel import ReadOptions

Llc = Callable[..., str]
ARCHITECTURES = ("gfx90a", "gfx942")
SIZE = "hidden_dynamic_lds_size"
# One kernel uses the memory through a function, two use it themselves; the last does not.
KERNEL = """
define amdgpu_kernel void @{}(ptr addrspace(1) %o) #0 {{
  %x = call i32 @llvm.amdgcn.workitem.id.x()
  {}
  ret void
}}
"""
STORE = """
  %d = getelementptr [0 x {0}], ptr addrspace(3) {1}, i32 0, i32 %x
  store {0} 7, ptr addrspace(3) %d
"""
LLVM_IR = (
    f"""
target triple = "amdgcn-amd-amdhsa"
@"the memory" = external addrspace(3) global [0 x i32], align 16
@other = external addrspace(3) global [0 x i8], align 1
declare i32 @llvm.amdgcn.workitem.id.x()
define internal void @by_call(i32 %x) noinline {{{STORE.format("i32", '@"the memory"')}ret void
}}
"""
    + KERNEL.format('"a \\22name\\22"', "call void @by_call(i32 %x)")
    + KERNEL.format("itself", STORE.format("i32", '@"the memory"'))
    + KERNEL.format("inf", STORE.format("i8", "@other"))
    + KERNEL.format("without", "store i32 7, ptr addrspace(1) %o")
    + 'attributes #0 = { "amdgpu-flat-work-group-size"="1,256" }\n'
)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_all_kernels_of_a_module(arch: str, llc: Llc) -> None:
    convention = "-enable-ipra=0"
    expected = llc(LLVM_IR, arch, convention)
    machine_ir = llc(LLVM_IR, arch, convention, "-stop-before=greedy")
    made = llc(machine_ir, arch, "-x", "mir", convention, "-start-before=greedy")
    kernels = kernels_with_dynamic_memory(machine_ir)
    assert kernels == {'a "name"', "itself", "inf"}
    assert made.count(SIZE) < expected.count(SIZE) == 3
    assert with_dynamic_sizes(made, kernels) == expected


@pytest.mark.parametrize("case", some_of(product(["without", "inf", "itself"], ARCHITECTURES)))
def test_lowered_code(case: tuple[str, str], llc: Llc) -> None:
    name, arch = case
    text = LLVM_IR.replace("#0 = {", '#0 = { "target-features"="+xnack"')
    kernel = read_kernel(text.encode(), Path("own.ll"), ReadOptions(arch, name))
    answer = BUILT_IN["linear-scan"].allocate(Request(kernel.problem))
    assembly, binary = (lower(kernel, answer, Path(f"own.{kind}")).data for kind in "so")
    assert isinstance(assembly, bytes)
    assert isinstance(binary, bytes)
    expected = llc(text, arch, "-enable-ipra=0")
    assert assembly.count(SIZE.encode()) == expected.count(SIZE) == binary.count(SIZE.encode())
    assert binary[:4] == b"\x7fELF"


def test_kernels_without_hidden_arguments_stay(llc: Llc) -> None:
    text = LLVM_IR.replace("attributes #0 = {", 'attributes #0 = { "amdgpu-no-implicitarg-ptr"')
    assert not kernels_with_dynamic_memory(llc(text, "gfx942", "-stop-before=greedy"))
    assert not kernels_with_dynamic_memory("---\nname: f\n...\n")
    assert with_dynamic_sizes("no metadata", {"f"}) == "no metadata"
