"""Instructions from text to rows of numbers. Anything unknown is refused by name, at once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.errors import InputError
from verilocc_bench.machine import fields as f
from verilocc_bench.machine.code_rows import CodeRow, ConstantPool, Unsupported
from verilocc_bench.machine.disassembly import CodeInstruction
from verilocc_bench.machine.matrix_table import MATRIX_INSTRUCTIONS
from verilocc_bench.machine.memory_decoding import MEMORY_PREFIXES, decode_memory
from verilocc_bench.machine.memory_opcodes import LDS_OPCODES, SCALAR_LOAD_WIDTHS, VECTOR_OPCODES
from verilocc_bench.machine.mode_decoding import apply_mode
from verilocc_bench.machine.opcode_table import OPCODES, RELATION_BITS, Opcode
from verilocc_bench.machine.operand_text import (
    CodeOperand,
    UnknownOperand,
    constant_bits,
    parse_operand,
)
from verilocc_bench.machine.scalar_operations import COMPARES_SCALARS, SAVES_EXEC
from verilocc_bench.machine.special_decoding import SPECIAL_DECODERS, decode_matrix

_ENCODING = re.compile(r"_(e32|e64|sdwa|dpp|e64_dpp)\Z")
_SDWA_SELECTIONS = {
    "DWORD": 0, "BYTE_0": 1, "BYTE_1": 2, "BYTE_2": 3, "BYTE_3": 4, "WORD_0": 5, "WORD_1": 6,
}  # fmt: skip
_UNUSED = {"UNUSED_PAD": f.PAD, "UNUSED_SEXT": f.EXTEND, "UNUSED_PRESERVE": f.PRESERVE}
_LANE_PATTERNS = {
    "row_shl": f.ROW_SHIFT_LEFT, "row_shr": f.ROW_SHIFT_RIGHT, "row_ror": f.ROW_ROTATE,
    "row_newbcast": f.ROW_NEW_BROADCAST,
}  # fmt: skip
_LANE_WORDS = {
    "row_mirror": f.ROW_MIRROR, "row_half_mirror": f.ROW_HALF_MIRROR,
}  # fmt: skip
_PACKED = f.PACKED_32 | f.PACKED_16
_FORMATS = {"f16": f.AS_FLOAT_16, "f32": f.AS_FLOAT_32, "f64": f.AS_FLOAT_64}
_OUTPUTS = {("mul", "2"): 1, ("mul", "4"): 2, ("div", "2"): 3}
_IMMEDIATE_16 = re.compile(r"s_(?:movk|cmovk|addk|mulk|cmpk_\w\w)_")
_KEEPS_HIGH_WITH_OP_SEL = {
    "v_mad_u16", "v_mad_i16", "v_fma_f16", "v_div_fixup_f16", "v_add_i16", "v_sub_i16",
    "v_med3_f16", "v_med3_i16", "v_med3_u16", "v_min3_f16", "v_min3_i16", "v_min3_u16",
    "v_max3_f16", "v_max3_i16", "v_max3_u16", "v_cvt_pk_fp8_f32", "v_cvt_pk_bf8_f32",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Program:
    """A kernel ready to run.

    `rows` is (instructions, FIELDS); `constants` fill the scalar places from
    FIRST_CONSTANT on; `instructions` has the instruction of each row.
    """

    arch: str
    rows: NDArray[np.int64]
    constants: NDArray[np.int64]
    instructions: tuple[CodeInstruction, ...]

    def index_of(self, address: int) -> int:
        """The row of the instruction at an address. Raises InputError where there is none."""
        for index, instruction in enumerate(self.instructions):
            if instruction.address == address:
                return index
        raise InputError(f"there is no instruction at 0x{address:x}")


def known_opcodes() -> set[str]:
    """The names of all opcodes that can be decoded, on one target or on both."""
    vector = ("buffer", "global", "flat", "scratch")
    memory = {f"{prefix}_{name}" for prefix in vector for name in VECTOR_OPCODES}
    scalar = {
        f"{prefix}_{name}" for prefix in ("s_load", "s_buffer_load") for name in SCALAR_LOAD_WIDTHS
    }
    matrices = {name for table in MATRIX_INSTRUCTIONS.values() for name in table}
    return {*OPCODES, *memory, *scalar, *LDS_OPCODES, *SPECIAL_DECODERS, *matrices}


def decode(
    instructions: Sequence[CodeInstruction], arch: str, *, flushes: bool = False, ieee: bool = True
) -> Program:
    """The program. Raises InputError with the first instruction that is not known.

    With `flushes` denormal numbers of 32 bits count as zero; `ieee` is IEEE mode.
    """
    constants = ConstantPool()
    index_of = {instruction.address: n for n, instruction in enumerate(instructions)}
    rows = []
    for instruction in instructions:
        try:
            row = _decode_one(instruction, arch, constants, index_of)
            apply_mode(_ENCODING.sub("", instruction.mnemonic), row, flushes=flushes, ieee=ieee)
        except (UnknownOperand, Unsupported, ValueError, IndexError) as error:
            what = error.args[0] if error.args else type(error).__name__
            raise InputError(
                f"at 0x{instruction.address:x}: {instruction.text!r} is not supported ({what})"
            ) from None
        rows.append(row.numbers)
    return Program(
        arch, np.array(rows, np.int64), np.array(constants.values, np.int64), tuple(instructions)
    )


def _decode_one(
    instruction: CodeInstruction, arch: str, constants: ConstantPool, index_of: dict[int, int]
) -> CodeRow:
    mnemonic = instruction.mnemonic
    row = CodeRow()
    row[f.BYTES] = instruction.size
    if mnemonic.startswith("v_mfma"):
        decode_matrix(instruction, arch, constants, row)
        _check_overlap(row)
        return row
    if mnemonic.startswith(("s_branch", "s_cbranch")):
        _branch(instruction, row, index_of)
        return row
    if mnemonic in SPECIAL_DECODERS:
        SPECIAL_DECODERS[mnemonic](instruction, row)
        return row
    if mnemonic.startswith(MEMORY_PREFIXES):
        decode_memory(instruction, arch, row)
        return row
    encoding = _ENCODING.search(mnemonic)
    name = mnemonic[: encoding.start()] if encoding else mnemonic
    opcode = OPCODES.get(name)
    if opcode is None:
        raise Unsupported(f"unknown opcode {name}")
    row[f.GROUP], row[f.OPERATION] = opcode.group, opcode.operation
    row[f.FLAGS], row[f.TRAITS] = opcode.flags, opcode.traits
    if name.startswith("s_"):
        _scalar(instruction, name, opcode, constants, row)
    else:
        _vector(instruction, name, opcode, constants, row)
    return row


_BRANCHES = {
    "s_branch": 0, "s_cbranch_scc0": 1, "s_cbranch_scc1": 2, "s_cbranch_vccz": 3,
    "s_cbranch_vccnz": 4, "s_cbranch_execz": 5, "s_cbranch_execnz": 6,
}  # fmt: skip


def _branch(instruction: CodeInstruction, row: CodeRow, index_of: dict[int, int]) -> None:
    kind = _BRANCHES.get(instruction.mnemonic)
    if kind is None:
        raise Unsupported(f"unknown opcode {instruction.mnemonic}")
    distance = int(instruction.operands[0], 0) & 0xFFFF
    distance -= (distance & 0x8000) << 1
    target = instruction.address + 4 + 4 * distance
    row[f.GROUP], row[f.OPERATION], row[f.TRAITS] = f.BRANCH, kind, f.IS_SALU
    row[f.TARGET] = index_of.get(target, f.NONE)
    if row[f.TARGET] == f.NONE:
        raise Unsupported(f"branch to 0x{target:x}, where no instruction begins")


def _check_overlap(row: CodeRow) -> None:
    """Refuses a matrix instruction whose wide result overlaps its sources.

    The hardware writes parts of a result of more than four registers before it has
    read all sources. C may be the same registers, or others, but no part of them.
    Source: LLVM's back end, where such results are early clobbers.
    """
    first, width = row[f.RESULT], row[f.RESULT_WIDTH]
    if width <= 4:
        return
    for slot, name in enumerate("ABC"):
        place, count = row[f.A + 2 * slot], row[f.A_WIDTH + 2 * slot]
        same = slot == 2 and place == first
        if place >= f.VECTOR and not same and place < first + width and first < place + count:
            raise Unsupported(f"the result overlaps {name}")


def _scalar(
    instruction: CodeInstruction,
    name: str,
    opcode: Opcode,
    constants: ConstantPool,
    row: CodeRow,
) -> None:
    if instruction.modifiers:
        raise Unsupported(f"modifier {instruction.modifiers[0][0]}")
    operands = [parse_operand(text) for text in instruction.operands]
    if any(operand.is_vector or operand.modifiers for operand in operands):
        raise Unsupported("a scalar operand")
    if name not in COMPARES_SCALARS:
        row.put_result(operands.pop(0), opcode.result)
    if name in {"s_addk_i32", "s_mulk_i32"}:
        operands.insert(0, CodeOperand(row[f.RESULT], 1, ""))
    sources = [*opcode.sources, 1] if name in {"s_addk_i32", "s_mulk_i32"} else opcode.sources
    if len(operands) != len(sources):
        raise Unsupported("number of operands")
    is_short = _IMMEDIATE_16.match(name) is not None
    for slot, (operand, width) in enumerate(zip(operands, sources, strict=True)):
        if operand.place is None and is_short:
            number = int(operand.text, 0) & 0xFFFF
            if not name.endswith("u32") and number & 0x8000:
                number -= 0x1_0000
            row.put_constant(slot, constants, number & 0xFFFF_FFFF, 1)
        elif operand.place is None:
            kind = "b64" if width == 2 else "b32"
            row.put_constant(slot, constants, constant_bits(operand.text, kind), width)
        else:
            row.put_source(slot, operand, width)
    if name in SAVES_EXEC:
        row[f.FLAGS] |= f.WRITES_EXEC


def _vector(
    instruction: CodeInstruction,
    name: str,
    opcode: Opcode,
    constants: ConstantPool,
    row: CodeRow,
) -> None:
    operands = [parse_operand(text) for text in instruction.operands]
    _results(operands, name, opcode, row)
    expected = len(opcode.sources)
    if len(operands) != expected:
        raise Unsupported("number of operands")
    selections = _modifiers(instruction, name, opcode, row)
    for slot, (operand, width, kind) in enumerate(
        zip(operands, opcode.sources, opcode.constants, strict=True)
    ):
        if operand.modifiers & (f.NEGATE | f.ABSOLUTE) and not opcode.floats:
            raise Unsupported("neg or abs of an integer")
        if operand.place is None:
            if row[f.A_MODIFIERS + slot] & f.HALF_AS_FLOAT and operand.text != "0":
                raise Unsupported("a constant as a half")
            packed = bool(opcode.flags & f.PACKED_32)
            row.put_constant(
                slot, constants, constant_bits(operand.text, kind), 1 if packed else width
            )
        else:
            row.put_source(slot, operand, width)
        row[f.A_MODIFIERS + slot] |= operand.modifiers | opcode.number << f.NUMBER_SHIFT
        if slot in selections:
            row[f.A_MODIFIERS + slot] |= selections[slot] << f.SELECT_SHIFT
    if opcode.accumulates:
        slot = len(operands)
        row.copy_result_to_source(slot)
        row[f.A_MODIFIERS + slot] |= opcode.number << f.NUMBER_SHIFT
    _check_vector(name, opcode, row)


def _results(operands: list[CodeOperand], name: str, opcode: Opcode, row: CodeRow) -> None:
    """Takes the destinations off the operands."""
    result = operands.pop(0)
    if result.modifiers:
        raise Unsupported("a modifier of the destination")
    scalar = opcode.group == f.COMPARE or name in {"v_readlane_b32", "v_readfirstlane_b32"}
    if result.place is None or result.is_vector == scalar:
        raise Unsupported("file of the destination")
    row.put_result(result, opcode.result)
    if opcode.group == f.CARRY:
        second = operands.pop(0)
        if second.place is None or second.is_vector or second.width != 2:
            raise Unsupported("the second destination")
        row[f.SECOND], row[f.SECOND_WIDTH] = second.place, 2


def _bits(value: str) -> list[int]:
    return [int(bit) for bit in value.strip("[]").split(",")]


def _modifiers(
    instruction: CodeInstruction, name: str, opcode: Opcode, row: CodeRow
) -> dict[int, int]:
    """Applies the modifiers; gives SDWA's selection for each source."""
    selections: dict[int, int] = {}
    if opcode.flags & _PACKED and name != "v_pk_mov_b32":
        for slot in range(len(opcode.sources)):
            row[f.A_MODIFIERS + slot] |= f.HIGH_FROM_HIGH
    for key, value in instruction.modifiers:
        if key in {"op_sel", "op_sel_hi", "neg_lo", "neg_hi"}:
            _half_modifier(key, _bits(value), name, opcode, row)
        elif key == "clamp" and opcode.floats and opcode.group != f.COMPARE:
            row[f.RESULT_MODIFIERS] |= f.CLAMP | _format(name) << f.FORMAT_SHIFT
        elif (key, value) in _OUTPUTS and opcode.floats:
            row[f.RESULT_MODIFIERS] |= _OUTPUTS[key, value] << f.OUTPUT_SHIFT
            row[f.RESULT_MODIFIERS] |= _format(name) << f.FORMAT_SHIFT
        elif key in {"src0_sel", "src1_sel"}:
            selections[int(key[3])] = _SDWA_SELECTIONS[value]
        elif key == "dst_sel":
            row[f.RESULT_MODIFIERS] |= _SDWA_SELECTIONS[value] << f.DESTINATION_SHIFT
        elif key == "dst_unused":
            row[f.RESULT_MODIFIERS] |= _UNUSED[value] << f.UNUSED_SHIFT
        else:
            _lane_modifier(key, value, row)
    to_high = row[f.FLAGS] & f.TO_HIGH_HALF and name in _KEEPS_HIGH_WITH_OP_SEL
    if row[f.RESULT_MODIFIERS] >> f.DESTINATION_SHIFT & 7 or to_high:
        row[f.TRAITS] |= f.WRITES_HALF
    return selections


def _format(name: str) -> int:
    """The numbers that an opcode gives: its name has their type before those of its sources."""
    kind = re.search(r"_((?:[fiub]|fp|bf)\d+)(?=_|$)", name)
    if kind is None or kind[1] not in _FORMATS:
        raise Unsupported("clamp or output modifier of a result that is no float")
    return f.AS_HALVES if name == "v_cvt_pkrtz_f16_f32" else _FORMATS[kind[1]]


def _half_modifier(key: str, bits: list[int], name: str, opcode: Opcode, row: CodeRow) -> None:
    """Which halves of the sources are meant, and their signs, one bit a source."""
    mixed, packed = "_mix" in name, bool(opcode.flags & _PACKED)
    if name == "v_pk_mov_b32":
        # The low result is of the first source, the high one of the second; op_sel_hi is ignored.
        if key == "op_sel":
            row[f.A_MODIFIERS] |= bits[0] * f.HIGH_HALF
            row[f.B_MODIFIERS] |= bits[1] * f.HIGH_FROM_HIGH
        elif key != "op_sel_hi":
            raise Unsupported(f"modifier {key}")
        return
    count = len(opcode.sources)
    if len(bits) > count and bits[-1] and key == "op_sel":
        row[f.FLAGS] |= f.TO_HIGH_HALF
    if key == "op_sel":
        meaning = f.HIGH_HALF
    elif key == "op_sel_hi" and packed:
        # It is on without the modifier, and then left out of the text.
        meaning = f.HIGH_FROM_HIGH
        for slot in range(count):
            row[f.A_MODIFIERS + slot] &= ~meaning
    elif key == "op_sel_hi" and mixed:
        meaning = f.HALF_AS_FLOAT
    elif key == "neg_lo" and (packed or mixed):
        meaning = f.NEGATE
    elif key == "neg_hi" and (packed or mixed):
        meaning = f.NEGATE_HIGH if packed else f.ABSOLUTE
    else:
        raise Unsupported(f"modifier {key}")
    for slot, bit in enumerate(bits[:count]):
        row[f.A_MODIFIERS + slot] |= bit * meaning


def _lane_modifier(key: str, value: str, row: CodeRow) -> None:
    """Data-parallel primitives."""
    if key == "quad_perm":
        lanes = _bits(value)
        number = sum(lane << 2 * place for place, lane in enumerate(lanes))
        row[f.LANE_PATTERN], row[f.LANE_VALUE] = f.QUAD, number
    elif key in _LANE_PATTERNS:
        row[f.LANE_PATTERN], row[f.LANE_VALUE] = _LANE_PATTERNS[key], int(value, 0)
    elif key in _LANE_WORDS:
        row[f.LANE_PATTERN] = _LANE_WORDS[key]
    elif (key, value) in {("row_bcast", "15"), ("row_bcast", "31")}:
        row[f.LANE_PATTERN] = f.ROW_BROADCAST_15 if value == "15" else f.ROW_BROADCAST_31
    elif key in {"wave_shl", "wave_rol", "wave_shr", "wave_ror"}:
        row[f.LANE_PATTERN] = {
            "wave_shl": f.WAVE_SHIFT_LEFT, "wave_rol": f.WAVE_ROTATE_LEFT,
            "wave_shr": f.WAVE_SHIFT_RIGHT, "wave_ror": f.WAVE_ROTATE_RIGHT,
        }[key]  # fmt: skip
    elif key == "row_mask":
        row[f.LANE_MASKS] |= int(value, 0)
    elif key == "bank_mask":
        row[f.LANE_MASKS] |= int(value, 0) << 4
    elif key == "bound_ctrl":
        row[f.LANE_MASKS] |= f.BOUND_CONTROL
    else:
        raise Unsupported(f"modifier {key}")
    row[f.TRAITS] |= f.IS_DPP


def _check_vector(name: str, opcode: Opcode, row: CodeRow) -> None:
    """Refuses combinations whose meaning is not implemented."""
    modifiers = [row[f.A_MODIFIERS + slot] for slot in range(3)]
    uses_op_sel = any(m & f.HIGH_HALF for m in modifiers) or row[f.FLAGS] & f.TO_HIGH_HALF
    packed = opcode.flags & (f.PACKED_32 | f.PACKED_16)
    may_select = (
        packed or "_mix" in name or name in _KEEPS_HIGH_WITH_OP_SEL or name == "v_pack_b32_f16"
    )
    if uses_op_sel and not may_select:
        raise Unsupported("op_sel")
    if packed & f.PACKED_32:
        for slot in range(len(opcode.sources)):
            place = row[f.A + 2 * slot]
            if (
                f.FIRST_CONSTANT <= place < f.VECTOR
                and (modifiers[slot] & (f.HIGH_HALF | f.HIGH_FROM_HIGH))
                and name != "v_pk_mov_b32"
            ):
                raise Unsupported("the high half of a constant")
    if "_mix" in name:
        for slot in range(3):
            if not modifiers[slot] & f.HALF_AS_FLOAT:
                row[f.A_MODIFIERS + slot] &= ~f.HIGH_HALF
    if row[f.TRAITS] & f.IS_DPP and row[f.LANE_PATTERN] == f.NO_PATTERN:
        raise Unsupported("lane pattern")
    if name in _KEEPS_HIGH_WITH_OP_SEL and not packed and not row[f.FLAGS] & f.TO_HIGH_HALF:
        row[f.FLAGS] |= f.KEEP_HIGH_HALF
    assert opcode.group != f.COMPARE or row[f.OPERATION] >> RELATION_BITS < 9
