"""Memory instructions from text to rows.

Vector memory: A is the vector address (offset or index of a buffer), B the data,
C the buffer resource or the scalar base, D the scalar offset of a buffer. LDS: A
is the address, B and C the data. Scalar loads: A is the base, B the offset.
"""

from __future__ import annotations

import re

from verilocc_bench.machine import fields as f
from verilocc_bench.machine.code_rows import CodeRow, Unsupported
from verilocc_bench.machine.disassembly import CodeInstruction
from verilocc_bench.machine.memory_opcodes import (
    LDS_OPCODES,
    SCALAR_LOAD_WIDTHS,
    VECTOR_OPCODES,
    MemoryOpcode,
)
from verilocc_bench.machine.operand_text import CodeOperand, parse_operand

MEMORY_PREFIXES = ("buffer_", "global_", "flat_", "scratch_", "ds_", "s_load_", "s_buffer_load_")
(BPERMUTE, PERMUTE, SWIZZLE) = range(3)

_CACHE_WORDS = {"glc", "slc", "sc0", "sc1", "nt", "scc"}
_SWIZZLE = re.compile(r"swizzle\((\w+),(.*)\)\Z")


def decode_memory(instruction: CodeInstruction, arch: str, row: CodeRow) -> None:
    """Fills the row. Raises Unsupported for what is not known."""
    mnemonic = instruction.mnemonic
    if mnemonic.startswith("ds_"):
        _lds(instruction, row)
    elif mnemonic.startswith("s_"):
        _scalar_load(instruction, row)
    else:
        _vector(instruction, arch, row)


def _register(operand: CodeOperand) -> int:
    if operand.place is None or operand.modifiers:
        raise Unsupported(f"operand {operand.text}")
    return operand.place


def _vector_operand(operand: CodeOperand, width: int) -> CodeOperand:
    if not operand.is_vector or operand.width != width or operand.modifiers:
        raise Unsupported(f"operand {operand.text}: expected {width} vector registers")
    return operand


def _scalar_operand(operand: CodeOperand, width: int) -> CodeOperand:
    if operand.place is None or operand.is_vector or operand.width != width or operand.modifiers:
        raise Unsupported(f"operand {operand.text}: expected {width} scalar registers")
    return operand


def _scalar_load(instruction: CodeInstruction, row: CodeRow) -> None:
    buffer = instruction.mnemonic.startswith("s_buffer_load_")
    name = instruction.mnemonic.removeprefix("s_buffer_load_").removeprefix("s_load_")
    width = SCALAR_LOAD_WIDTHS.get(name)
    if width is None:
        raise Unsupported(f"unknown opcode {instruction.mnemonic}")
    row[f.GROUP], row[f.SIZE] = f.SCALAR_LOAD, 4 * width
    row[f.FLAGS] = f.ADDRESS_BUFFER if buffer else 0
    result, base, offset = instruction.operands
    row.put_result(_scalar_operand(parse_operand(result), width), width)
    row.put_source(0, _scalar_operand(parse_operand(base), 4 if buffer else 2), 4 if buffer else 2)
    given = parse_operand(offset)
    if given.place is None:
        row[f.OFFSET] = int(given.text, 0)
    else:
        row.put_source(1, _scalar_operand(given, 1), 1)
    for key, value in instruction.modifiers:
        if key == "offset":
            row[f.OFFSET] += int(value, 0)
        elif key not in _CACHE_WORDS:
            raise Unsupported(f"modifier {key}")


def _lds(instruction: CodeInstruction, row: CodeRow) -> None:
    mnemonic = instruction.mnemonic
    operands = [parse_operand(text) for text in instruction.operands]
    row[f.TRAITS] = f.IS_MEMORY
    if mnemonic in {"ds_bpermute_b32", "ds_permute_b32", "ds_swizzle_b32"}:
        _lds_lanes(instruction, operands, row)
        return
    opcode = LDS_OPCODES.get(mnemonic)
    if opcode is None:
        raise Unsupported(f"unknown opcode {mnemonic}")
    row[f.GROUP], row[f.OPERATION] = f.LDS, opcode.operation
    row[f.SIZE], row[f.FLAGS] = opcode.size, opcode.flags
    places = 2 if opcode.flags & f.TWO_PLACES else 1
    if not opcode.flags & (f.STORES | f.ATOMIC):
        row.put_result(
            _vector_operand(operands.pop(0), places * opcode.registers), places * opcode.registers
        )
    elif opcode.flags & f.RETURNS:
        row.put_result(_vector_operand(operands.pop(0), opcode.registers), opcode.registers)
    row.put_source(0, _vector_operand(operands.pop(0), 1), 1)
    if opcode.flags & (f.STORES | f.ATOMIC):
        for slot in range(1, places + 1):
            row.put_source(
                slot, _vector_operand(operands.pop(0), opcode.registers), opcode.registers
            )
    if operands:
        raise Unsupported("number of operands")
    stride = opcode.size * (64 if "st64" in mnemonic else 1)
    for key, value in instruction.modifiers:
        if key == "offset" and places == 1:
            row[f.OFFSET] = int(value, 0)
        elif key in {"offset0", "offset1"} and places == 2:
            row[f.OFFSET if key == "offset0" else f.OFFSET_1] = int(value, 0) * stride
        else:
            raise Unsupported(f"modifier {key}")


def _lds_lanes(instruction: CodeInstruction, operands: list[CodeOperand], row: CodeRow) -> None:
    """Values between lanes through the LDS unit, without its memory."""
    kind = {"ds_bpermute_b32": BPERMUTE, "ds_permute_b32": PERMUTE}.get(
        instruction.mnemonic, SWIZZLE
    )
    row[f.GROUP], row[f.OPERATION] = f.LDS_LANES, kind
    row.put_result(_vector_operand(operands[0], 1), 1)
    row.put_source(0, _vector_operand(operands[1], 1), 1)
    if kind != SWIZZLE:
        row.put_source(1, _vector_operand(operands[2], 1), 1)
    for key, value in instruction.modifiers:
        if key != "offset":
            raise Unsupported(f"modifier {key}")
        row[f.OFFSET] = _swizzle_bits(value) if kind == SWIZZLE else int(value, 0)


def _swizzle_bits(value: str) -> int:
    """The offset of ds_swizzle_b32. Source: LLVM, "AMDGPU Operand Syntax", swizzle."""
    match = _SWIZZLE.match(value.replace(" ", ""))
    if match is None:
        return int(value, 0)
    name, words = match[1], match[2].split(",")
    if name == "SWAP":
        return int(words[0], 0) << 10 | 0x1F
    if name == "REVERSE":
        return (int(words[0], 0) - 1) << 10 | 0x1F
    if name == "BROADCAST":
        size, lane = (int(word, 0) for word in words)
        return lane << 5 | (0x1F & ~(size - 1))
    if name == "QUAD_PERM":
        return 0x8000 | sum(int(word, 0) << 2 * place for place, word in enumerate(words))
    if name == "BITMASK_PERM":
        pattern = words[0].strip("\"'")
        masks = [0, 0, 0]  # and, or, xor
        for place, character in enumerate(reversed(pattern)):
            masks[0] |= (character in "pi") << place
            masks[1] |= (character == "1") << place
            masks[2] |= (character == "i") << place
        return masks[2] << 10 | masks[1] << 5 | masks[0]
    raise Unsupported(f"swizzle {name}")


def _vector(instruction: CodeInstruction, arch: str, row: CodeRow) -> None:
    space, _, name = instruction.mnemonic.partition("_")
    words = {key for key, _ in instruction.modifiers}
    to_lds = "lds" in words
    if name.startswith("load_lds_"):
        name, to_lds = "load_" + name.removeprefix("load_lds_"), True
    opcode = VECTOR_OPCODES.get(name)
    if opcode is None or (to_lds and not name.startswith("load_")):
        raise Unsupported(f"unknown opcode {instruction.mnemonic}")
    operands = [None if text == "off" else parse_operand(text) for text in instruction.operands]
    row[f.GROUP], row[f.OPERATION] = f.VECTOR_MEMORY, opcode.operation
    row[f.SIZE], row[f.FLAGS] = opcode.size, opcode.flags
    row[f.TRAITS] = f.IS_MEMORY | f.IS_VECTOR_MEMORY
    if to_lds:
        if opcode.size < 4:
            raise Unsupported("bytes and halves loaded to LDS")
        row[f.FLAGS] |= f.TO_LDS
        row[f.TRAITS] |= f.READS_M0
    if opcode.flags & f.ATOMIC and words & ({"glc"} if arch == "gfx90a" else {"sc0"}):
        row[f.FLAGS] |= f.RETURNS
    _words(instruction, row)
    if space == "buffer":
        _buffer(operands, opcode, row)
    else:
        _addressed(space, operands, opcode, row)
    wide = opcode.flags & f.STORES and opcode.registers > 2
    if wide and (space != "buffer" or row[f.D] >= f.FIRST_CONSTANT or row[f.D] == f.NONE):
        row[f.TRAITS] |= f.IS_WIDE_STORE


def _words(instruction: CodeInstruction, row: CodeRow) -> None:
    for key, value in instruction.modifiers:
        if key == "offset":
            row[f.OFFSET] = int(value, 0)
        elif key == "offen":
            row[f.FLAGS] |= f.ADDRESS_OFFEN
        elif key == "idxen":
            row[f.FLAGS] |= f.ADDRESS_IDXEN
        elif key not in _CACHE_WORDS and key != "lds":
            raise Unsupported(f"modifier {key}")


def _data(operand: CodeOperand | None, opcode: MemoryOpcode, row: CodeRow) -> None:
    """The data: the destination of a load, a source otherwise; both where an atomic returns."""
    if operand is None:
        raise Unsupported("data expected")
    _vector_operand(operand, opcode.registers)
    if opcode.flags & (f.STORES | f.ATOMIC):
        row.put_source(1, operand, opcode.registers)
    else:
        row.put_result(operand, opcode.registers)


def _buffer(operands: list[CodeOperand | None], opcode: MemoryOpcode, row: CodeRow) -> None:
    row[f.FLAGS] |= f.ADDRESS_BUFFER
    if not row[f.FLAGS] & f.TO_LDS:
        data = operands.pop(0)
        _data(data, opcode, row)
        if row[f.FLAGS] & f.RETURNS and data is not None and data.place is not None:
            # An atomic returns into the first of its data registers.
            row[f.RESULT], row[f.RESULT_WIDTH] = data.place, opcode.result_registers
    address, resource, offset = operands
    registers = bool(row[f.FLAGS] & f.ADDRESS_OFFEN) + bool(row[f.FLAGS] & f.ADDRESS_IDXEN)
    if (address is None) != (registers == 0):
        raise Unsupported("the address of a buffer")
    if address is not None:
        row.put_source(0, _vector_operand(address, registers), registers)
    assert resource is not None
    row.put_source(2, _scalar_operand(resource, 4), 4)
    assert offset is not None
    if offset.place is None:
        row[f.OFFSET_1] = int(offset.text, 0)
    else:
        row.put_source(3, _scalar_operand(offset, 1), 1)


def _addressed(
    space: str, operands: list[CodeOperand | None], opcode: MemoryOpcode, row: CodeRow
) -> None:
    """Global, flat and scratch: [result,] address, [data,] scalar base."""
    row[f.FLAGS] |= f.ADDRESS_SCRATCH if space == "scratch" else f.ADDRESS_GLOBAL
    loads = not opcode.flags & (f.STORES | f.ATOMIC)
    to_lds = row[f.FLAGS] & f.TO_LDS
    if loads and not to_lds:
        _data(operands.pop(0), opcode, row)
    elif row[f.FLAGS] & f.RETURNS:
        returned = operands.pop(0)
        assert returned is not None
        row.put_result(_vector_operand(returned, opcode.result_registers), opcode.result_registers)
    address = operands.pop(0)
    if not loads:
        _data(operands.pop(0), opcode, row)
    base = operands.pop(0) if operands else None
    if operands:
        raise Unsupported("number of operands")
    if base is not None:
        width = 1 if space == "scratch" else 2
        row.put_source(2, _scalar_operand(base, width), width)
    if address is not None:
        width = 1 if space == "scratch" or base is not None else 2
        row.put_source(0, _vector_operand(address, width), width)
    elif space != "scratch":
        raise Unsupported("an address expected")
