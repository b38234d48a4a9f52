"""Attention forward, backward and decoding, in Triton's interpreter, against the references."""

from __future__ import annotations

import pytest

from dataset_builders.kernels.specifications import KERNELS, ParameterValue
from tests.dataset_builders.kernel_cases import Case, Outcome, print_outcomes, run_cases

pytestmark = pytest.mark.slow

MODULE = "tests.dataset_builders.test_kernels_mha"

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
CASES: dict[str, Case] = {
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


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    return run_cases(MODULE)


@pytest.mark.parametrize("name", CASES)
def test_kernel_agrees_with_numpy(name: str, outcomes: dict[str, Outcome]) -> None:
    assert outcomes[name].problems() == []


def test_every_kernel_is_run(outcomes: dict[str, Outcome]) -> None:
    run = {kernel for outcome in outcomes.values() for kernel in outcome.kernels}
    assert run == {name for name, kernel in KERNELS.items() if kernel.family == "mha"}


if __name__ == "__main__":
    print_outcomes(CASES)
