"""Proof that a patched cubin is the renaming of the original, and nothing else.

The proof starts from the two files and the wanted register of each reference. It
does not know how the patch was made. Both files are disassembled. Each instruction
must have the same address, opcode, guard and target, the printed operands with
renamed registers, and the renamed definitions and uses, printed or not. All bytes
of the files must be equal, except the kernel's instructions, its register counts and
the registers with masks that its attributes name. All bits of an instruction must be
equal, except register fields and `.reuse` marks, which may only be cleared.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from verilocc_bench.backends.nvidia.cubin import CubinKernel
from verilocc_bench.backends.nvidia.encoding import REUSE_BITS, register_fields
from verilocc_bench.backends.nvidia.records import RegisterReference, SassFunction, SassInstruction
from verilocc_bench.backends.nvidia.webs import GUARD
from verilocc_bench.errors import VerilocError

Renaming = Mapping[tuple[int, int], int]
"""The first register that each reference must name, by its key (see webs.ReferenceKey)."""

_ALL_BITS = (1 << 128) - 1


class ProofFailed(VerilocError):
    """A patched cubin is wrong: a mistake in this package, not in the input."""


def prove_instructions(original: SassFunction, lowered: SassFunction, renaming: Renaming) -> None:
    """Raises ProofFailed unless `lowered` is `original` with its registers renamed."""
    if len(original.instructions) != len(lowered.instructions):
        raise ProofFailed(f"{original.name}: the number of instructions changed")
    if original.labels != lowered.labels:
        raise ProofFailed(f"{original.name}: the labels changed")
    pairs = zip(original.instructions, lowered.instructions, strict=True)
    for index, (before, after) in enumerate(pairs):
        wanted = _renamed(before, index, renaming)
        # The line and the encoding are not part of the text; the bits are checked below.
        found = replace(after, line=before.line, encoding=before.encoding)
        if wanted != found:
            raise ProofFailed(
                f"{original.name} at {before.address:#06x}: expected {_text(wanted)!r}, "
                f"the patched word is {_text(found)!r}"
            )
        _prove_bits(original.name, before, after)


def prove_bytes(before: bytes, after: bytes, kernel: CubinKernel) -> None:
    """Raises ProofFailed if bytes outside instructions and register counts changed."""
    if len(before) != len(after):
        raise ProofFailed(f"{kernel.name}: the size of the file changed")
    start, end = kernel.code_offset, kernel.code_offset + kernel.code_size
    may_change = {kernel.register_count_offset}  # None if the section has no count
    for offset in (*kernel.register_attribute_offsets, *kernel.mask_register_offsets):
        may_change |= set(range(offset, offset + 4))
    if before[:start] == after[:start] and before[end:] == after[end:]:
        return
    for offset, (old, new) in enumerate(zip(before, after, strict=True)):
        if old != new and not start <= offset < end and offset not in may_change:
            raise ProofFailed(f"{kernel.name}: byte {offset} of the file changed")


def _prove_bits(name: str, before: SassInstruction, after: SassInstruction) -> None:
    registers = 0
    for field in register_fields(before).values():
        registers |= field.mask
    reuse = sum(1 << bit for bit in REUSE_BITS)
    changed = before.encoding ^ after.encoding
    wrong = changed & ~(registers | reuse) & _ALL_BITS
    if wrong or after.encoding & reuse & ~before.encoding:
        raise ProofFailed(
            f"{name} at {before.address:#06x}: bits {changed:#034x} of the word changed"
        )


def _text(instruction: SassInstruction) -> str:
    guard = instruction.guard
    sign = "" if guard is None else f"@{'!' * guard.negated}{guard.file}{guard.index} "
    return f"{sign}{instruction.opcode} {', '.join(instruction.operands)}".strip()


def _renamed(instruction: SassInstruction, index: int, renaming: Renaming) -> SassInstruction:
    """The instruction with its registers renamed, as it must be printed."""
    operands = list(instruction.operands)
    references: list[RegisterReference] = []
    both = (*instruction.definitions, *instruction.uses)
    for number, reference in enumerate(both):
        first = renaming.get((index, number), reference.first)
        references.append(replace(reference, first=first))
    for place in {reference.operand for reference in both if reference.operand >= 0}:
        names = {
            (old.file, old.first): new.first
            for old, new in zip(both, references, strict=True)
            if old.operand == place and not old.fixed
        }
        operands[place] = _renamed_text(operands[place], names)
    guard = instruction.guard
    if guard is not None:
        guard = replace(guard, index=renaming.get((index, GUARD), guard.index))
    count = len(instruction.definitions)
    return replace(
        instruction,
        operands=tuple(operands),
        guard=guard,
        definitions=tuple(references[:count]),
        uses=tuple(references[count:]),
    )


_NAME = re.compile(r"(?<![\w.$])(UR|UP|R|P)(\d{1,3})(?!\w)")


def _renamed_text(text: str, names: Mapping[tuple[str, int], int]) -> str:
    """An operand with its registers renamed; names of labels stay."""
    head, tick, label = text.partition("`")

    def rename(match: re.Match[str]) -> str:
        file, index = match[1], int(match[2])
        return f"{file}{names.get((file, index), index)}"

    return _NAME.sub(rename, head) + tick + label
