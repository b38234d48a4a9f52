"""sm_90: NVIDIA H100, H200 (Hopper, compute capability 9.0): 64 warps a multiprocessor."""

from verilocc_bench.targets.nvidia import nvidia_target

SM_90 = nvidia_target("sm_90", maximum_warps=64)
