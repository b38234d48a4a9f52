"""Puts an assignment into the cubin that its kernel came from.

The register fields of the kernel's instructions get the registers of the assignment.
`.reuse` marks are cleared where they would be false. The register counts follow
the highest register. Everything else stays, so the compiler's own assignment gives the
same bytes. The result is disassembled again and proven
(proof).

A cubin with other registers need not run, because ptxas placed waits and stalls for
its own registers. It runs by the compiler's own rules if no access meets another in a
register that the control words keep apart from it (kept_apart): it waits for all that
ptxas waits for, and no distance is shorter than ptxas itself relies on. So does every
permutation of the registers, under which every dependency between instructions stays.

Cost: a run of nvdisasm if a register changed, and linear in the code.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from verilocc_bench.backends.nvidia.cubin import CubinKernel, read_cubin
from verilocc_bench.backends.nvidia.encoding import register_fields, reuse_fields, reuse_mask
from verilocc_bench.backends.nvidia.flow import control_flow
from verilocc_bench.backends.nvidia.hazards import Hazard, HazardKind, find_hazards
from verilocc_bench.backends.nvidia.kept_apart import new_hazards
from verilocc_bench.backends.nvidia.kernel import SassCode
from verilocc_bench.backends.nvidia.normalize import NormalizedSass
from verilocc_bench.backends.nvidia.proof import (
    ProofFailed,
    Renaming,
    prove_bytes,
    prove_instructions,
)
from verilocc_bench.backends.nvidia.read import disassembled_function
from verilocc_bench.backends.nvidia.records import SassFunction, SassInstruction
from verilocc_bench.backends.nvidia.webs import GUARD, ReferenceKey
from verilocc_bench.errors import InputError
from verilocc_bench.ir import Assignment
from verilocc_bench.targets.nvidia import COMPILER_REGISTERS

_INSTRUCTION_BYTES = 16
_NO_REGISTER = b"\xff\xff\xff\xff"
"""What ptxas writes where an instruction has no register for its mask of threads."""


class RunVerdict(StrEnum):
    """What is known of a cubin with other registers. Nothing of it is run on hardware."""

    COMPILERS_OWN = "the compiler's own assignment"
    BY_THE_RULES = "runs by the compiler's own rules"
    NOT_RUNNABLE = "not runnable"


@dataclass(frozen=True, slots=True)
class LoweredCubin:
    """A cubin with an assignment in it.

    `function` is the kernel disassembled from `data`; hazards count its instructions.
    `hazards_before` are the hazards under the compiler's own registers: they only show
    that the model does not know the code. `hazards` are the others, of distances, too.
    """

    data: bytes
    function: SassFunction
    changed_instructions: int
    cleared_reuse_marks: int
    register_count: int
    hazards: tuple[Hazard, ...]
    hazards_before: int

    @property
    def verdict(self) -> RunVerdict:
        """What is known of the cubin."""
        if self.hazards:
            return RunVerdict.NOT_RUNNABLE
        return RunVerdict.BY_THE_RULES if self.changed_instructions else RunVerdict.COMPILERS_OWN

    @property
    def runnable(self) -> bool:
        """True if the cubin relies on nothing that the compiler does not rely on."""
        return not self.hazards

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the cubin is not taken to run; empty if it is."""
        close = sum(hazard.cycles is not None for hazard in self.hazards)
        parted = sum(hazard.kind is HazardKind.PARTED_THREADS for hazard in self.hazards)
        counts = (
            (len(self.hazards) - close - parted, "hazards that no wait of the kernel covers"),
            (close, "pairs of instructions closer than ptxas relies on in its own code"),
            (parted, "writes to uniform registers that other threads of the warp still read"),
        )
        return tuple(f"{count} {what}" for count, what in counts if count)


def write_assignment(
    code: SassCode, assignment: Assignment, source: str | Path | None = None
) -> LoweredCubin:
    """The cubin with `assignment` in place of the compiler's registers.

    The assignment must be verified. Raises RejectedKernel for an instruction of unknown
    encoding, and ProofFailed if the result is wrong.
    """
    cubin, kernel, original, normalized = code.cubin, code.place, code.function, code.normalized
    if kernel.code_size != len(original.instructions) * _INSTRUCTION_BYTES:
        raise InputError(f"the disassembly of {kernel.name} is not whole", source=source)
    renaming = renaming_of(original, normalized, assignment)
    words = [
        _patched(index, instruction, renaming)
        for index, instruction in enumerate(original.instructions)
    ]
    cleared = 0
    for index, mask in stale_reuse_marks(original, words):
        cleared += (words[index] & mask).bit_count()
        words[index] &= ~mask
    count = _register_count(kernel, original, renaming)
    data = _patched_file(cubin, kernel, words, count)
    lowered = original
    if data != cubin:
        lowered = disassembled_function(data, source or "<cubin>", normalized.name)
    prove_instructions(original, lowered, renaming)
    prove_bytes(cubin, data, kernel)
    if read_cubin(data).kernel(normalized.name).register_count != count:
        raise ProofFailed(f"{kernel.name}: expected {count} registers in the file's headers")
    before = len(find_hazards(original))
    hazards = new_hazards(original, renaming)
    changed = sum(
        word != instruction.encoding
        for word, instruction in zip(words, original.instructions, strict=True)
    )
    return LoweredCubin(data, lowered, changed, cleared, count, hazards, before)


def renaming_of(
    function: SassFunction, normalized: NormalizedSass, assignment: Assignment
) -> Renaming:
    """The first register of each allocated reference."""
    found: dict[ReferenceKey, int] = {}
    for key, lanes in normalized.places.items():
        base, old = assignment[lanes.register], normalized.assignment[lanes.register]
        if _old_register(function, key) != (old.file, old.index + lanes.first):
            raise ProofFailed(f"{function.name}: the normalized function is not of this cubin")
        if base.file != old.file:
            raise ProofFailed(f"{function.name}: an assignment to another register file")
        found[key] = base.index + lanes.first
    return found


def _old_register(function: SassFunction, key: ReferenceKey) -> tuple[str, int] | None:
    index, number = key
    if index >= len(function.instructions):
        return None
    instruction = function.instructions[index]
    if number == GUARD:
        guard = instruction.guard
        return None if guard is None else (guard.file, guard.index)
    references = (*instruction.definitions, *instruction.uses)
    if number >= len(references):
        return None
    return references[number].file, references[number].first


def _patched(index: int, instruction: SassInstruction, renaming: Renaming) -> int:
    """The word of an instruction with the new registers in its fields."""
    word = instruction.encoding
    written: dict[int, int] = {}
    for number, field in register_fields(instruction).items():
        value = renaming.get((index, number))
        if value is None:
            continue
        if written.setdefault(field.start, value) != value:
            raise ProofFailed(f"address {instruction.address:#06x}: two registers in one field")
        word = field.write(word, value)
    return word


def stale_reuse_marks(function: SassFunction, words: list[int]) -> Iterator[tuple[int, int]]:
    """Yields (instruction, marks to clear) for the new words of a function's instructions.

    A mark keeps the value of an operand slot for a later instruction that reads the
    same register through the same slot. That reader takes the value, and keeps it only
    by a mark of its own: ptxas lets registers be read anew through the same slot right
    behind it, after they were written. So a mark stays if the next instruction of its
    block that reads its register through its slot is the same as before. No mark stands
    at the end of a block.
    """
    fields = [reuse_fields(instruction) for instruction in function.instructions]
    for block in control_flow(function):
        old_readers: dict[tuple[int, int], list[int]] = defaultdict(list)
        new_readers: dict[tuple[int, int], list[int]] = defaultdict(list)
        for index in reversed(block.instructions):
            old_word, word = function.instructions[index].encoding, words[index]
            mask = 0
            for slot, field in fields[index].items():
                old, new = (slot, field.read(old_word)), (slot, field.read(word))
                marked = word & reuse_mask(slot)
                # Both lists have the next reader last, which must be the same.
                if marked and old_readers[old][-1:] != new_readers[new][-1:]:
                    mask |= marked
                old_readers[old].append(index)
                new_readers[new].append(index)
            if mask:
                yield index, mask


def _register_count(kernel: CubinKernel, function: SassFunction, renaming: Renaming) -> int:
    """The register count of the kernel: the highest named register, plus 1, plus ptxas's own 2.

    The count stays if the highest register stays. It does not fall below what the compiler
    has counted for a callee that is not known.
    """
    old = new = -1
    for index, instruction in enumerate(function.instructions):
        references = (*instruction.definitions, *instruction.uses)
        for number, reference in enumerate(references):
            if reference.file == "R":
                old = max(old, reference.first + reference.count - 1)
                first = renaming.get((index, number), reference.first)
                new = max(new, first + reference.count - 1)
    if new == old:
        return kernel.register_count
    least = kernel.register_count if any(i.destroys for i in function.instructions) else 0
    return max(least, new + 1 + COMPILER_REGISTERS)


def _patched_file(cubin: bytes, kernel: CubinKernel, words: list[int], count: int) -> bytes:
    data = bytearray(cubin)
    code = b"".join(word.to_bytes(_INSTRUCTION_BYTES, "little") for word in words)
    data[kernel.code_offset : kernel.code_offset + kernel.code_size] = code
    if kernel.register_count_offset is not None:
        data[kernel.register_count_offset] = count
    for offset in kernel.register_attribute_offsets:
        data[offset : offset + 4] = count.to_bytes(4, "little")
    if data != cubin:
        for offset in kernel.mask_register_offsets:
            data[offset : offset + 4] = _NO_REGISTER
    return bytes(data)
