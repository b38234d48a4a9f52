"""Every kernel's reference by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from verilocc_bench.errors import InputError
from verilocc_bench.references import attention, decode, gemm, gemm_fused
from verilocc_bench.references.reference_launch import Launch
from verilocc_bench.references.reference_problem import KernelProblem

REFERENCES: dict[str, Callable[[KernelProblem], Launch]] = {
    function.__name__: function
    for function in (
        gemm.gemm,
        gemm.gemm_batched,
        gemm.gemm_persistent,
        gemm.gemm_split_k,
        gemm.gemm_reduce_partials,
        gemm_fused.gemm_gated,
        gemm_fused.gemm_quantized,
        gemm_fused.gemm_weight_only,
        gemm_fused.gemm_experts,
        attention.mha_forward,
        attention.mha_backward_preprocess,
        attention.mha_backward_dkdv,
        attention.mha_backward_dq,
        decode.mha_decode,
        decode.mha_decode_combine,
    )
}
"""What each kernel computes, as a function that fills in a problem."""


def launch_for(
    kernel: str,
    parameters: Mapping[str, Any],
    *,
    tiles: int = 2,
    seed: int = 0,
    sampled: bool = False,
    depth: int | None = None,
) -> Launch:
    """Inputs, grid and expected results of a kernel with these parameters.

    `parameters` is a row's column `params`, decoded. `tiles` is how many tiles each tiled
    dimension has: 1 gives a single work-group where the kernel allows one (shares along K
    need several), 2 crosses tiles, heads and sequences, with the last tile cut short where
    the parameters do not promise even tiles. With `sampled`, matrix products have a grid
    with three bands of their order of tiles, of which as many work-groups run. `depth` is how
    many blocks the loops along K or the keys take, by default a few.
    The same arguments give the same bytes.
    InputError for a kernel without a reference.
    """
    if kernel not in REFERENCES:
        known = ", ".join(REFERENCES)
        raise InputError(f"no reference of the kernel {kernel!r}; known are {known}")
    if tiles < 1:
        raise ValueError(f"tiles must be at least 1, not {tiles}")
    problem = KernelProblem(
        kernel, parameters, tiles=tiles, seed=seed, sampled=sampled, depth=depth
    )
    return REFERENCES[kernel](problem)
