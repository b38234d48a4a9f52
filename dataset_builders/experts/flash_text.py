"""The C++ text that makes the compiler emit one kernel of FlashAttention-2, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping

from dataset_builders.sweeps.experts import ExpertPoint

_ELEMENTS: Mapping[str, str] = {"fp16": "cutlass::half_t", "bf16": "cutlass::bfloat16_t"}
_FORWARD_HEADER, _BACKWARD_HEADER = "flash_fwd_launch_template.h", "flash_bwd_launch_template.h"
_FLAGS: Mapping[str, tuple[str, ...]] = {
    "flash_attention_forward": (
        "dropout", "causal", "local", "alibi", "even_lengths", "even_head", "softcap",
    ),
    "flash_attention_split_kv": (
        "causal", "local", "alibi", "even_lengths", "even_head", "softcap", "split", "append",
    ),
    "flash_attention_backward": (
        "dropout", "causal", "local", "alibi", "even_lengths", "even_head", "softcap",
    ),
}  # fmt: skip
"""The template's flags by kernel, in its order."""

_FUNCTIONS: Mapping[str, str] = {
    "flash_attention_forward": "flash_fwd_kernel",
    "flash_attention_split_kv": "flash_fwd_splitkv_kernel",
    "flash_attention_split_kv_combine": "flash_fwd_splitkv_combine_kernel",
    "flash_attention_backward": "flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel",
}


def flash_text(point: ExpertPoint) -> str:
    """The text of a point of this library. A KeyError is a bug of the list."""
    backward = point.kernel == "flash_attention_backward"
    way = "bwd" if backward else "fwd"
    arguments = ", ".join(["Traits", *_arguments(point)])
    return (
        f'#include "{_BACKWARD_HEADER if backward else _FORWARD_HEADER}"\n\n'
        f"namespace FLASH_NAMESPACE {{\n\n"
        f"using Traits = Flash_{way}_kernel_traits<{_traits(point)}>;\n"
        f"template __global__ void {_FUNCTIONS[point.kernel]}<{arguments}>(\n"
        f"    KERNEL_PARAM_MODIFIER const Flash_{way}_params);\n\n"
        f"}}  // namespace FLASH_NAMESPACE\n"
    )


def _arguments(point: ExpertPoint) -> list[str]:
    values = point.parameters
    if point.kernel == "flash_attention_split_kv_combine":
        return [str(values["block_m"]), str(values["log_splits"]), "true"]
    flags = ["true" if values.integer(name) else "false" for name in _FLAGS[point.kernel]]
    # The scores themselves are returned for tests of the library alone.
    return [*flags, "false"] if point.kernel == "flash_attention_forward" else flags


def _traits(point: ExpertPoint) -> str:
    values = point.parameters
    element = _ELEMENTS[str(values["dtype"])]
    head = values.integer("head_dim")
    if point.kernel == "flash_attention_split_kv_combine":
        columns = 256 if head <= 64 else 128 if head <= 128 else 64
        return f"{head}, 64, {columns}, 4, false, false, {element}"
    rows, columns_text = str(values["tile"]).split("x")
    arrangement = str(values.get("arrangement", "false,false")).replace(",", ", ")
    return f"{head}, {rows}, {columns_text}, {values['num_warps']}, {arrangement}, {element}"
