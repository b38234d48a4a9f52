"""What kernels written by hand need besides: float32 denormals that count as zero, 8-bit floats."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.machine.assembly import kernel_of
from verilocc_bench.errors import InputError

DENORMAL, NEGATIVE_DENORMAL, SMALLEST = 0x0000_0001, 0x807F_FFFF, 0x0080_0000
ONE, TWO, HALF = 0x3F80_0000, 0x4000_0000, 0x3F00_0000
decoded = cache(kernel_of)


def result_of(
    instruction: str,
    *sources: NDArray[np.uint32],
    denormals: int = 0,
    before: int = 0,
    options: str = "",
) -> NDArray[np.uint32]:
    """What an instruction on v2, v3 and v4 leaves in v5, for up to 64 lanes."""
    count = len(sources)
    loads = "\n".join(
        f"global_load_dword v{2 + n}, v1, s[4:5] offset:{256 * n}" for n in range(count)
    )
    kernel = decoded(
        f"""
        s_load_dwordx4 s[4:7], s[0:1], 0x0
        v_lshlrev_b32_e32 v1, 2, v0
        v_mov_b32_e32 v5, {before:#x}
        s_waitcnt lgkmcnt(0)
        {loads}
        s_waitcnt vmcnt(0)
        {instruction}
        s_nop 4
        global_store_dword v1, v5, s[6:7]
        s_endpgm
        """,
        denormals=denormals,
        options=options,
    )
    given = np.zeros((count, 64), np.uint32)
    for row, source in zip(given, sources, strict=True):
        row[: len(source)] = source
    left = kernel.run([given, np.zeros(64, np.uint32)], (1,)).buffers[1]
    assert left is not None
    return left[: len(sources[0])]


def bits(*numbers: int) -> NDArray[np.uint32]:
    return np.array(numbers, np.uint32)


@pytest.mark.parametrize(
    ("instruction", "sources", "kept", "flushed"),
    [
        ("v_add_f32 v5, v2, v3", (DENORMAL, DENORMAL), 2, 0),
        ("v_add_f32 v5, v2, v3", (NEGATIVE_DENORMAL, NEGATIVE_DENORMAL), 0x80FF_FFFE, 0x8000_0000),
        ("v_mul_f32 v5, v2, v3", (SMALLEST, HALF), 0x0040_0000, 0),
        ("v_mul_f32 v5, v2, v3", (SMALLEST | 1 << 31, HALF), 0x8040_0000, 0x8000_0000),
        ("v_mul_f32 v5, v2, v3", (SMALLEST, TWO), 0x0100_0000, 0x0100_0000),
        ("v_fma_f32 v5, v2, v3, v4", (ONE, DENORMAL, ONE), ONE, ONE),
        ("v_fma_f32 v5, v2, v3, v4", (ONE, DENORMAL, 0), 1, 0),
        ("v_max_f32 v5, v2, v3", (DENORMAL, 0), 1, 0),
        ("v_ldexp_f32 v5, v2, v3", (ONE, 3), 0x4100_0000, 0x4100_0000),
        ("v_cvt_f32_u32 v5, v2", (3,), 0x4040_0000, 0x4040_0000),
        ("v_mov_b32 v5, v2", (DENORMAL,), 1, 1),
        ("v_and_b32 v5, v2, v3", (DENORMAL, 3), 1, 1),
        ("v_frexp_exp_i32_f32 v5, v2", (DENORMAL,), -148 & 0xFFFF_FFFF, 0),
        ("v_cmp_eq_f32 vcc, 0, v2\nv_cndmask_b32 v5, v2, v3, vcc", (DENORMAL, 7), 1, 7),
    ],
)
def test_denormals_count_as_zero_where_the_descriptor_says_so(
    instruction: str, sources: tuple[int, ...], kept: int, flushed: int
) -> None:
    given = [bits(source) for source in sources]
    assert result_of(instruction, *given, denormals=3)[0] == kept
    assert result_of(instruction, *given)[0] == flushed


def test_packed_results_are_flushed_in_both_halves() -> None:
    instruction = "v_pk_mul_f32 v[6:7], v[2:3], v[2:3] op_sel_hi:[1,1]\nv_or_b32 v5, v6, v7"
    given = [bits(0x1F80_0000), bits(0x1F00_0000)]
    assert result_of(instruction, *given, denormals=3)[0] != 0
    assert result_of(instruction, *given)[0] == 0


def test_opcodes_with_rules_of_their_own_and_other_modes_are_refused() -> None:
    with pytest.raises(InputError, match="v_div_fixup_f32"):
        kernel_of("v_div_fixup_f32 v1, v1, v2, v3\ns_endpgm", denormals=0)
    with pytest.raises(InputError, match="floating-point mode 0xd0"):
        kernel_of("s_endpgm", denormals=1)
    off = ".amdhsa_dx10_clamp 0"
    with pytest.raises(InputError, match="clamps NaNs"):
        kernel_of("v_add_f32 v1, v1, v2 clamp\ns_endpgm", options=off)
    assert kernel_of("v_add_f32 v1, v1, v2\ns_endpgm", options=off)
    with pytest.raises(InputError, match="overflow"):
        kernel_of("s_endpgm", options=".amdhsa_fp16_overflow 1")


@pytest.mark.parametrize("case", Path(__file__).with_name("modifiers.txt").read_text().splitlines())
def test_modifiers_change_the_numbers_of_the_result(case: str) -> None:
    instruction, sources, left = case.split(" | ")
    given = [bits(int(source, 16), 0) for source in sources.split()] or [bits(0)]
    assert result_of(instruction.replace(" / ", "\n"), *given, denormals=3)[0] == int(left, 16)


@pytest.mark.parametrize(
    ("instruction", "sources", "in_mode", "without"),
    [
        ("v_max_f32 v5, v2, v3", [0x7FA0_0000, ONE], 0x7FE0_0000, ONE),
        ("v_min_f32 v5, v2, v3", [ONE, 0xFF80_0001], 0xFFC0_0001, ONE),
        ("v_max_f16 v5, v2, v3", [0x7D00, 0x3C00], 0x7F00, 0x3C00),
        ("v_pk_min_f16 v5, v2, v3", [0x7D00_3C00, 0x3C00_4000], 0x7F00_3C00, 0x3C00_3C00),
        ("v_min_f32 v5, v2, v3", [0x7FC0_0000, ONE], ONE, ONE),
    ],
)
def test_a_nan_that_signals_wins_in_ieee_mode(
    instruction: str, sources: list[int], in_mode: int, without: int
) -> None:
    given = [bits(source) for source in sources]
    assert result_of(instruction, *given, denormals=3)[0] == in_mode
    off = ".amdhsa_ieee_mode 0"
    assert result_of(instruction, *given, denormals=3, options=off)[0] == without


@pytest.mark.parametrize(
    ("line", "options", "said"),
    [
        ("v_cvt_i32_f32_e64 v1, v2 clamp", "", "a result that is no float"),
        ("global_load_short_d16_hi v1, v[2:3], off", "", "unknown opcode"),
        ("buffer_load_ubyte off, s[4:7], 0 lds", "", "bytes and halves loaded to LDS"),
        ("v_add_f32_e64 v1, v2, v3 mul:2", "", "omod has no effect"),
        ("v_add_f16_e64 v1, v2, v3 mul:2", ".amdhsa_ieee_mode 0", "omod has no effect"),
    ],
)
def test_what_hardware_does_otherwise_is_refused(line: str, options: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        kernel_of(f"{line}\ns_endpgm", options=options)


def number_of(code: int, mantissa_bits: int) -> float:
    """The number with these 8 bits; 0x80, which has the place of -0, is none."""
    bias = 1 << (6 - mantissa_bits)
    exponent, fraction = code >> mantissa_bits & (2 * bias - 1), code & ((1 << mantissa_bits) - 1)
    least = 1 - bias
    size = (fraction / (1 << mantissa_bits) + (exponent > 0)) * 2.0 ** max(least, exponent - bias)
    return -size if code & 0x80 else size


@pytest.mark.parametrize(("opcode", "mantissa_bits"), [("fp8", 3), ("bf8", 2)])
def test_conversions_to_8_bits_round_to_the_nearest_number(opcode: str, mantissa_bits: int) -> None:
    codes_of_numbers = [n for n in range(256) if n != 0x80]
    finite = np.array(sorted((number_of(n, mantissa_bits), n) for n in codes_of_numbers))
    values, codes = finite[:, 0], finite[:, 1].astype(int)
    generator = np.random.default_rng(8)
    middles = ((values[1:] + values[:-1]) / 2).astype(np.float32)
    numbers = np.concatenate(
        [
            values.astype(np.float32), middles, np.nextafter(middles, np.float32(np.inf)),
            np.nextafter(middles, np.float32(-np.inf)),
            (generator.normal(size=400) * 10.0 ** generator.integers(-6, 3, 400)),
        ]
    ).astype(np.float32)  # fmt: skip
    numbers = numbers[: len(numbers) // 64 * 64].reshape(-1, 64)
    step = values[-1] - values[-2]
    for row in numbers:
        got = result_of(
            f"v_cvt_pk_{opcode}_f32 v5, v2, v2",
            row.view(np.uint32),
            denormals=3,
            before=0xABCD_0000,
        )
        for number, code in zip(row.astype(np.float64), got, strict=True):
            assert code >> 16 == 0xABCD
            assert code & 0xFF == code >> 8 & 0xFF
            if abs(number) >= values[-1] + step / 2:
                assert code & 0xFF == 0x80, number
                continue
            distances = np.abs(values - number)
            near = codes[distances == distances.min()]
            expected = near[0] if len(near) == 1 else next(n for n in near if n % 2 == 0)
            assert code & 0xFF == expected, number


def test_8_bit_floats_go_to_either_half_and_what_is_no_number_is_nan() -> None:
    given = bits(0x7F80_0000, 0x7FC0_0000, 0xFF80_0000, 0x8000_0000, ONE)
    got = result_of(
        "v_cvt_pk_fp8_f32 v5, v2, v3 op_sel:[0,0,1]", given, bits(ONE), denormals=3, before=0x1234
    )
    assert [int(x) & 0xFFFF for x in got] == [0x1234] * 5
    assert [int(x) >> 16 & 0xFF for x in got] == [0x80, 0x80, 0x80, 0x00, 0x40]
