"""sm_80: NVIDIA A100 (Ampere, compute capability 8.0): 64 warps a multiprocessor."""

from verilocc_bench.targets.nvidia import nvidia_target

SM_80 = nvidia_target("sm_80", maximum_warps=64)
