"""The run-time arguments of each kernel, in order, and the parameter that needs each.

A dataset row names its kernel and its parameters; the arguments themselves stand in the
kernels' source, which the package does not import. A test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping

_GEMM = "a b c bias?bias residual?residual M N K lda ldb ldc"
_BACKWARD = "q k v grad_out row_max_in row_scale_in delta_in"
_BACKWARD_SIZES = "scale window?window seq_q seq_k q_head q_row k_head k_row statistics_head"

# `name?parameter`: the argument is passed only where the parameter is on.
_TEXT = {
    "gemm": _GEMM,
    "gemm_batched": f"{_GEMM} batch_a batch_b batch_c",
    "gemm_persistent": f"{_GEMM} programs",
    "gemm_split_k": "a b c M N K lda ldb ldc partial_stride",
    "gemm_reduce_partials": "partials c bias?bias M N ldc partial_stride",
    "gemm_gated": "a gate up c M N K lda ldb ldc",
    "gemm_quantized": "a b c scale_a scale_b M N K lda ldb ldc",
    "gemm_weight_only": "a b c scale M N K lda ldb ldc scale_stride",
    "gemm_experts": (
        "a b c tokens experts weights?weighted token_count N K lda ldb ldc expert_stride top_k"
    ),
    "mha_forward": (
        "q k v out row_max_out?statistics row_scale_out?statistics bias?matrix_bias slopes?alibi "
        "cumulative_q?variable_length cumulative_k?variable_length scale softcap?softcap "
        "window?window seq_q seq_k heads q_batch q_head q_row k_batch k_head k_row v_batch "
        "v_head v_row out_batch out_head out_row bias_head bias_row statistics_head"
    ),
    "mha_backward_preprocess": "out grad_out delta seq_q out_head out_row statistics_head",
    "mha_backward_dkdv": f"{_BACKWARD} grad_k grad_v {_BACKWARD_SIZES}",
    "mha_backward_dq": f"{_BACKWARD} grad_q {_BACKWARD_SIZES}",
    "mha_decode": (
        "q k_cache v_cache partial_out partial_max partial_sum lengths page_table?page_size "
        "scale softcap?softcap window?window key_heads q_batch q_head cache_batch cache_row "
        "cache_head table_row keys_per_split"
    ),
    "mha_decode_combine": "partial_out partial_max partial_sum out out_row",
}

SIGNATURES: dict[str, tuple[tuple[str, str], ...]] = {
    kernel: tuple(
        (name, parameter) for name, _, parameter in (word.partition("?") for word in text.split())
    )
    for kernel, text in _TEXT.items()
}
"""For each kernel (argument, the parameter that needs it or "") in order."""


def needed_arguments(kernel: str, parameters: Mapping[str, object]) -> tuple[str, ...]:
    """The names of the arguments that the kernel takes with these parameters."""
    return tuple(
        name
        for name, parameter in SIGNATURES[kernel]
        if not parameter or parameters[parameter] not in (False, 0, "none")
    )
