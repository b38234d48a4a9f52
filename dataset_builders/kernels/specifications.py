"""What each kernel takes: its arguments, its parameters with their defaults, its sweep group.

Plain data, without Triton: sweeps are listed and counted where it is not
installed. A kernel's compile-time constants are its parameters in capitals
(`block_m` is `BLOCK_M`); the parameters in `OPTIONS` and `TYPES` are for the
compiler.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

ParameterValue: TypeAlias = str | int | bool
Family: TypeAlias = Literal["gemm", "mha"]
Defaults: TypeAlias = tuple[tuple[str, ParameterValue], ...]


@dataclass(frozen=True, slots=True)
class Argument:
    """A run-time argument.

    `type` is `i32`, `fp32`, `stride` (an i32, a multiple of 16 where the point
    says `aligned`) or a pointer such as `*fp32` or `*{dtype}`, whose braces
    name a parameter. Where the parameter `needed_by` is off (false, 0, "none")
    the argument is not passed.
    """

    name: str
    type: str
    needed_by: str = ""


@dataclass(frozen=True, slots=True)
class KernelSpecification:
    """One kernel: where it is, what it takes, which kernels are its near relatives.

    Kernels of one `kind` share their main loop, and so a sweep group.
    `shape` names the parameters that make up the tile's shape.
    """

    name: str
    family: Family
    module: str
    kind: str
    shape: tuple[str, ...]
    arguments: tuple[Argument, ...]
    defaults: Defaults

    @property
    def parameter_names(self) -> frozenset[str]:
        """Every parameter of this kernel, also where only one vendor has it."""
        return frozenset(name for name, _ in self.defaults)


# Passed to Triton as compile options, but for the last two. `maxnreg` is the
# registers that a thread may use (PTX's .maxnreg); 0 leaves them to the
# compiler. `asked_maxnreg` is the same for the allocation problem alone: code
# compiled with plenty is to be fitted into less; 0 asks for what it was compiled for.
# `capability` is the compute capability that Triton writes PTX for, 0 the
# architecture's own: ptxas assembles PTX of an older one, too.
AMD_OPTIONS = ("waves_per_eu", "matrix_instr_nonkdim", "kpack")
NVIDIA_OPTIONS = ("maxnreg", "asked_maxnreg", "capability")
OPTIONS = ("num_warps", "num_stages", *AMD_OPTIONS, *NVIDIA_OPTIONS)

# Say how arguments are typed and what is known of them. `small_buffers` is the
# promise that every buffer is below 2 GB, which lets AMD's buffer instructions
# in; Triton finds it out by itself for most tensors.
TYPES = ("dtype", "out_dtype", "weight_dtype", "aligned", "small_buffers")

_COMPILE: Defaults = (
    ("num_warps", 4),
    ("num_stages", 2),
    ("waves_per_eu", 0),
    ("matrix_instr_nonkdim", 0),
    ("kpack", 1),
    ("maxnreg", 0),
    ("asked_maxnreg", 0),
    ("capability", 0),
    ("aligned", True),
    ("small_buffers", True),
    ("dtype", "fp16"),
)
_TILE: Defaults = (("block_m", 64), ("block_n", 64), ("block_k", 32))
_EDGES: Defaults = (("even_mn", True), ("even_k", True))
_LAYOUT: Defaults = (("transpose_a", False), ("transpose_b", False))
_EPILOGUE: Defaults = (("bias", False), ("activation", "none"), ("residual", False))
_HEAD: Defaults = (("head_dim", 64), ("block_d", 64))

_GEMM: Defaults = (
    *_COMPILE, *_TILE, *_EDGES, *_LAYOUT, *_EPILOGUE,
    ("out_dtype", "fp16"), ("group_m", 8), ("precision", "ieee"),
)  # fmt: skip
_GEMM_SHAPE = ("block_m", "block_n", "block_k")
_MHA_SHAPE = ("head_dim", "block_m", "block_n")


def _integers(names: str) -> tuple[Argument, ...]:
    return tuple(Argument(name, "i32") for name in names.split())


def _strides(names: str) -> tuple[Argument, ...]:
    # Sizes count as strides: both are multiples of 16 in aligned problems.
    return tuple(Argument(name, "stride") for name in names.split())


def _pointers(names: str, type_name: str, needed_by: str = "") -> tuple[Argument, ...]:
    return tuple(Argument(name, type_name, needed_by) for name in names.split())


_GEMM_OPERANDS = (
    *_pointers("a b", "*{dtype}"),
    *_pointers("c", "*{out_dtype}"),
    *_pointers("bias", "*{out_dtype}", "bias"),
    *_pointers("residual", "*{out_dtype}", "residual"),
)
_GEMM_SIZES = _strides("M N K lda ldb ldc")
_BACKWARD_OPERANDS = (
    *_pointers("q k v grad_out", "*{dtype}"),
    *_pointers("row_max_in row_scale_in delta_in", "*fp32"),
)
_BACKWARD_SIZES = (
    Argument("scale", "fp32"),
    Argument("window", "i32", "window"),
    *_strides("seq_q seq_k q_head q_row k_head k_row statistics_head"),
)
_BACKWARD: Defaults = (
    *_COMPILE, ("block_m", 64), ("block_n", 64), *_HEAD,
    ("query_group", 1), ("causal", False), ("window", False), ("even", True),
)  # fmt: skip

_SPECIFICATIONS = (
    KernelSpecification(
        "gemm", "gemm", "gemm", "plain", _GEMM_SHAPE, (*_GEMM_OPERANDS, *_GEMM_SIZES), _GEMM
    ),
    KernelSpecification(
        "gemm_batched", "gemm", "gemm", "plain", _GEMM_SHAPE,
        (*_GEMM_OPERANDS, *_GEMM_SIZES, *_strides("batch_a batch_b batch_c")),
        _GEMM,
    ),
    KernelSpecification(
        "gemm_persistent", "gemm", "gemm", "plain", _GEMM_SHAPE,
        (*_GEMM_OPERANDS, *_GEMM_SIZES, *_integers("programs")),
        _GEMM,
    ),
    KernelSpecification(
        "gemm_split_k", "gemm", "gemm", "plain", _GEMM_SHAPE,
        (
            *_pointers("a b", "*{dtype}"), *_pointers("c", "*{out_dtype}"),
            *_GEMM_SIZES, *_strides("partial_stride"),
        ),
        (
            *_COMPILE, *_TILE, *_EDGES, *_LAYOUT,
            ("out_dtype", "fp32"), ("group_m", 8), ("precision", "ieee"),
            ("split_k", 4), ("reduction", "atomic"),
        ),
    ),
    KernelSpecification(
        "gemm_reduce_partials", "gemm", "gemm", "reduce", ("block_m", "block_n"),
        (
            *_pointers("partials", "*fp32"), *_pointers("c", "*{out_dtype}"),
            *_pointers("bias", "*{out_dtype}", "bias"), *_strides("M N ldc partial_stride"),
        ),
        (
            *_COMPILE, ("out_dtype", "fp16"), ("block_m", 32), ("block_n", 64), ("split_k", 4),
            ("even_mn", True), ("bias", False), ("activation", "none"),
        ),
    ),
    KernelSpecification(
        "gemm_gated", "gemm", "gemm_fused", "gated", _GEMM_SHAPE,
        (
            *_pointers("a gate up", "*{dtype}"), *_pointers("c", "*{out_dtype}"), *_GEMM_SIZES,
        ),
        (
            *_COMPILE, *_TILE, *_EDGES, ("transpose_b", False), ("out_dtype", "fp16"),
            ("group_m", 8), ("precision", "ieee"), ("activation", "silu"),
        ),
    ),
    KernelSpecification(
        "gemm_quantized", "gemm", "gemm_fused", "quantized", _GEMM_SHAPE,
        (
            *_pointers("a b", "*{dtype}"), *_pointers("c", "*{out_dtype}"),
            *_pointers("scale_a scale_b", "*fp32"), *_GEMM_SIZES,
        ),
        (
            *_COMPILE, *_TILE, *_EDGES, *_LAYOUT, ("out_dtype", "fp16"),
            ("group_m", 8), ("scale", "channel"),
        ),
    ),
    KernelSpecification(
        "gemm_weight_only", "gemm", "gemm_fused", "weight_only", _GEMM_SHAPE,
        (
            *_pointers("a", "*{dtype}"), *_pointers("b", "*int8"), *_pointers("c", "*{out_dtype}"),
            *_pointers("scale", "*{dtype}"), *_GEMM_SIZES, *_strides("scale_stride"),
        ),
        (
            *_COMPILE, *_TILE, *_EDGES, ("out_dtype", "fp16"), ("group_m", 8),
            ("weight_bits", 8), ("grouped_scale", False),
        ),
    ),
    KernelSpecification(
        "gemm_experts", "gemm", "gemm_fused", "experts", _GEMM_SHAPE,
        (
            *_pointers("a b", "*{dtype}"), *_pointers("c", "*{out_dtype}"),
            *_pointers("tokens experts", "*i32"), *_pointers("weights", "*fp32", "weighted"),
            *_integers("token_count"), *_strides("N K lda ldb ldc expert_stride"),
            *_integers("top_k"),
        ),
        (*_COMPILE, *_TILE, *_EDGES, ("out_dtype", "fp16"), ("weighted", True)),
    ),
    KernelSpecification(
        "mha_forward", "mha", "mha", "forward", _MHA_SHAPE,
        (
            *_pointers("q k v out", "*{dtype}"),
            *_pointers("row_max_out row_scale_out", "*fp32", "statistics"),
            Argument("bias", "*{dtype}", "matrix_bias"), Argument("slopes", "*fp32", "alibi"),
            *_pointers("cumulative_q cumulative_k", "*i32", "variable_length"),
            Argument("scale", "fp32"), Argument("softcap", "fp32", "softcap"),
            Argument("window", "i32", "window"),
            *_strides("seq_q seq_k"), *_integers("heads"),
            *_strides("q_batch q_head q_row k_batch k_head k_row v_batch v_head v_row"),
            *_strides("out_batch out_head out_row bias_head bias_row statistics_head"),
        ),
        (
            *_COMPILE, ("block_m", 64), ("block_n", 64), *_HEAD, ("query_group", 1),
            ("causal", False), ("window", False), ("variable_length", False),
            ("alibi", False), ("matrix_bias", False), ("softcap", False),
            ("even", True), ("peel", False), ("statistics", False),
        ),
    ),
    KernelSpecification(
        "mha_backward_preprocess", "mha", "mha_backward", "backward_preprocess",
        ("head_dim", "block_m"),
        (
            *_pointers("out grad_out", "*{dtype}"), *_pointers("delta", "*fp32"),
            *_strides("seq_q out_head out_row statistics_head"),
        ),
        (*_COMPILE, ("block_m", 64), *_HEAD, ("even", True)),
    ),
    KernelSpecification(
        "mha_backward_dkdv", "mha", "mha_backward", "backward_dkdv", _MHA_SHAPE,
        (*_BACKWARD_OPERANDS, *_pointers("grad_k grad_v", "*{dtype}"), *_BACKWARD_SIZES),
        _BACKWARD,
    ),
    KernelSpecification(
        "mha_backward_dq", "mha", "mha_backward", "backward_dq", _MHA_SHAPE,
        (*_BACKWARD_OPERANDS, *_pointers("grad_q", "*{dtype}"), *_BACKWARD_SIZES),
        _BACKWARD,
    ),
    KernelSpecification(
        "mha_decode", "mha", "mha_decode", "decode", ("head_dim", "block_h", "block_n"),
        (
            *_pointers("q k_cache v_cache", "*{dtype}"),
            *_pointers("partial_out partial_max partial_sum", "*fp32"),
            *_pointers("lengths", "*i32"), Argument("page_table", "*i32", "page_size"),
            Argument("scale", "fp32"), Argument("softcap", "fp32", "softcap"),
            Argument("window", "i32", "window"), *_integers("key_heads"),
            *_strides("q_batch q_head cache_batch cache_row cache_head"),
            *_integers("table_row"), *_strides("keys_per_split"),
        ),
        (
            *_COMPILE, ("block_h", 16), ("block_n", 64), *_HEAD, ("query_group", 8),
            ("splits", 8), ("page_size", 0), ("window", False), ("softcap", False),
        ),
    ),
    KernelSpecification(
        "mha_decode_combine", "mha", "mha_decode", "decode_combine", ("head_dim", "splits"),
        (
            *_pointers("partial_out partial_max partial_sum", "*fp32"),
            *_pointers("out", "*{dtype}"), *_strides("out_row"),
        ),
        (*_COMPILE, *_HEAD, ("splits", 8)),
    ),
)  # fmt: skip

KERNELS: dict[str, KernelSpecification] = {spec.name: spec for spec in _SPECIFICATIONS}
"""Every kernel, by name."""
