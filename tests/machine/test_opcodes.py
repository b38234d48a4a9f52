"""Every opcode of the interpreter against AMD's pseudocode, on edge values.

The pseudocode is that of tinygrad 0.14.0 (`tinygrad/runtime/autogen/amd/cdna`), which
took it from AMD's ISA guides. Where the interpreter is right to differ, `EXPLAINED` says
why; docs/tables/opcodes-and-guides.csv lists the same.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.machine.assembly import assembled
from tests.machine.opcode_programs import (
    CARRY_MASK,
    Trial,
    inputs_of,
    scalar_program,
    trial_of,
    vector_program,
)
from tests.machine.pseudocode import Pseudocode
from tests.machine.pseudocode_numbers import Number, is_nan
from verilocc_bench.machine.execution import run
from verilocc_bench.machine.opcode_table import OPCODES

pcode = pytest.importorskip("tinygrad.runtime.autogen.amd.cdna.str_pcode")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not shutil.which("llvm-mc-22"), reason="needs LLVM 22's assembler (Debian: llvm-22)"
    ),
]

SHORT_IMMEDIATE = re.compile(r"s_(mov|cmov|add|mul|cmp)k_")
LANES = 576
"""All pairs of 24 edge values."""

# The assembler knows them for older targets alone.
ON_NEITHER = {"v_fmac_f16", "v_mad_mix_f32", "v_mad_mixlo_f16", "v_mad_mixhi_f16"}

# Results of the hardware's approximating units; elsewhere bits are compared.
APPROXIMATE = {
    "v_exp_f32", "v_log_f32", "v_rcp_f32", "v_rcp_iflag_f32", "v_rsq_f32", "v_sqrt_f32",
    "v_sin_f32", "v_cos_f32", "v_exp_f16", "v_log_f16", "v_rcp_f16", "v_rsq_f16", "v_sqrt_f16",
    "v_rcp_f64", "v_rsq_f64", "v_sqrt_f64",
}  # fmt: skip


def _corrections() -> dict[str, str]:
    """Texts in the place of the table's where that is not what hardware does.

    docs/tables/opcodes-and-guides.csv gives the reason for each.
    """
    found: dict[str, str] = {}
    for kind, power, bias, one_below in (
        ("f32", 64, 127, "32'F(0x3f7fffff)"), ("f64", 128, 1023, "64'F(0x3fefffffffffffffLL)"),
    ):  # fmt: skip
        operands = f"S0.{kind}, S1.{kind}, S2.{kind}"
        scale = f"exponent(S2.{kind}) > {bias} ? {power} : -{power}"
        scaled = f"scaled_fma({operands}, {scale})"
        if kind == "f64":  # rounded before it is scaled, too
            scaled = (
                f"(exponent(S2.f64) > {bias} ? 2.0 ** {power} : 2.0 ** -{power}) * fma({operands})"
            )
        found[f"v_div_fmas_{kind}"] = (
            f"if VCC.u64[laneId] then\nD0.{kind} = {scaled}\n"
            f"else\nD0.{kind} = fma({operands})\nendif"
        )
        found[f"v_fract_{kind}"] = (
            f"tmp.{kind} = S0.{kind} + -floor(S0.{kind});\n"
            f"D0.{kind} = tmp.{kind} >= {'1.0F' if kind == 'f32' else '1.0'} "
            f"? {one_below} : tmp.{kind}"
        )
        found[f"v_frexp_exp_i32_{kind}"] = (
            f"if isNAN(64'F(S0.{kind})) || abs(64'F(S0.{kind})) == +INF then\nD0.i32 = 0\n"
            f"else\nD0.i32 = frexp_exponent(S0.{kind})\nendif"
        )
    found["v_fract_f16"] = (
        "tmp.f16 = S0.f16 + -floor(S0.f16);\nD0.f16 = tmp.f16 >= 16'1.0 ? 16'F(0x3bff) : tmp.f16"
    )
    for kind in ("f16", "f32", "f64"):
        found[f"v_rndne_{kind}"] = f"D0.{kind} = round_to_even(S0.{kind})"
    found["v_cvt_rpi_i32_f32"] = "D0.i32 = f32_to_i32(half_up(S0.f32))"
    found["v_ldexp_f16"] = "D0.f16 = S0.f16 * 2.0F ** 32'I(S1.i16)"
    found["v_sin_f32"] = "D0.f32 = sin_of_turn(S0.f32)"
    found["v_cos_f32"] = "D0.f32 = cos_of_turn(S0.f32)"
    for name, text in (
        ("log", "log2(flush(S0.f32))"), ("rcp", "1.0F / flush(S0.f32)"),
        ("rcp_iflag", "1.0F / flush(S0.f32)"), ("rsq", "1.0F / sqrt(flush(S0.f32))"),
        ("sqrt", "sqrt(flush(S0.f32))"),
    ):  # fmt: skip
        found[f"v_{name}_f32"] = f"D0.f32 = flush({text})"
    return found


CORRECTIONS = _corrections()


def corrected(name: str) -> str:
    """The text that counts for an opcode."""
    if name in CORRECTIONS:
        return CORRECTIONS[name]
    text = texts()[name]
    if name in {"v_div_fixup_f32", "v_div_fixup_f64"}:
        kind = name[-3:]
        overflow = f"OVERFLOW_{kind.upper()}"
        return text.replace(
            f"else\nD0.{kind} = sign_out ? -abs",
            f"elsif isNAN(64'F(S0.{kind})) then\nD0.{kind} = sign_out ? -{overflow} : {overflow}\n"
            f"else\nD0.{kind} = sign_out ? -abs",
        )
    if name == "v_div_scale_f32":
        text = text.replace("1.0 / 64'F(S1.f32) == DENORM.f64", "1.0F / S1.f32 == DENORM.f32")
    if name.startswith("v_div_scale"):
        # Where quotient and reciprocal are denormal, the denominator is too large already.
        power = 64 if name.endswith("32") else 128
        first, both, rest = text.partition("(S2.f" + name[-2:] + " / S1")
        scaled = f"ldexp(S0.{name[-3:]}, {power})"
        return first + both + rest.replace(scaled, scaled.replace(", ", ", -"), 1)
    return text


# Opcodes that read or write other lanes, or that the tables do not have.
NOT_HERE = {
    "v_readlane_b32", "v_readfirstlane_b32", "v_writelane_b32", "v_swap_b32",
    "v_accvgpr_read_b32", "v_accvgpr_write_b32", "v_accvgpr_mov_b32",
    "v_cvt_pk_fp8_f32", "v_cvt_pk_bf8_f32",
}  # fmt: skip


@cache
def texts() -> dict[str, str]:
    """The pseudocode of each opcode, by LLVM's name without encoding."""
    found: dict[str, str] = {}
    for opcode, text in pcode.PCODE.items():
        found.setdefault(re.sub(r"_e(32|64)$", "", opcode.name.lower()), text)
    found["v_fmac_f16"] = "D0.f16 = fma(S0.f16, S1.f16, D0.f16)"
    for kind in ("mix_f32", "mixlo_f16", "mixhi_f16"):
        text = found[f"v_mad_{kind}"]
        found[f"v_fma_{kind}"] = text.replace("in[0] * in[1] + in[2]", "fma(in[0], in[1], in[2])")
    return found


def environment(name: str, inputs: list[int], lane: int) -> dict[str, object]:
    """The variables of the pseudocode before the instruction."""
    scalar = name.startswith("s_")
    sources = {f"S{i}": Number("b", 64, inputs[i]) for i in range(3)}
    if SHORT_IMMEDIATE.match(name):
        sources["S1" if name.startswith("s_cmpk") else "S0"] = Number("b", 64, 0x8001)
    old = inputs[3]
    if scalar and OPCODES[name].result == 1:
        old &= 0xFFFF_FFFF
    if name.startswith("v_div_scale"):
        old = sources["S0"].bits  # the text says nothing of a source that is not scaled
    return {
        **sources,
        "S": {i: Number("b", 32, inputs[i] & 0xFFFF_FFFF) for i in range(3)},
        "D0": Number("b", 64, old),
        "VCC": Number("b", 64, CARRY_MASK),
        "EXEC": Number("b", 64, 2**64 - 1),
        "SCC": Number("u", 1, inputs[2] & 1 if scalar else 0),
        "laneId": Number("u", 32, lane % 64),
        "WAVE_MODE.IEEE": Number("u", 1, 1),
        "OPSEL": Number("b", 8, 0),
        "OPSEL_HI": Number("b", 8, 0),
        "SIMM32": Number("b", 32, 0x40490FDB),
    }


def supported(arch: str, trials: list[Trial]) -> list[Trial]:
    """The trials whose instruction the target has, as LLVM's assembler says."""
    lines = "\n".join(trial.text for trial in trials)
    done = subprocess.run(
        ["llvm-mc-22", "-triple=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-filetype=null"],
        input=lines, capture_output=True, text=True, check=False,
    )  # fmt: skip
    refused = {int(found[1]) for found in re.finditer(r"<stdin>:(\d+):\d+: error", done.stderr)}
    return [trial for line, trial in enumerate(trials, 1) if line not in refused]


def all_trials() -> list[Trial]:
    found = []
    for name, opcode in OPCODES.items():
        if name in NOT_HERE:
            continue
        widths = opcode.sources
        if name in ("v_addc_co_u32", "v_subb_co_u32", "v_subbrev_co_u32", "v_cndmask_b32"):
            widths = widths[:2]
        if name in ("v_fmamk_f32", "v_fmaak_f32"):
            widths = widths[:2]
        found.append(trial_of(name, widths, opcode.result))
    return found


@cache
def trials(arch: str) -> dict[str, Trial]:
    return {trial.name: trial for trial in supported(arch, all_trials())}


@cache
def executed(
    arch: str, kinds: tuple[str, str, str, str], scalar: bool
) -> dict[str, NDArray[np.uint64]]:
    """What the interpreter gives for all opcodes of a kind: (2, lanes) by name."""
    chosen = [
        t for t in trials(arch).values() if t.kinds == kinds and t.name.startswith("s_") == scalar
    ]
    inputs = inputs_of(kinds, LANES)
    out = np.zeros((len(chosen), 2, LANES), np.uint64)
    program = scalar_program if scalar else vector_program
    groups = LANES if scalar else LANES // 64
    code = assembled("\n".join([*program(chosen, LANES), "s_endpgm"]), arch)
    result = run(code, "k", [inputs, out], (groups, 1, 1), block=(64, 1, 1)).buffers[1]
    assert result is not None
    return {trial.name: result[number] for number, trial in enumerate(chosen)}


def distance(got: int, wanted: int, width: int) -> int:
    """How many numbers of that width lie between two floats."""
    sign = 1 << (width - 1)
    places = [sign - bits if bits & sign else bits for bits in (got, wanted)]
    return abs(places[0] - places[1])


def result_kind(name: str, opcode_result: int) -> tuple[str, int]:
    """What the result is (`f32`, `int`, …), and its width in bits."""
    word = next(iter(re.findall(r"_(f16|f32|f64|[iub]16)(?=_|$)", name)), "int")
    if name.startswith(("v_pk_", "v_cvt_pkrtz")):
        return (word if word.startswith("f") else "int"), 32 * opcode_result
    if name.startswith(("v_cvt_pk", "v_pack", "v_dot", "v_mad_i32", "v_mad_u32")):
        word = "f32" if name.startswith(("v_dot2_f32", "v_dot2c_f32")) else "int"
    if name.startswith(("v_frexp_exp", "v_cvt_rpi", "v_cvt_flr")) or re.match(r"v_cvt_[iu]", name):
        return "int", 16 if re.match(r"v_cvt_[iu]16|v_frexp_exp_i16", name) else 32
    if name.startswith("s_"):
        return "int", 32 * opcode_result
    width = {"f16": 16, "i16": 16, "u16": 16, "b16": 16}.get(word, 32 * opcode_result)
    return (word if word.startswith("f") else "int"), width


def disagreements(arch: str, name: str, step: int) -> list[str]:
    """Lines that say where result, or mask, are neither the table's nor explained."""
    trial, opcode = trials(arch)[name], OPCODES[name]
    scalar = name.startswith("s_")
    got = executed(arch, trial.kinds, scalar)[name]
    inputs = inputs_of(trial.kinds, LANES)
    code = Pseudocode(corrected(name), texts())
    kind, width = result_kind(name, opcode.result)
    compares = name.startswith(("v_cmp_", "v_cmpx_"))
    found = []
    for lane in range(0, LANES, step):
        before = environment(name, inputs[:, lane].tolist(), lane)
        after = code.run(before)
        if opcode.result and not compares:
            wanted = after["D0"].bits & (1 << width) - 1
            value = int(got[0, lane]) & (1 << width) - 1
            if not agree(value, wanted, kind, width) and not is_close(name, value, wanted, width):
                found.append(line(trial.text, inputs, lane, value, wanted))
        mask = mask_of(after, name, lane)
        if mask is not None:
            bit = int(got[1, lane]) & 1 if scalar else int(got[1, lane]) >> lane % 64 & 1
            if bit != mask:
                found.append(line(trial.text, inputs, lane, bit, mask))
    return found


def mask_of(after: dict[str, Number], name: str, lane: int) -> int | None:
    """The bit of the second result, or None where the opcode has none."""
    place = lane % 64
    if name.startswith("s_"):
        return int(bool(after["SCC"].bits))
    if name.startswith(("v_cmp_", "v_cmpx_")):
        return after["D0"].bits >> place & 1
    if "_co_u32" in name:
        return after["VCC"].bits >> place & 1
    if name.startswith("v_div_scale"):
        return after["VCC"].bits & 1
    if name.startswith(("v_mad_u64", "v_mad_i64")):
        return after["D1"].bits & 1
    return None


def agree(got: int, wanted: int, kind: str, width: int) -> bool:
    """Equal bits, or two NaNs, in each number of the result."""
    part = int(kind[1:]) if kind.startswith("f") else width
    for low in range(0, width, part):
        mine, theirs = (bits >> low & (1 << part) - 1 for bits in (got, wanted))
        both = [Number("f", part, bits) for bits in (mine, theirs)] if kind[0] == "f" else []
        if mine != theirs and not (both and all(is_nan(number) for number in both)):
            return False
    return True


def is_close(name: str, got: int, wanted: int, width: int) -> bool:
    """True for an approximating opcode whose result lies next to the table's."""
    if name in ("v_sin_f32", "v_cos_f32"):
        numbers = np.array([got, wanted], np.uint32).view(np.float32).astype(np.float64)
        return bool(abs(numbers[0] - numbers[1]) <= 2.0**-22)
    return name in APPROXIMATE and distance(got, wanted, width) <= 1


def line(text: str, inputs: NDArray[np.uint64], lane: int, got: int, wanted: int) -> str:
    sources = " ".join(f"{int(inputs[i, lane]):#x}" for i in range(4))
    return f"{text}: {sources}: got {got:#x}, the table says {wanted:#x}"


NAMES = [name for name in OPCODES if name not in NOT_HERE]
# Every fifth lane has each edge value of one source. What writes EXEC compares like what does not.
FEW = [n for n in NAMES if len(OPCODES[n].sources) == 1 or n.startswith("v_cmpx_")]
ALL_LANES = [pytest.param(name, 1, marks=pytest.mark.exhaustive) for name in FEW]


@pytest.mark.parametrize(
    ("name", "step"), [*((n, 5 if n in FEW else 1) for n in NAMES), *ALL_LANES]
)
def test_opcode_agrees_with_the_pseudocode(name: str, step: int) -> None:
    archs = [arch for arch in ("gfx942", "gfx90a") if name in trials(arch)]
    assert archs or name in ON_NEITHER
    for arch in archs[:1]:
        found = disagreements(arch, name, step)
        assert found == [], "\n".join([f"{len(found)} lanes", *found[:5]])
