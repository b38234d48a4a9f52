"""The compiled matrix instruction against the one in numpy, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest

from verilocc_bench.machine import fields
from verilocc_bench.machine.disassembly import parse_instruction
from verilocc_bench.machine.matrix import multiply_add
from verilocc_bench.machine.matrix_formats import Format
from verilocc_bench.machine.matrix_step import matrix_step
from verilocc_bench.machine.matrix_table import MATRIX_INSTRUCTIONS, MatrixInstruction
from verilocc_bench.machine.rows import CodeRow, ConstantPool
from verilocc_bench.machine.special_decoding import decode_matrix
from verilocc_bench.machine.state import new_state

pytestmark = pytest.mark.slow

ALL = [(arch, found) for arch, table in MATRIX_INSTRUCTIONS.items() for found in table.values()]


def random_registers(
    random: np.random.Generator, count: int, kind: Format
) -> np.ndarray[tuple[int, ...], np.dtype[np.uint32]]:
    """Small numbers of the format, with zeros, infinities and denormals here and there."""
    words = random.integers(0, 2**32, (count, fields.LANES), dtype=np.uint64).astype(np.uint32)
    if kind in {Format.F32, Format.XF32}:
        return random.standard_normal(words.shape).astype(np.float32).view(np.uint32)
    if kind is Format.F64:
        pairs = random.standard_normal((fields.LANES, count // 2))
        return np.ascontiguousarray(pairs.view(np.uint32).T)
    if kind is Format.F16:
        halves = random.standard_normal((count, 2 * fields.LANES)).astype(np.float16)
        halves[random.random(halves.shape) < 0.02] = np.float16(3e-6)
        return halves.view(np.uint32)
    if kind is Format.BF16:
        wide = random.standard_normal((count, fields.LANES, 2)).astype(np.float32).view(np.uint32)
        return wide[:, :, 0] >> 16 | wide[:, :, 1] & np.uint32(0xFFFF0000)
    if kind in {Format.FP8, Format.BF8}:
        return words & np.uint32(0xBFBFBFBF)
    return words


@pytest.mark.parametrize(("arch", "found"), ALL, ids=[f"{a}-{f.mnemonic}" for a, f in ALL])
def test_compiled_code_and_numpy_agree(arch: str, found: MatrixInstruction) -> None:
    random = np.random.default_rng(len(found.mnemonic))
    a = random_registers(random, found.operand_registers, found.left)
    b = random_registers(random, found.operand_registers, found.right)
    c = random_registers(random, found.result_registers, found.result)

    def name(file: str, first: int, count: int) -> str:
        return f"{file}[{first}:{first + count - 1}]" if count > 1 else f"{file}{first}"

    text = (
        f"{found.mnemonic} {name('a', 0, found.result_registers)}, "
        f"{name('v', 0, found.operand_registers)}, {name('v', 8, found.operand_registers)}, "
        f"{name('v', 16, found.result_registers)}"
    )
    constants, row = ConstantPool(), CodeRow()
    decode_matrix(parse_instruction(text), arch, constants, row)
    rows = np.array([row.numbers], np.int64)
    state = new_state(rows, np.zeros(1, np.uint8), np.zeros((0, 4), np.int64), 1, 1)
    state.scalars[0, fields.FIRST_CONSTANT :][: len(constants.values)] = constants.values
    state.vectors[0, : len(a)] = a
    state.vectors[0, 8 : 8 + len(b)] = b
    state.vectors[0, 16 : 16 + len(c)] = c
    matrix_step(
        rows[0], state.scalars[0], state.vectors[0], state.left, state.right,
        state.matrix_results, state.total,
    )  # fmt: skip
    expected = multiply_add(found, a[None], b[None], c[None])[0]
    got = state.vectors[0, fields.ACCUMULATORS :][: found.result_registers]
    different = expected != got
    # A sum in float64 may end a bit apart in another order; float32 shows it once in a while.
    assert different.mean() < 1e-3
    if found.left in {Format.F32, Format.F64, Format.I8}:
        assert not different.any()
