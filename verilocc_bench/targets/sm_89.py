"""sm_89: NVIDIA L4, L40, RTX 4090 (Ada, compute capability 8.9): 48 warps a multiprocessor."""

from verilocc_bench.targets.nvidia import nvidia_target

SM_89 = nvidia_target("sm_89", maximum_warps=48)
