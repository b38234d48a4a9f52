"""A kernel of a code object, recovered as machine IR with virtual registers.

The steps: disassembly; LLVM's own operands of the reassembled text, which must give the
same bytes; control flow; EXEC; webs; tuples with their classes; the text.

Kernels are rejected by name: code that llvm-mc cannot decode or reassembles to other
bytes, computed jumps, registers chosen by an index, scratch memory, and registers that
operands tie as no class of LLVM's has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from verilocc_bench.backends.amdgpu.mir_flow import unit_number
from verilocc_bench.backends.amdgpu.recovery.assembler import assemble, disassemble
from verilocc_bench.backends.amdgpu.recovery.header import argument_units, header
from verilocc_bench.backends.amdgpu.recovery.records import (
    CodeBlock,
    RecoveredInstruction,
    file_of,
    index_of,
)
from verilocc_bench.backends.amdgpu.recovery.recovered_flow import find_blocks
from verilocc_bench.backends.amdgpu.recovery.recovered_mask import analyse_mask
from verilocc_bench.backends.amdgpu.recovery.recovered_operations import recover_instruction
from verilocc_bench.backends.amdgpu.recovery.tuples import group_webs
from verilocc_bench.backends.amdgpu.recovery.webs import find_webs
from verilocc_bench.backends.amdgpu.recovery.writing import write_body
from verilocc_bench.errors import RejectedKernel
from verilocc_bench.ir import FixedUnits, PhysicalRegister
from verilocc_bench.machine.code_object import Descriptor, KernelCode, code_of

WAVE_LANES = 64
PRELOAD_SKIP_BYTES = 256
"""Code before this is for firmware that does not put arguments into registers."""


@dataclass(frozen=True, slots=True)
class RecoveredCode:
    """A kernel as machine IR.

    `text` is a whole file; `bases[n]` is the register that `%n` of the text has in the
    machine code; `blocks` is the code itself, as far as the entry reaches it. `start` is
    the number of bytes before that code, which llc writes by itself.
    """

    name: str
    arch: str
    text: str
    bases: tuple[PhysicalRegister, ...]
    blocks: tuple[CodeBlock, ...]
    start: int
    descriptor: Descriptor


def recover_kernel(data: bytes, kernel: KernelCode) -> RecoveredCode:
    """The kernel as machine IR. `data` is the code object.

    Raises RejectedKernel if the code cannot be recovered, and InputError without llvm-mc.
    """
    start = PRELOAD_SKIP_BYTES if kernel.descriptor.preload_length else 0
    full_waves = kernel.largest_work_group % WAVE_LANES == 0
    binary = code_of(data, kernel)[start:]
    code = read_instructions(binary, kernel.arch, kernel.entry + start, full_waves=full_waves)
    blocks = find_blocks(code)
    mask = analyse_mask(blocks, full_waves=full_waves)
    arguments = [
        unit_number(FixedUnits(file, index, 1))
        for file, first, count in dict.fromkeys(argument_units(kernel.descriptor).values())
        for index in range(first, first + count)
    ]
    webs = find_webs(blocks, mask, arguments)
    tuples = group_webs(blocks, webs)
    body = write_body(blocks, webs, tuples)
    text = header(kernel, body.classes, _used(blocks)) + "\n".join(body.lines) + "\n...\n"
    bases = tuple(PhysicalRegister(file_of(r.base), index_of(r.base)) for r in tuples.registers)
    return RecoveredCode(kernel.name, kernel.arch, text, bases, blocks, start, kernel.descriptor)


def read_instructions(
    code: bytes, arch: str, address: int, *, full_waves: bool = True
) -> list[RecoveredInstruction]:
    """The instructions of machine code that begins at an address.

    `full_waves` is false if a wave may have less than 64 work-items.
    Raises RejectedKernel, `reassembly`, if the disassembly gives neither the same bytes nor
    another encoding of the same text. (Loads of scalars with an offset in a register have two.)
    """
    lines = disassemble(code, arch)
    assembled = assemble([text for text, _ in lines], arch)
    if any(made.encoding != own for made, (_, own) in zip(assembled, lines, strict=True)):
        again = disassemble(b"".join(made.encoding for made in assembled), arch)
        if [text for text, _ in again] != [text for text, _ in lines]:
            raise RejectedKernel("reassembly", "the disassembly gives other instructions")
    found = []
    for (_, encoding), instruction in zip(lines, assembled, strict=True):
        instruction = replace(instruction, encoding=encoding)  # noqa: PLW2901
        found.append(recover_instruction(instruction, address, full_waves=full_waves))
        address += len(encoding)
    return found


def _used(blocks: Sequence[CodeBlock]) -> dict[str, int]:
    """The number of registers that the code uses, by file, counted from the first."""
    used: dict[str, int] = {}
    for unit in {
        unit
        for block in blocks
        for instruction in block.instructions
        for operand in instruction.operands
        for unit in operand.units
    }:
        used[file_of(unit)] = max(used.get(file_of(unit), 0), index_of(unit) + 1)
    return used
