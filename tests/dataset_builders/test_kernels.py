"""The kernels, run in Triton's interpreter, against the references in numpy."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from dataset_builders.kernels.specifications import KERNELS, ParameterValue
from tests.dataset_builders.kernel_cases import Case, answer_requests, interpreted

pytestmark = pytest.mark.slow

# Odd sizes that no tile divides.
ODD: dict[str, ParameterValue] = {
    "block_m": 16, "block_n": 16, "block_k": 16, "even_mn": False, "even_k": False,
    "aligned": False,
}  # fmt: skip
WIDE = ODD | {"block_n": 32}

CASES: dict[str, Case] = {}
for kernel in ("gemm", "gemm_batched", "gemm_persistent"):
    CASES |= {
        f"{kernel}-as-stored": Case(kernel, ODD),
        f"{kernel}-even": Case(
            kernel, {"block_m": 16, "block_n": 32, "block_k": 32, "num_stages": 1}
        ),
        f"{kernel}-aligned-uneven": Case(
            kernel,
            {"block_m": 32, "block_n": 64, "block_k": 32, "even_mn": False, "even_k": False},
        ),
        f"{kernel}-transposed-a-relu-bias": Case(
            kernel, ODD | {"transpose_a": True, "activation": "relu", "bias": True, "group_m": 1}
        ),
        f"{kernel}-transposed-b-gelu-bias-residual": Case(
            kernel,
            ODD | {"transpose_b": True, "activation": "gelu", "bias": True, "residual": True,
                      "group_m": 2},
            tiles=3,
        ),
        f"{kernel}-transposed-both-silu-residual": Case(
            kernel,
            ODD | {"transpose_a": True, "transpose_b": True, "activation": "silu",
                      "residual": True},
        ),
    }  # fmt: skip
INTEGERS: dict[str, ParameterValue] = {"dtype": "int8", "out_dtype": "int32"}
FLOATS: dict[str, ParameterValue] = {"dtype": "fp32", "out_dtype": "fp32"}
BYTES: dict[str, ParameterValue] = {"dtype": "int8"}
CASES |= {
    "gemm-one-tile": Case("gemm", ODD, tiles=1),
    "gemm-float32": Case("gemm", ODD | FLOATS),
    "gemm-integers": Case("gemm", ODD | INTEGERS),
    "gemm-integers-bias-residual": Case(
        "gemm", ODD | INTEGERS | {"bias": True, "residual": True}
    ),
    "gemm_reduce_partials": Case("gemm_reduce_partials", {"block_m": 16, "block_n": 16}),
    "gemm_reduce_partials-bias-gelu": Case(
        "gemm_reduce_partials",
        {"block_m": 16, "block_n": 16, "even_mn": False, "aligned": False, "bias": True,
         "activation": "gelu"},
    ),
    "gemm_gated-silu": Case("gemm_gated", ODD),
    "gemm_gated-gelu-transposed-b": Case(
        "gemm_gated", ODD | {"activation": "gelu", "transpose_b": True}
    ),
    "gemm_quantized-by-channel": Case("gemm_quantized", ODD | BYTES),
    "gemm_quantized-by-tensor": Case("gemm_quantized", ODD | BYTES | {"scale": "tensor"}),
    "gemm_quantized-transposed-both": Case(
        "gemm_quantized", ODD | BYTES | {"transpose_a": True, "transpose_b": True}
    ),
    "gemm_experts-weighted": Case("gemm_experts", ODD, tiles=3),
    "gemm_experts-unweighted": Case("gemm_experts", ODD | {"weighted": False}),
    "gemm_experts-one-tile": Case("gemm_experts", ODD, tiles=1),
}  # fmt: skip
for reduction in ("atomic", "partial"):
    for splits in (2, 4):
        CASES[f"gemm_split_k-{reduction}-{splits}"] = Case(
            "gemm_split_k", ODD | {"reduction": reduction, "split_k": splits}
        )
    CASES[f"gemm_split_k-{reduction}-transposed-a"] = Case(
        "gemm_split_k", ODD | {"reduction": reduction, "transpose_a": True}, tiles=1
    )
for bits in (4, 8):
    for grouped in (False, True):
        CASES[f"gemm_weight_only-{bits}-bit{'-grouped' if grouped else ''}"] = Case(
            "gemm_weight_only", WIDE | {"weight_bits": bits, "grouped_scale": grouped}
        )

# Attention.

SMALL: dict[str, ParameterValue] = {
    "block_m": 16, "block_n": 16, "head_dim": 32, "block_d": 32, "aligned": False,
}  # fmt: skip
UNEVEN = SMALL | {"even": False}
# More queries than keys, so that the first queries see nothing under a causal mask.
TALL = UNEVEN | {"block_m": 64, "num_stages": 1}
PADDED: dict[str, ParameterValue] = {"head_dim": 24}
SMALL_HEAD: dict[str, ParameterValue] = {
    "block_m": 16, "head_dim": 24, "block_d": 32, "even": False, "aligned": False,
}  # fmt: skip
DECODE: dict[str, ParameterValue] = {
    "block_h": 16, "block_n": 16, "head_dim": 24, "block_d": 32, "splits": 4, "query_group": 3,
    "aligned": False,
}  # fmt: skip

FORWARD: dict[str, dict[str, ParameterValue]] = {
    "all-visible": UNEVEN,
    "causal": UNEVEN | {"causal": True},
    "causal-peel": UNEVEN | {"causal": True, "peel": True},
    "peel": UNEVEN | {"peel": True},
    "window": UNEVEN | {"window": True},
    "window-causal": UNEVEN | {"window": True, "causal": True},
    "softcap-causal-peel": UNEVEN | {"softcap": True, "causal": True, "peel": True},
    "alibi-causal": UNEVEN | {"alibi": True, "causal": True},
    "matrix-bias-peel": UNEVEN | {"matrix_bias": True, "peel": True},
    "matrix-bias-causal": UNEVEN | {"matrix_bias": True, "causal": True},
    "statistics-shared-keys": UNEVEN | {"statistics": True, "query_group": 2},
    "even": SMALL,
    "even-causal-peel": SMALL | {"causal": True, "peel": True},
    "even-causal-matrix-bias": SMALL | {"causal": True, "matrix_bias": True},
    "padded-head": UNEVEN | PADDED,
    "fewer-keys-causal-peel": TALL | {"causal": True, "peel": True, "statistics": True},
    "fewer-keys-causal-window": TALL | {"causal": True, "window": True, "statistics": True},
    "variable-length": UNEVEN | {"variable_length": True, "causal": True, "statistics": True},
    "variable-length-peel": UNEVEN | {"variable_length": True, "causal": True, "peel": True},
    "variable-length-alibi-window": UNEVEN
    | {"variable_length": True, "alibi": True, "window": True, "query_group": 2},
}
BACKWARD: dict[str, dict[str, ParameterValue]] = {
    "all-visible": UNEVEN,
    "causal": UNEVEN | {"causal": True},
    "window": UNEVEN | {"window": True},
    "window-causal": UNEVEN | {"window": True, "causal": True},
    "even-shared-keys": SMALL | {"query_group": 2},
    "even-causal": SMALL | {"causal": True, "num_stages": 1},
    "padded-head": UNEVEN | PADDED,
    "fewer-keys-causal": TALL | {"causal": True},
}
CASES |= {
    "forward-one-tile": Case("mha_forward", UNEVEN | {"causal": True}, tiles=1),
    "preprocess": Case("mha_backward_preprocess", SMALL_HEAD),
    "preprocess-even": Case("mha_backward_preprocess", SMALL_HEAD | {"even": True}),
    "decode": Case("mha_decode", DECODE),
    "decode-one-share": Case("mha_decode", DECODE, tiles=1),
    "decode-softcap": Case("mha_decode", DECODE | {"softcap": True}),
    "decode-window": Case("mha_decode", DECODE | {"window": True}),
    "decode-pages": Case("mha_decode", DECODE | {"page_size": 16}),
    "decode-pages-smaller-than-tiles": Case("mha_decode", DECODE | {"page_size": 8}),
    "decode-pages-window": Case("mha_decode", DECODE | {"page_size": 16, "window": True}),
    "combine": Case("mha_decode_combine", {"head_dim": 24, "block_d": 32}),
}  # fmt: skip
CASES |= {f"forward-{name}": Case("mha_forward", changes) for name, changes in FORWARD.items()}
for kernel in ("mha_backward_dkdv", "mha_backward_dq"):
    CASES |= {f"{kernel}-{name}": Case(kernel, changes) for name, changes in BACKWARD.items()}


# Each asks about what the others ask about, in another combination.
FURTHER = {"gemm_split_k-partial-4", "mha_backward_dkdv-causal", "mha_backward_dq-causal"}
for name in ("even", "aligned-uneven", "transposed-both-silu-residual"):
    FURTHER |= {f"gemm_batched-{name}", f"gemm_persistent-{name}"}
for name in ("causal", "peel", "matrix-bias-causal", "fewer-keys-causal-window"):
    FURTHER |= {f"forward-{name}"}


@pytest.fixture(scope="module")
def problems() -> Iterator[Callable[[str], list[str]]]:
    with interpreted("tests.dataset_builders.test_kernels") as problems:
        yield problems


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.exhaustive) if n in FURTHER else n for n in CASES]
)
def test_kernel_agrees_with_numpy(name: str, problems: Callable[[str], list[str]]) -> None:
    assert problems(name) == []


def test_every_kernel_is_run() -> None:
    assert {CASES[name].kernel for name in CASES.keys() - FURTHER} == set(KERNELS)


if __name__ == "__main__":
    answer_requests(CASES)
