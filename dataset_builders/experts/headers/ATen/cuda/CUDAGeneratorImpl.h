// In place of PyTorch's header: seed and offset of the dropout, as values or as places in memory.
#pragma once
#include <cstdint>

namespace at {

struct PhiloxCudaState {
  union Payload {
    uint64_t val;
    int64_t* ptr;
  };
  Payload seed_{};
  Payload offset_{};
  uint64_t offset_intragraph_ = 0;
  bool captured_ = false;
};

}  // namespace at
