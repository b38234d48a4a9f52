"""Kernels that experts wrote: what stands for the sweep point in their rows.

The kernels come from open libraries, not from sources of our own. Every row of
them is of the split `test`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dataset_builders.kernels.specifications import ParameterValue
from dataset_builders.sweeps.point import (
    ArchitectureName,
    Parameters,
    RowPoint,
    architecture_named,
    decode_parameters,
)
from verilocc_bench.errors import InputError

EXPERT = "expert"
"""The `sweep` in the manifest of such a dataset, and the name of its config."""

EXPERT_RAW = f"{EXPERT}-raw"
"""The name of the config with their code."""

EXPERT_MINI = f"{EXPERT}-mini"
"""The `sweep` of the few such kernels that the package embeds."""

EXPERT_SWEEPS = (EXPERT, EXPERT_MINI)

OLD_LAYOUT = ("mini", EXPERT_MINI)
"""The sweeps of the embedded datasets, whose bytes stay: their JSON columns are texts."""

EXPERT_KERNELS: Mapping[str, tuple[str, str]] = {
    "aiter_attention_backward": ("aiter", "mha"),
    "aiter_attention_forward": ("aiter", "mha"),
    "aiter_gemm_bf16": ("aiter", "gemm"),
    "aiter_gemm_fp8": ("aiter", "gemm"),
    "aiter_gemm_int8": ("aiter", "gemm"),
    "aiter_latent_attention": ("aiter", "mha"),
    "aiter_moe_fused": ("aiter", "moe"),
    "aiter_moe_stages": ("aiter", "moe"),
    "aiter_paged_attention": ("aiter", "mha"),
    "aiter_top_k_softmax": ("aiter", "moe"),
    "cutlass_gemm": ("cutlass", "gemm"),
    "cutlass_gemm_batched": ("cutlass", "gemm"),
    "cutlass_gemm_split_k_parallel": ("cutlass", "gemm"),
    "cutlass_gemm_split_k_serial": ("cutlass", "gemm"),
    "cutlass_gemm_stream_k": ("cutlass", "gemm"),
    "cutlass_gemm_universal": ("cutlass", "gemm"),
    "flash_attention_backward": ("flash-attention", "mha"),
    "flash_attention_forward": ("flash-attention", "mha"),
    "flash_attention_split_kv": ("flash-attention", "mha"),
    "flash_attention_split_kv_combine": ("flash-attention", "mha"),
}
"""The library and the family of each kernel, by the name in the column `kernel`."""


@dataclass(frozen=True, slots=True)
class ExpertPoint(RowPoint):
    """One kernel of a library, with all that it takes to make it again."""

    arch: ArchitectureName

    @property
    def library(self) -> str:
        """The library that the kernel comes from."""
        return EXPERT_KERNELS[self.kernel][0]

    @property
    def family(self) -> str:
        """`gemm`, `mha`, or `moe` for kernels that are neither."""
        return EXPERT_KERNELS[self.kernel][1]

    @property
    def key(self) -> str:
        """The kernel's name, its architecture, and a hash of all parameters."""
        return f"{self.kernel}-{self.arch}-{self.digest[:10]}"

    @property
    def group(self) -> str:
        """All variants of one kernel."""
        return f"{self.family}/{self.library}/{self.kernel}"


def make_expert_point(
    arch: ArchitectureName, kernel: str, parameters: Mapping[str, ParameterValue]
) -> ExpertPoint:
    """The point of a kernel. Raises InputError for an unknown kernel."""
    if kernel not in EXPERT_KERNELS:
        raise InputError(f"unknown kernel {kernel!r}")
    return ExpertPoint(arch, kernel, Parameters.of(parameters))


def expert_point_from_json(arch: str, kernel: str, parameters_json: str) -> ExpertPoint:
    """The point of a row's columns `arch`, `kernel` and `params`. Raises InputError for others."""
    values = decode_parameters(parameters_json)
    if not all(isinstance(value, str | int) for value in values.values()):
        raise InputError("parameters are not a JSON object of texts and numbers")
    return make_expert_point(architecture_named(arch), kernel, values)
