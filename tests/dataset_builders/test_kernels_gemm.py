"""The matrix multiplications, run in Triton's interpreter, against the references in numpy."""

from __future__ import annotations

import pytest

from dataset_builders.kernels.specifications import KERNELS, ParameterValue
from tests.dataset_builders.kernel_cases import Case, Outcome, print_outcomes, run_cases

pytestmark = pytest.mark.slow

MODULE = "tests.dataset_builders.test_kernels_gemm"

# Odd sizes that no tile divides.
UNEVEN: dict[str, ParameterValue] = {
    "block_m": 16, "block_n": 16, "block_k": 16, "even_mn": False, "even_k": False,
    "aligned": False,
}  # fmt: skip
WIDE = UNEVEN | {"block_n": 32}

CASES: dict[str, Case] = {}
for kernel in ("gemm", "gemm_batched", "gemm_persistent"):
    CASES |= {
        f"{kernel}-as-stored": Case(kernel, UNEVEN),
        f"{kernel}-even": Case(
            kernel, {"block_m": 16, "block_n": 32, "block_k": 32, "num_stages": 1}
        ),
        f"{kernel}-aligned-uneven": Case(
            kernel,
            {"block_m": 32, "block_n": 64, "block_k": 32, "even_mn": False, "even_k": False},
        ),
        f"{kernel}-transposed-a-relu-bias": Case(
            kernel, UNEVEN | {"transpose_a": True, "activation": "relu", "bias": True, "group_m": 1}
        ),
        f"{kernel}-transposed-b-gelu-bias-residual": Case(
            kernel,
            UNEVEN | {"transpose_b": True, "activation": "gelu", "bias": True, "residual": True,
                      "group_m": 2},
            tiles=3,
        ),
        f"{kernel}-transposed-both-silu-residual": Case(
            kernel,
            UNEVEN | {"transpose_a": True, "transpose_b": True, "activation": "silu",
                      "residual": True},
        ),
    }  # fmt: skip
INTEGERS: dict[str, ParameterValue] = {"dtype": "int8", "out_dtype": "int32"}
FLOATS: dict[str, ParameterValue] = {"dtype": "fp32", "out_dtype": "fp32"}
BYTES: dict[str, ParameterValue] = {"dtype": "int8"}
CASES |= {
    "gemm-one-tile": Case("gemm", UNEVEN, tiles=1),
    "gemm-float32": Case("gemm", UNEVEN | FLOATS),
    "gemm-integers": Case("gemm", UNEVEN | INTEGERS),
    "gemm-integers-bias-residual": Case(
        "gemm", UNEVEN | INTEGERS | {"bias": True, "residual": True}
    ),
    "gemm_reduce_partials": Case("gemm_reduce_partials", {"block_m": 16, "block_n": 16}),
    "gemm_reduce_partials-bias-gelu": Case(
        "gemm_reduce_partials",
        {"block_m": 16, "block_n": 16, "even_mn": False, "aligned": False, "bias": True,
         "activation": "gelu"},
    ),
    "gemm_gated-silu": Case("gemm_gated", UNEVEN),
    "gemm_gated-gelu-transposed-b": Case(
        "gemm_gated", UNEVEN | {"activation": "gelu", "transpose_b": True}
    ),
    "gemm_quantized-by-channel": Case("gemm_quantized", UNEVEN | BYTES),
    "gemm_quantized-by-tensor": Case("gemm_quantized", UNEVEN | BYTES | {"scale": "tensor"}),
    "gemm_quantized-transposed-both": Case(
        "gemm_quantized", UNEVEN | BYTES | {"transpose_a": True, "transpose_b": True}
    ),
    "gemm_experts-weighted": Case("gemm_experts", UNEVEN, tiles=3),
    "gemm_experts-unweighted": Case("gemm_experts", UNEVEN | {"weighted": False}),
    "gemm_experts-one-tile": Case("gemm_experts", UNEVEN, tiles=1),
}  # fmt: skip
for reduction in ("atomic", "partial"):
    for splits in (2, 4):
        CASES[f"gemm_split_k-{reduction}-{splits}"] = Case(
            "gemm_split_k", UNEVEN | {"reduction": reduction, "split_k": splits}
        )
    CASES[f"gemm_split_k-{reduction}-transposed-a"] = Case(
        "gemm_split_k", UNEVEN | {"reduction": reduction, "transpose_a": True}, tiles=1
    )
for bits in (4, 8):
    for grouped in (False, True):
        CASES[f"gemm_weight_only-{bits}-bit{'-grouped' if grouped else ''}"] = Case(
            "gemm_weight_only", WIDE | {"weight_bits": bits, "grouped_scale": grouped}
        )


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    return run_cases(MODULE)


@pytest.mark.parametrize("name", CASES)
def test_kernel_agrees_with_numpy(name: str, outcomes: dict[str, Outcome]) -> None:
    assert outcomes[name].problems() == []


def test_every_kernel_is_run(outcomes: dict[str, Outcome]) -> None:
    run = {kernel for outcome in outcomes.values() for kernel in outcome.kernels}
    assert run == {name for name, kernel in KERNELS.items() if kernel.family == "gemm"}


if __name__ == "__main__":
    print_outcomes(CASES)
