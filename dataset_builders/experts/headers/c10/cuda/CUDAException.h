// In place of PyTorch's header: checks in host code, which is not compiled into kernels.
#pragma once
#define C10_CUDA_CHECK(expression) (void)(expression)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() (void)0
