"""Small kernels in assembly, one for all opcodes of a kind, and the inputs that try them.

Each lane loads four 64-bit inputs, executes every instruction on them and stores every
result. The kernels run through the interpreter's public entry, so that decoding, operands
and registers are tried, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

CARRY_MASK = 0xA5A5_5A5A_0FF0_F00F
"""What VCC holds before every instruction."""

_EDGES: dict[str, tuple[int, ...]] = {
    "f32": (
        0x00000000, 0x80000000, 0x3F800000, 0xBF800000, 0x3F000000, 0x3FC00000, 0x40200000,
        0xC0200000, 0x00000001, 0x807FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000,
        0xFF800000, 0x7FC00000, 0xFFC12345, 0x7F800001, 0x4B000001, 0x4F800000, 0xCF000001,
        0x33000001, 0x40490FDB, 0x2F800000,
    ),
    "f64": (
        0x0, 0x8000000000000000, 0x3FF0000000000000, 0xBFF0000000000000, 0x3FE0000000000000,
        0x3FF8000000000000, 0x4004000000000000, 0xC004000000000000, 0x1, 0x800FFFFFFFFFFFFF,
        0x0010000000000000, 0x7FEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF, 0x7FF0000000000000,
        0xFFF0000000000000, 0x7FF8000000000000, 0xFFF8123456789ABC, 0x7FF0000000000001,
        0x4330000000000001, 0x41F0000000000000, 0xC1E0000000200000, 0x3E60000000000001,
        0x400921FB54442D18, 0x3690000000000000,
    ),
    "f16": (
        0x0000, 0x8000, 0x3C00, 0xBC00, 0x3800, 0x3E00, 0x4100, 0xC100, 0x0001, 0x83FF, 0x0400,
        0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0xFE12, 0x7C01, 0x6401, 0x5400, 0xD401, 0x1001,
        0x4248, 0x0C00,
    ),
    "int": (
        0, 1, 2, 3, 7, 15, 16, 31, 32, 33, 63, 64, 255, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF,
        0x80000000, 0x80000001, 0xFFFFFFFF, 0xFFFFFF80, 0x12345678, 0x89ABCDEF, 0x00800000,
    ),
    "long": (
        0, 1, 2, 31, 32, 63, 64, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x100000000,
        0x7FFFFFFFFFFFFFFF, 0x8000000000000000, 0x8000000000000001, 0xFFFFFFFFFFFFFFFF,
        0xFFFFFFFF00000000, 0x123456789ABCDEF0, 0xFEDCBA9876543210, 0x00000001FFFFFFFF,
        0xFFFFFFFE00000001, 0x8000000080000000, 0x5555555555555555, 0xAAAAAAAAAAAAAAAA,
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Trial:
    """One opcode: the kinds of its three sources and of the old result, and its text."""

    name: str
    kinds: tuple[str, str, str, str]
    text: str


def inputs_of(kinds: tuple[str, str, str, str], lanes: int, seed: int = 0) -> NDArray[np.uint64]:
    """(4, lanes): three sources and the old result; the first two in all pairs of edges."""
    random = np.random.default_rng(seed)
    edges = [_values(kind, random) for kind in kinds]
    pairs = np.array(list(product(range(24), range(24))))[np.arange(lanes) % 576]
    index = np.concatenate([pairs, random.integers(0, 24, (lanes, 2))], axis=1)
    return np.stack([edges[i][index[:, i]] for i in range(4)])


def _values(kind: str, random: np.random.Generator) -> NDArray[np.uint64]:
    values = np.array(_EDGES[kind], np.uint64)
    if kind == "f16":  # two to a register
        values = values | random.permutation(values) << np.uint64(16)
    if kind in ("f32", "f16", "int"):  # and two registers to an input
        values = values | random.permutation(values) << np.uint64(32)
    return values


_PROLOGUE = [
    "s_load_dwordx4 s[4:7], s[0:1], 0x0",
    "v_and_b32_e32 v0, 0x3ff, v0",
    "s_lshl_b32 s8, s2, 6",
    "v_add_u32_e32 v1, s8, v0",
    "v_lshlrev_b32_e32 v1, 3, v1",
    "s_waitcnt lgkmcnt(0)",
]


def _stores(number: int, lanes: int) -> list[str]:
    """Both results of a trial, from v[10:11] and v[12:13]."""
    return [
        f"s_add_u32 s10, s6, {16 * lanes * number}",
        "s_addc_u32 s11, s7, 0",
        "global_store_dwordx2 v1, v[10:11], s[10:11]",
        f"s_add_u32 s10, s10, {8 * lanes}",
        "s_addc_u32 s11, s11, 0",
        "global_store_dwordx2 v1, v[12:13], s[10:11]",
    ]


def vector_program(trials: list[Trial], lanes: int) -> list[str]:
    """Inputs in v[2:3], v[4:5], v[6:7] and v[8:9]; each result goes out through v[10:11].

    Out is (trial, 2, lane): the result and the mask of lanes, 64 bits each.
    """
    lines = list(_PROLOGUE)
    for source in range(4):
        lines += [
            f"s_add_u32 s10, s4, {8 * lanes * source}",
            "s_addc_u32 s11, s5, 0",
            f"global_load_dwordx2 v[{2 + 2 * source}:{3 + 2 * source}], v1, s[10:11]",
        ]
    lines.append("s_waitcnt vmcnt(0)")
    for number, trial in enumerate(trials):
        lines += [
            "v_mov_b32_e32 v10, v8",
            "v_mov_b32_e32 v11, v9",
            f"s_mov_b32 vcc_lo, 0x{CARRY_MASK & 0xFFFFFFFF:x}",
            f"s_mov_b32 vcc_hi, 0x{CARRY_MASK >> 32:x}",
            "s_nop 15",
            trial.text,
            "s_nop 15",
            "s_mov_b64 s[20:21], exec" if trial.name.startswith("v_cmpx") else "s_nop 0",
            "s_mov_b64 exec, -1",
            "v_mov_b32_e32 v12, vcc_lo",
            "v_mov_b32_e32 v13, vcc_hi",
            *_stores(number, lanes),
        ]
    return lines


def scalar_program(trials: list[Trial], lanes: int) -> list[str]:
    """Each work-group has its own inputs, in s[22:23], s[24:25]; the old result in s[28:29].

    Out is (trial, 2, work-group): the result and SCC. SCC is bit 0 of the fourth input before.
    """
    lines = [
        "s_load_dwordx4 s[4:7], s[0:1], 0x0",
        "s_waitcnt lgkmcnt(0)",
        "s_lshl_b32 s8, s2, 3",
    ]
    for source in range(4):
        lines += [
            f"s_add_u32 s10, s4, {8 * lanes * source}",
            "s_addc_u32 s11, s5, 0",
            "s_add_u32 s10, s10, s8",
            "s_addc_u32 s11, s11, 0",
            f"s_load_dwordx2 s[{22 + 2 * source}:{23 + 2 * source}], s[10:11], 0x0",
            "s_waitcnt lgkmcnt(0)",
        ]
    lines += ["v_mov_b32_e32 v1, s8"]
    for number, trial in enumerate(trials):
        lines += [
            "s_mov_b64 s[32:33], s[28:29]",
            "s_mov_b64 s[34:35], exec",
            "s_bitcmp1_b32 s26, 0",
            trial.text,
            "s_cselect_b32 s36, 1, 0",
            "s_mov_b64 s[38:39], exec",
            "s_mov_b64 exec, s[34:35]",
            "v_mov_b32_e32 v10, s32",
            "v_mov_b32_e32 v11, s33",
            "v_mov_b32_e32 v12, s36",
            "v_mov_b32_e32 v13, 0",
            *_stores(number, lanes),
        ]
    return lines


_TYPE_WORD = re.compile(r"f16|f32|f64|[iub]8|[iub]16|[iub]24|[iub]32|[iub]64")


def _kind(word: str) -> str:
    if word in ("f16", "f32", "f64"):
        return word
    return "long" if word.endswith("64") else "int"


def trial_of(name: str, widths: tuple[int, ...], result: int) -> Trial:
    """The trial of an opcode with sources and a result of so many registers."""
    kinds = _kinds_of(name, widths)
    old = "f32" if name.startswith("v_dot2c_f32") else kinds[0]
    padded = [*kinds, "int", "int", "int"][:3]
    text = _scalar_text if name.startswith("s_") else _vector_text
    return Trial(name, (padded[0], padded[1], padded[2], old), text(name, widths, result))


def _kinds_of(name: str, widths: tuple[int, ...]) -> tuple[str, ...]:
    """What kind of number each source is, from the opcode's name and the widths of its sources."""
    words = _TYPE_WORD.findall(name)
    last = _kind(words[-1]) if words else "int"
    if name.startswith(("v_ldexp", "v_cmp_class", "v_cmpx_class")):
        return (last, "int")
    if name.startswith(("v_dot2_f32_f16", "v_dot2c_f32_f16")):
        return ("f16", "f16", "f32")[: len(widths)]
    if name.startswith(("v_mad_mix", "v_fma_mix")):
        return ("f32", "f32", "f32")
    if last in ("f16", "f32"):
        return (last,) * len(widths)
    wide = "f64" if last == "f64" else "long"
    return tuple(wide if width == 2 else "int" for width in widths)


def _registers(file: str, first: int, width: int) -> str:
    return f"{file}{first}" if width == 1 else f"{file}[{first}:{first + width - 1}]"


def _vector_text(name: str, widths: tuple[int, ...], result: int) -> str:
    """The instruction with its sources in v2, v4 and v6 and its result in v10."""

    sources = [_registers("v", 2 + 2 * i, width) for i, width in enumerate(widths)]
    destination = [_registers("v", 10, result)]
    if name.startswith(("v_cmp_", "v_cmpx_")):
        return f"{name}_e64 vcc, {', '.join(sources)}"
    if name in ("v_addc_co_u32", "v_subb_co_u32", "v_subbrev_co_u32"):
        return f"{name}_e64 {destination[0]}, vcc, {sources[0]}, {sources[1]}, vcc"
    if "_co_u32" in name or name.startswith(("v_div_scale", "v_mad_u64", "v_mad_i64")):
        # What the sixty-four lanes of the second destination say goes out through VCC.
        return f"{name} {destination[0]}, vcc, {', '.join(sources)}"
    if name == "v_cndmask_b32":
        return f"{name}_e64 {destination[0]}, {sources[0]}, {sources[1]}, vcc"
    if name in ("v_fmamk_f32", "v_fmaak_f32"):
        constant = "0x40490fdb"
        operands = [sources[0], constant, sources[1]]
        if name == "v_fmaak_f32":
            operands = [sources[0], sources[1], constant]
        return f"{name} {destination[0]}, {', '.join(operands)}"
    return f"{name} {', '.join([*destination, *sources])}"


def _scalar_text(name: str, widths: tuple[int, ...], result: int) -> str:
    """The instruction with its sources in s22 and s24 and its result in s32."""

    operands = [_registers("s", 22 + 2 * i, width) for i, width in enumerate(widths)]
    if re.match(r"s_(mov|cmov|add|mul|cmp)k_", name):
        operands[-1] = "0x8001"
        if name.startswith("s_cmpk"):
            operands = ["s22", "0x8001"]
    if result:
        operands.insert(0, _registers("s", 32, result))
    return f"{name} {', '.join(operands)}"
