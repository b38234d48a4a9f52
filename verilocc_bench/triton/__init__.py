"""Triton: our registers in its own compile (`allocator`), its kernels as problems (`capture`)."""

from verilocc_bench.triton.plugin import TritonAllocator, allocator
from verilocc_bench.triton.report import KernelReport, Report

__all__ = ["KernelReport", "Report", "TritonAllocator", "allocator"]
