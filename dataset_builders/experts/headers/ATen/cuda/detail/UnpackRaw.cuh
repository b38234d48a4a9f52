// In place of PyTorch's header: reads seed and offset of the dropout.
#pragma once
#include <tuple>

#include <ATen/cuda/CUDAGeneratorImpl.h>

namespace at {
namespace cuda {
namespace philox {

__host__ __device__ __forceinline__ std::tuple<uint64_t, uint64_t> unpack(
    at::PhiloxCudaState arguments) {
  if (arguments.captured_) {
    return std::make_tuple(
        static_cast<uint64_t>(*arguments.seed_.ptr),
        static_cast<uint64_t>(*arguments.offset_.ptr + arguments.offset_intragraph_));
  }
  return std::make_tuple(arguments.seed_.val, arguments.offset_.val);
}

}  // namespace philox
}  // namespace cuda
}  // namespace at
