"""From a sweep point to a row: Triton, LLVM, ptxas, and labels read off their output."""
