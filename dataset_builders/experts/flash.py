"""The attention kernels of FlashAttention-2 that are compiled, and the C++ text of each.

Tiles and warps are those that the library's own dispatch chooses for this
architecture with 164 kB of shared memory (`flash_fwd_launch_template.h`,
`flash_bwd_launch_template.h`), and so are the combinations of flags: a local
window excludes the causal mask, softcap excludes dropout, and so on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dataset_builders.kernels.specifications import ParameterValue
from dataset_builders.sweeps.experts import ExpertPoint, make_expert_point

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


HEAD_DIMENSIONS = (32, 64, 96, 128, 192, 256)

_FORWARD: Mapping[int, tuple[str, str]] = {
    32: ("128x128 4", "128x128 4"),
    64: ("128x128 4", "128x64 4"),
    96: ("128x64 4", "128x64 4"),
    128: ("128x64 4", "128x32 4"),
    192: ("128x64 8", "64x64 4"),
    256: ("128x64 8", "128x64 8"),
}
"""By head dimension: tile and warps without dropout, and with it."""

_BACKWARD: Mapping[int, tuple[str, str]] = {
    32: ("128x128 8 4,4,4,true,false", "128x128 8 4,4,4,false,false"),
    64: ("128x128 8 4,4,4,false,false", "128x128 8 4,4,4,false,false"),
    96: ("64x128 8 2,4,4,true,false", "64x128 8 2,4,4,false,false"),
    128: ("64x128 8 2,4,2,false,false", "64x128 8 2,4,2,false,false"),
    192: ("64x64 8 4,2,2,false,false", "64x64 8 4,2,2,false,false"),
    256: ("64x64 8 4,2,2,false,true", "64x64 8 4,2,2,false,true"),
}
"""The same, with the arrangement of the warps, and whether values stay in registers
and whether buffers are single."""

_EVEN_LIMIT = 128
"""Larger heads have no variant for lengths that are multiples of the tile."""


def flash_points() -> tuple[ExpertPoint, ...]:
    """All candidates, each once, in a fixed order."""
    return tuple(dict.fromkeys(_points()))


def _points() -> Iterator[ExpertPoint]:
    for head in HEAD_DIMENSIONS:
        yield from (_attention("forward", head, causal=causal) for causal in (0, 1))
    for head in (64, 128):
        yield _attention("forward", head, dtype="bf16", causal=int(head == 64))
        yield _attention("forward", head, even_lengths=0)
        yield _attention("forward", head, dropout=1)
        yield _attention("forward", head, causal=1, alibi=1)
        yield _attention("forward", head, local=1)
        yield _attention("forward", head, softcap=1)
    for head in (32, 64, 128, 256):
        yield _attention("split_kv", head, split=1)
    yield _attention("split_kv", 64, split=1, causal=1)
    yield _attention("split_kv", 64, split=1, local=1)
    yield _attention("split_kv", 128, split=0, append=1)
    for head, logarithm in ((64, 2), (128, 4), (256, 7)):
        parameters: dict[str, ParameterValue] = {
            "dtype": "fp16",
            "head_dim": head,
            "block_m": 4 if head % 128 == 0 else 8,
            "log_splits": logarithm,
        }
        yield make_expert_point("sm_80", "flash_attention_split_kv_combine", parameters)
    yield from (_attention("backward", head) for head in HEAD_DIMENSIONS)
    yield from (_attention("backward", head, causal=1) for head in (64, 128))
    yield _attention("backward", 64, dropout=1)
    yield _attention("backward", 64, local=1)
    yield _attention("backward", 64, softcap=1)
    yield _attention("backward", 128, causal=1, alibi=1)


def _attention(kind: str, head: int, **flags: ParameterValue) -> ExpertPoint:
    """A point; flags that are not given are off, and lengths and heads are even if they may be."""
    dropout = int(flags.get("dropout", 0))
    if kind == "forward":
        tile, warps = _FORWARD[head][dropout].split()
        arrangement = {}
    elif kind == "backward":
        tile, warps, text = _BACKWARD[head][dropout].split()
        arrangement = {"arrangement": text}
    else:
        tile, warps = f"64x{256 if head <= 64 else 128 if head <= 128 else 64}", "4"
        arrangement = {}
    restricted = any(flags.get(name) for name in ("local", "alibi", "append")) or head > _EVEN_LIMIT
    parameters: dict[str, ParameterValue] = {
        "dtype": "fp16",
        "head_dim": head,
        "tile": tile,
        "num_warps": int(warps),
        "causal": 0,
        "local": 0,
        "alibi": 0,
        "softcap": 0,
        "even_lengths": 0 if restricted else 1,
        "even_head": 0 if flags.get("alibi") else 1,
        **({"split": 0, "append": 0} if kind == "split_kv" else {"dropout": 0}),
        **arrangement,
        **flags,
    }
    return make_expert_point("sm_80", f"flash_attention_{kind}", parameters)
