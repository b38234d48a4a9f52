"""nvcc as a process: equal bytes from any folder, and errors by name."""

from __future__ import annotations

import pytest

from dataset_builders.experts.nvcc import compile_cubin, cuda_headers, find_nvcc, without_folder
from verilocc_bench.errors import InputError, RejectedKernel

KERNEL = """
#include <cuda/std/utility>
namespace { __device__ int hidden; }
__global__ void kernel(int* out) { *out = hidden++; }
"""


@pytest.fixture(scope="module")
def nvcc(cuda: None) -> None:
    """Skips without the extra `expert`, which `dev` does not have."""
    try:
        find_nvcc()
    except InputError as error:
        pytest.skip(str(error))


def test_names_lose_the_hash_of_the_folder() -> None:
    text = b"_ZN39_INTERNAL_b7434a86_9_kernel_cu_000000014cuda_GLOBAL__N__b7434a86_9_kernel_cu_x"
    assert without_folder(text) == text.replace(b"b7434a86", b"00000000")
    other = b"b7434a86_9_kernel_cu_ _b7434a8_9_kernel_cu_ _b7434a86_8_kernel_cu_"
    assert without_folder(other) == other


@pytest.mark.slow
def test_equal_text_gives_equal_bytes(nvcc: None) -> None:
    first, second = (compile_cubin(KERNEL, {}) for _ in range(2))
    assert first == second
    assert b"_00000000_9_kernel_cu_" in first
    assert str(cuda_headers()).encode() not in first


@pytest.mark.slow
def test_a_wrong_text_is_rejected_with_the_first_error(nvcc: None) -> None:
    with pytest.raises(RejectedKernel, match="error") as rejected:
        compile_cubin("no such thing;", {})
    assert rejected.value.kind == "nvcc-failed"
