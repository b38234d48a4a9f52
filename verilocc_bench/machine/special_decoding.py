"""Instructions of control, and of matrices."""

from __future__ import annotations

import re
from collections.abc import Callable

from verilocc_bench.machine import fields as f
from verilocc_bench.machine.code_rows import CodeRow, ConstantPool, Unsupported
from verilocc_bench.machine.disassembly import CodeInstruction
from verilocc_bench.machine.matrix_formats import Format
from verilocc_bench.machine.matrix_table import MATRIX_INSTRUCTIONS, MatrixInstruction
from verilocc_bench.machine.operand_text import constant_bits, parse_operand

(NO_OPERATION, END, BARRIER, WAIT) = range(4)
NO_LIMIT = 63
"""A counter that s_waitcnt does not wait for."""

_COUNTER = re.compile(r"(vmcnt|lgkmcnt|expcnt)\((\d+)\)")
_FORMATS = {
    Format.F32: 0, Format.F64: 1, Format.F16: 2, Format.BF16: 3, Format.I8: 4, Format.XF32: 5,
    Format.FP8: 6, Format.BF8: 7,
}  # fmt: skip


def _ignored(_instruction: CodeInstruction, row: CodeRow) -> None:
    """Instructions that change priorities and caches alone."""
    row[f.GROUP], row[f.OPERATION], row[f.TRAITS] = f.SPECIAL, NO_OPERATION, f.IS_SALU


def _nop(instruction: CodeInstruction, row: CodeRow) -> None:
    _ignored(instruction, row)
    row[f.OFFSET] = int(instruction.operands[0], 0)


def _end(_instruction: CodeInstruction, row: CodeRow) -> None:
    row[f.GROUP], row[f.OPERATION], row[f.TRAITS] = f.SPECIAL, END, f.IS_SALU


def _barrier(_instruction: CodeInstruction, row: CodeRow) -> None:
    row[f.GROUP], row[f.OPERATION], row[f.TRAITS] = f.SPECIAL, BARRIER, f.IS_SALU


def _wait(instruction: CodeInstruction, row: CodeRow) -> None:
    """OFFSET is the limit of vmcnt, OFFSET_1 the limit of lgkmcnt."""
    row[f.GROUP], row[f.OPERATION], row[f.TRAITS] = f.SPECIAL, WAIT, f.IS_SALU
    row[f.OFFSET] = row[f.OFFSET_1] = NO_LIMIT
    for word in " ".join(instruction.operands).replace("&", " ").split():
        if match := _COUNTER.fullmatch(word):
            if match[1] != "expcnt":
                row[f.OFFSET if match[1] == "vmcnt" else f.OFFSET_1] = int(match[2])
        elif word.isdigit() or word.startswith("0x"):
            bits = int(word, 0)
            row[f.OFFSET] = (bits & 15) | (bits >> 14 & 3) << 4
            row[f.OFFSET_1] = bits >> 8 & 15
        else:
            raise Unsupported(word)
    if row[f.OFFSET_1] == 15:
        row[f.OFFSET_1] = NO_LIMIT


_IGNORED = (
    "s_setprio", "s_sleep", "s_icache_inv", "s_dcache_inv", "s_dcache_wb", "s_dcache_inv_vol",
    "s_dcache_wb_vol", "buffer_wbinvl1", "buffer_wbinvl1_vol", "buffer_wbl2", "buffer_invl2",
    "buffer_inv", "s_ttracedata", "v_nop", "v_nop_e32", "s_incperflevel", "s_decperflevel",
    "s_wakeup",
)  # fmt: skip
SPECIAL_DECODERS: dict[str, Callable[[CodeInstruction, CodeRow], None]] = {
    **dict.fromkeys(_IGNORED, _ignored),
    "s_nop": _nop,
    "s_endpgm": _end,
    "s_barrier": _barrier,
    "s_waitcnt": _wait,
}


def matrix_numbers(arch: str, mnemonic: str) -> tuple[int, ...]:
    """Side, depth, blocks, formats and registers, as compiled code takes them."""
    found = MATRIX_INSTRUCTIONS[arch].get(mnemonic)
    if found is None:
        raise Unsupported(f"no matrix instruction of {arch}")
    return (
        found.side, found.depth, found.blocks, _FORMATS[found.left], _FORMATS[found.right],
        int(found.flushes_denormals), found.elements_per_lane, found.operand_registers,
        found.result_registers, 0,
    )  # fmt: skip


def decode_matrix(
    instruction: CodeInstruction, arch: str, constants: ConstantPool, row: CodeRow
) -> None:
    """D, A, B and C, and the instruction's numbers in the program's constants (TARGET)."""
    mnemonic = instruction.mnemonic
    found = MATRIX_INSTRUCTIONS[arch].get(mnemonic)
    if found is None:
        raise Unsupported(f"unknown opcode {mnemonic}")
    for key, value in instruction.modifiers:
        if key in {"cbsz", "abid", "blgp", "neg"} and value not in {"0", "[0,0,0]"}:
            raise Unsupported(f"modifier {key}")
        if key not in {"cbsz", "abid", "blgp", "neg"}:
            raise Unsupported(f"modifier {key}")
    result, a, b, c = (parse_operand(text) for text in instruction.operands)
    if not (result.is_vector and a.is_vector and b.is_vector):
        raise Unsupported("a scalar operand")
    row[f.GROUP] = f.MATRIX
    row.put_result(result, found.result_registers)
    row.put_source(0, a, found.operand_registers)
    row.put_source(1, b, found.operand_registers)
    if c.place is not None:
        row.put_source(2, c, found.result_registers)
    else:
        kind = "f64" if found.result is Format.F64 else "b32"
        row.put_constant(2, constants, constant_bits(c.text, kind), 2 if kind == "f64" else 1)
    numbers = matrix_numbers(arch, mnemonic)
    # The numbers stand in one constant each, side by side; a key of its own keeps them together.
    row[f.TARGET] = constants.block(numbers)
    row[f.PASSES] = matrix_passes(found, arch)
    row[f.TRAITS] = f.IS_VALU | f.IS_MATRIX
    if found.left is Format.F64:
        row[f.TRAITS] |= f.IS_DOUBLE_MATRIX
    elif arch == "gfx90a" or found.left is not Format.F32:
        row[f.TRAITS] |= f.IS_XDL


def matrix_passes(found: MatrixInstruction, arch: str) -> int:
    """How many passes of four cycles it takes. Source: LLVM's SISchedule.td, the models
    SIDPGFX90AFullSpeedModel and SIDPGFX942FullSpeedModel."""
    if found.left is Format.F64:
        return 4 if found.side == 4 else 8
    if found.side == 4:
        return 2
    if arch == "gfx90a":
        return 8 if found.side == 16 else 16
    many = found.left in {Format.F32} or found.blocks > 1
    if found.side == 16:
        return 8 if many else 4
    return 16 if many else 8
