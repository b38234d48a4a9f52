"""The vendor's own kernels beside a measured one: torch's, on the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from verilocc_bench.measuring.launched_kernel import LaunchedKernel, interleaved

_TYPES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}


class NoCounterpart(Exception):
    """The library has no kernel for this; the message says why."""


def measure_library(kernel: LaunchedKernel, rounds: int) -> dict[str, Any]:
    """Times of the compiler's own code and of torch's counterpart, or why there are none.

    Both compute the expected numbers once: the grid has one layer.
    """
    try:
        torch, name, run = _counterpart(kernel)
    except NoCounterpart as reason:
        return {"skipped": str(reason)}
    (expected, *_) = kernel.prepared.expectations
    got = run().float().cpu().numpy()
    wanted = expected.wanted[tuple(slice(n) for n in got.shape)]
    error = float(np.abs(got - wanted).max() / np.abs(wanted).max())
    own = kernel.load(kernel.document["sides"][0]["name"])
    kernel.reset()
    runs: dict[str, Callable[[], Any]] = {"own": lambda: kernel.launch(own, 1), name: run}
    return {
        "library": f"{name} of torch {torch.__version__}",
        "error": min(error, 1e300),
        "tolerance": expected.tolerance,
        "milliseconds": interleaved(kernel.gpu, runs, rounds),
    }


def _counterpart(kernel: LaunchedKernel) -> tuple[Any, str, Callable[[], Any]]:
    """torch, the name of its function, and a call of it on the kernel's inputs."""
    reference = kernel.document["reference"]
    if reference is None or reference["kernel"] not in {"gemm", "mha_forward"}:
        raise NoCounterpart("no library has the same function")
    parameters = reference["parameters"]
    on = {name for name, value in parameters.items() if value not in (False, 0, "none")}
    if parameters["dtype"] not in _TYPES:
        raise NoCounterpart(f"torch multiplies no {parameters['dtype']}")
    scalars = {a.name: a.value for a in kernel.prepared.arguments if hasattr(a, "value")}
    is_product = reference["kernel"] == "gemm"
    reason = _product_reason(on, parameters) if is_product else _attention_reason(on, scalars)
    if reason is not None:
        raise NoCounterpart(reason)
    try:
        import torch
    except ImportError:
        raise NoCounterpart("torch is not there") from None
    if not torch.cuda.is_available():
        raise NoCounterpart("torch sees no GPU")

    def tensor(name: str) -> Any:
        stored = kernel.prepared.buffers[name].initial
        if stored.dtype == np.uint16:
            stored = stored.view(np.int16)
        moved = torch.from_numpy(stored).cuda()
        return moved.view(getattr(torch, _TYPES[parameters["dtype"]]))

    if is_product:
        return torch, "torch.matmul", _product(torch, tensor, on, scalars)
    return torch, "scaled_dot_product_attention", _attention(torch, tensor, parameters, scalars)


def _product_reason(on: set[str], parameters: dict[str, Any]) -> str | None:
    """Why torch.matmul is not the same function; None if it is."""
    if parameters["out_dtype"] != parameters["dtype"] or parameters["precision"] != "ieee":
        return "torch.matmul gives no such type, or computes otherwise"
    return "torch.matmul has no epilogue" if on & {"activation", "residual", "bias"} else None


def _attention_reason(on: set[str], scalars: dict[str, float]) -> str | None:
    if on & {"variable_length", "alibi", "matrix_bias", "window", "softcap"}:
        return "scaled_dot_product_attention has no such scores"
    if "causal" in on and scalars["seq_q"] != scalars["seq_k"]:
        return "its causal mask needs as many keys as queries"
    return None


def _product(torch: Any, tensor: Any, on: set[str], scalars: dict[str, float]) -> Callable[[], Any]:
    m, n, k = (int(scalars[name]) for name in "MNK")
    a, b = tensor("a"), tensor("b")
    a = a[:k, :m].T if "transpose_a" in on else a[:m, :k]
    b = b[:n, :k].T if "transpose_b" in on else b[:k, :n]
    return lambda: torch.matmul(a, b)


def _attention(
    torch: Any, tensor: Any, parameters: dict[str, Any], scalars: dict[str, float]
) -> Callable[[], Any]:
    queries, keys, heads = (int(scalars[name]) for name in ("seq_q", "seq_k", "heads"))
    q, k, v = (
        tensor(name)[:, :, :length, : parameters["head_dim"]].contiguous()
        for name, length in (("q", queries), ("k", keys), ("v", keys))
    )
    of = torch.arange(heads, device=q.device) // parameters["query_group"]
    q, k, v = q[:, :heads].contiguous(), k[:, of].contiguous(), v[:, of].contiguous()
    is_causal = bool(parameters["causal"])
    scale = float(scalars["scale"])
    attention = torch.nn.functional.scaled_dot_product_attention
    return lambda: attention(q, k, v, is_causal=is_causal, scale=scale)
