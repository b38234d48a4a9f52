"""Matrix instructions against plain matrix products, with layouts written out by hand."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.sampling import in_turns
from verilocc_bench.machine import fields
from verilocc_bench.machine.code_rows import CodeRow, ConstantPool, Unsupported
from verilocc_bench.machine.disassembly import parse_instruction
from verilocc_bench.machine.matrix_formats import Format
from verilocc_bench.machine.matrix_step import matrix_step
from verilocc_bench.machine.matrix_table import MATRIX_INSTRUCTIONS, MatrixInstruction
from verilocc_bench.machine.special_decoding import decode_matrix
from verilocc_bench.machine.state import new_state

pytestmark = pytest.mark.slow

ALL = [
    pytest.param(instruction, id=f"{arch}-{name}")
    for arch, instructions in MATRIX_INSTRUCTIONS.items()
    for name, instruction in instructions.items()
]
ARCH_OF = {
    id(instruction): arch
    for arch, instructions in MATRIX_INSTRUCTIONS.items()
    for instruction in instructions.values()
}
WAVES = 2


def multiply_add(
    ins: MatrixInstruction, a: NDArray[np.uint32], b: NDArray[np.uint32], c: NDArray[np.uint32]
) -> NDArray[np.uint32]:
    """The registers of D, wave by wave."""
    widths = (ins.result_registers, *(ins.operand_registers,) * 2, ins.result_registers)
    names = (
        f"{file}[{first}:{first + count - 1}]" if count > 1 else f"{file}{first}"
        for file, first, count in zip("avvv", (0, 0, 8, 16), widths, strict=True)
    )
    constants, row = ConstantPool(), CodeRow()
    text = f"{ins.mnemonic} {', '.join(names)}"
    decode_matrix(parse_instruction(text), ARCH_OF[id(ins)], constants, row)
    rows = np.array([row.numbers], np.int64)
    found = []
    for wave in range(len(a)):
        state = new_state(rows, np.zeros(1, np.uint8), np.zeros((0, 4), np.int64), 1, 1)
        state.scalars[0, fields.FIRST_CONSTANT :][: len(constants.values)] = constants.values
        for first, source in ((0, a), (8, b), (16, c)):
            state.vectors[0, first : first + source.shape[1]] = source[wave]
        matrix_step(
            rows[0], state.scalars[0], state.vectors[0], state.left, state.right,
            state.matrix_results, state.total,
        )  # fmt: skip
        found.append(state.vectors[0, fields.ACCUMULATORS :][: ins.result_registers].copy())
    return np.array(found)


def encode(number: float, number_format: Format) -> int:
    """The bits of a number that the format holds exactly."""
    match number_format:
        case Format.F16:
            return int(np.float16(number).view(np.uint16))
        case Format.BF16:
            return int(np.float32(number).view(np.uint32)) >> 16
        case Format.F32 | Format.XF32:
            return int(np.float32(number).view(np.uint32))
        case Format.F64:
            return int(np.float64(number).view(np.uint64))
        case Format.I8:
            return int(number) & 0xFF
        case Format.I32:
            return int(number) & 0xFFFF_FFFF
        case Format.FP8:
            return encode_byte(number, mantissa_bits=3, bias=8)
        case Format.BF8:
            return encode_byte(number, mantissa_bits=2, bias=16)


def encode_byte(number: float, *, mantissa_bits: int, bias: int) -> int:
    if np.isnan(number) or number == 0:
        return 0x80 if np.isnan(number) else 0
    mantissa, exponent = np.frexp(abs(number))  # 0.5 <= mantissa < 1
    fraction = int(mantissa * (2 << mantissa_bits)) - (1 << mantissa_bits)
    code = (int(exponent) - 1 + bias) << mantissa_bits | fraction
    return code | (0x80 if number < 0 else 0)


def operand_place(ins: MatrixInstruction, block: int, row: int, k: int) -> tuple[int, int]:
    """(lane, bit offset in the lane's registers), case by case as the guides' pictures show."""
    width = ins.left.bits
    if ins.blocks == 1:
        groups = 64 // ins.side  # of lanes: each holds a run of depths
        run = ins.depth // groups
        return row + ins.side * (k // run), k % run * width
    if ins.left is Format.F64:  # 4x4x4, four blocks: lanes by depth, then block, then row
        return 16 * k + 4 * block + row, 0
    return ins.side * block + row, k * width  # one lane holds all depths of its row


def result_place(ins: MatrixInstruction, block: int, row: int, column: int) -> tuple[int, int]:
    """(lane, bit offset in the lane's registers)."""
    if ins.result is Format.F64:
        if ins.side == 16:
            return 16 * (row % 4) + column, row // 4 * 64
        return 16 * row + 4 * block + column, 0
    if ins.side == 4:
        return 4 * block + column, row * 32
    if ins.side == 16:
        return 16 * (row // 4) + column, (4 * block + row % 4) * 32
    return 32 * (row // 4 % 2) + column, (16 * block + 4 * (row // 8) + row % 4) * 32


def pack(values: dict[tuple[int, int, int], int], registers: int) -> NDArray[np.uint32]:
    """Registers from {(wave, lane, bit offset): bits}."""
    packed = np.zeros((WAVES, registers, 64), np.uint32)
    for (wave, lane, offset), bits in values.items():
        register, shift = divmod(offset, 32)
        shifted = bits << shift
        packed[wave, register, lane] |= np.uint32(shifted & 0xFFFF_FFFF)
        if shifted >> 32:
            packed[wave, register + 1, lane] |= np.uint32(shifted >> 32)
    return packed


def pack_operand(ins: MatrixInstruction, matrix: NDArray[Any], fmt: Format) -> NDArray[np.uint32]:
    """`matrix` is (waves, blocks, side, depth)."""
    values = {}
    for (wave, block, row, k), number in np.ndenumerate(matrix):
        lane, offset = operand_place(ins, block, row, k)
        values[wave, lane, offset] = encode(number, fmt)
    return pack(values, ins.operand_registers)


def pack_result(ins: MatrixInstruction, matrix: NDArray[Any]) -> NDArray[np.uint32]:
    values = {}
    for (wave, block, row, column), number in np.ndenumerate(matrix):
        lane, offset = result_place(ins, block, row, column)
        values[wave, lane, offset] = encode(number, ins.result)
    return pack(values, ins.result_registers)


def small(random: np.random.Generator, fmt: Format, *shape: int) -> NDArray[Any]:
    """Numbers whose products and sums every format of the instruction holds exactly."""
    whole = random.integers(-7, 8, shape).astype(np.float64)
    return whole if fmt in (Format.I8, Format.I32, Format.FP8, Format.BF8) else whole / 4


def operands(ins: MatrixInstruction, seed: int = 1) -> Iterator[NDArray[Any]]:
    random = np.random.default_rng(seed)
    sources = (WAVES, ins.blocks, ins.side, ins.depth)
    for fmt in (ins.left, ins.right):
        yield small(random, fmt, *sources)
    yield small(random, ins.result, WAVES, ins.blocks, ins.side, ins.side)


def computed(
    ins: MatrixInstruction, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]
) -> NDArray[np.uint32]:
    """The registers of D for matrices of numbers."""
    sources = pack_operand(ins, a, ins.left), pack_operand(ins, b, ins.right)
    return multiply_add(ins, *sources, pack_result(ins, c))


def product(a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> NDArray[Any]:
    return np.einsum("wbik,wbjk->wbij", a, b) + c


@pytest.mark.parametrize("ins", ALL)
def test_every_shape_and_type_is_the_matrix_product(ins: MatrixInstruction) -> None:
    a, b, c = operands(ins)
    got = computed(ins, a, b, c)
    np.testing.assert_array_equal(got, pack_result(ins, product(a, b, c)))


FLOATS = [ins for (ins,) in (each.values for each in ALL) if ins.left is not Format.I8]


@pytest.mark.parametrize(("ins", "special"), in_turns(FLOATS, [np.nan, np.inf, -np.inf]))
def test_nan_and_infinities_reach_their_row_and_column_alone(
    ins: MatrixInstruction, special: float
) -> None:
    if ins.left in (Format.FP8, Format.BF8) and np.isinf(special):
        pytest.skip("the formats have no infinity")
    a, b, c = operands(ins, seed=3)
    b = np.where(b == 0, 1.0, b)
    a[0, -1, 1, -1] = special
    c[1, 0, 2, 3] = special
    got = computed(ins, a, b, c)
    with np.errstate(invalid="ignore"):
        wanted = product(a, b, c)
    assert not np.isfinite(wanted[0, -1, 1]).any()
    assert np.isfinite(wanted).sum() == wanted.size - ins.side - 1
    positive_nan = np.abs(np.array(np.nan))
    wanted = np.where(np.isnan(wanted), positive_nan, wanted)
    np.testing.assert_array_equal(got, pack_result(ins, wanted))


def test_infinity_times_zero_and_opposite_infinities_are_nan() -> None:
    ins = MATRIX_INSTRUCTIONS["gfx942"]["v_mfma_f32_16x16x16_f16"]
    a, b, c = (np.zeros_like(x) for x in operands(ins))
    a[:, 0, 0, 0] = np.inf
    a[:, 0, 1, 0], b[:, 0, 1, 0], c[:, 0, 1, 1] = np.inf, 1, -np.inf
    got = computed(ins, a, b, c)
    for row, column in ((0, 0), (1, 1), (0, 5)):
        lane, offset = result_place(ins, 0, row, column)
        assert got[0, offset // 32, lane] == 0x7FC0_0000


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942"])
@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_denormals_count_as_zero_on_gfx90a_alone(arch: str, kind: str) -> None:
    name = f"v_mfma_f32_16x16x16{'' if arch == 'gfx90a' else '_'}{kind}"
    ins = MATRIX_INSTRUCTIONS[arch][name + "_1k" * (arch == "gfx90a" and kind == "bf16")]
    a, b, c = (np.zeros_like(x) for x in operands(ins))
    tiny = 2.0**-15 if kind == "f16" else 2.0**-127
    a[:, 0, 0, 0] = tiny
    b[:, 0, 0, 0] = 2.0
    c[:, 0, 3, 3] = 2.0**-130
    got = computed(ins, a, b, c)
    wanted = np.zeros_like(c)
    if arch == "gfx942":
        wanted[:, 0, 0, 0] = 2 * tiny
        wanted[:, 0, 3, 3] = 2.0**-130
    np.testing.assert_array_equal(got, pack_result(ins, wanted))


def test_integers_wrap_around() -> None:
    ins = MATRIX_INSTRUCTIONS["gfx942"]["v_mfma_i32_16x16x32_i8"]
    a, b, c = operands(ins)
    a[:], b[:], c[:] = -128, -128, 2**31 - 1
    got = computed(ins, a, b, c)
    assert (got == np.uint32((2**31 - 1 + 32 * 128 * 128) & 0xFFFF_FFFF)).all()


def test_xf32_ignores_thirteen_bits() -> None:
    ins = MATRIX_INSTRUCTIONS["gfx942"]["v_mfma_f32_16x16x8_xf32"]
    a, b, c = (np.zeros_like(x) for x in operands(ins))
    a[:, 0, 0, 0] = 1 + 2.0**-10 + 2.0**-11 + 2.0**-23
    b[:, 0, 0, 0] = 1.0
    got = computed(ins, a, b, c)
    wanted = np.zeros_like(c)
    wanted[:, 0, 0, 0] = 1 + 2.0**-10
    np.testing.assert_array_equal(got, pack_result(ins, wanted))


def test_f32_rounds_after_each_product() -> None:
    ins = MATRIX_INSTRUCTIONS["gfx942"]["v_mfma_f32_16x16x4_f32"]
    a, b, c = (np.zeros_like(x) for x in operands(ins))
    a[:, 0, 0] = (2.0**-24, 2.0**-24, 0, 0)
    b[:, 0, 0] = 1.0
    c[:] = 1.0
    got = computed(ins, a, b, c)
    assert (got == encode(1.0, Format.F32)).all()  # each addend is lost on its own


@pytest.mark.parametrize(("kind", "exponent_bits"), [("fp8", 4), ("bf8", 5)])
def test_every_byte_is_the_number_of_its_format(kind: str, exponent_bits: int) -> None:
    ins = MATRIX_INSTRUCTIONS["gfx942"][f"v_mfma_f32_32x32x16_{kind}_{kind}"]
    one = 1 << (exponent_bits - 1) + 7 - exponent_bits  # its exponent is the bias
    a, b, c = (np.zeros((8, n, 64), np.uint32) for n in (2, 2, 16))
    a[:, 0, :32] = np.arange(256).reshape(8, 32)
    b[:, 0, :32] = one
    got = multiply_add(ins, a, b, c).view(np.float32)
    for code in range(256):
        sign, exponent = code >> 7, code >> (7 - exponent_bits) & ((1 << exponent_bits) - 1)
        fraction = (code % (1 << 7 - exponent_bits)) / (1 << 7 - exponent_bits)
        wanted = np.ldexp(fraction + (exponent > 0), max(exponent, 1) - (1 << exponent_bits - 1))
        lane, offset = result_place(ins, 0, code % 32, 0)
        found = got[code // 32, offset // 32, lane]
        assert np.isnan(found) if code == 0x80 else found == (-wanted if sign else wanted), code


@pytest.mark.parametrize(
    ("mnemonic", "modifiers", "words"),
    [
        ("v_mfma_f32_32x32x4_2b_f16", " cbsz:1", "modifier cbsz"),
        ("v_mfma_f32_32x32x4_2b_f16", " blgp:1", "modifier blgp"),
        ("v_smfmac_f32_16x16x32_f16", "", "unknown opcode v_smfmac_f32_16x16x32_f16"),
    ],
)
def test_what_is_not_modelled_is_refused_by_name(mnemonic: str, modifiers: str, words: str) -> None:
    text = f"{mnemonic} a[0:31], v[0:1], v[8:9], v[16:47]{modifiers}"
    with pytest.raises(Unsupported, match=words):
        decode_matrix(parse_instruction(text), "gfx942", ConstantPool(), CodeRow())


@pytest.mark.parametrize("arch", sorted(MATRIX_INSTRUCTIONS))
@pytest.mark.skipif(not shutil.which("llvm-mc-22"), reason="needs LLVM's assembler")
def test_llvm_knows_the_same_instructions_and_widths(arch: str) -> None:
    """Every name assembles with the table's widths on its own target, and prints unchanged."""
    table = MATRIX_INSTRUCTIONS[arch]

    def line(ins: MatrixInstruction) -> str:
        def registers(first: int, count: int) -> str:
            return f"v{first}" if count == 1 else f"v[{first}:{first + count - 1}]"

        sources = ins.operand_registers
        result = registers(0, ins.result_registers)
        operands = (result, registers(64, sources), registers(72, sources), result)
        return f"{ins.mnemonic} {', '.join(operands)}"

    done = subprocess.run(
        ["llvm-mc-22", "-triple=amdgcn", f"-mcpu={arch}"],
        input="\n".join(line(ins) for ins in table.values()),
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.stderr == ""
    printed = [text.strip() for text in done.stdout.splitlines() if "v_mfma" in text]
    assert [text.split()[0] for text in printed] == list(table)
