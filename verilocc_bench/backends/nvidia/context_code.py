"""Code in which every copy of a subroutine stands for itself, to ask NVIDIA for life ranges.

nvdisasm assumes that a callee keeps to the ABI, and shows no liveness through a call that
ptxas wrote for one callee. So the kernel is written anew: for each chain of calls all its
code once more, in which a call is a jump to the code of its own copy, and a return is a
jump to the one place where that copy returns to, behind a comparison that reads the return
address. nvdisasm then sees plain jumps, and its life ranges hold by context. A CALL that is
a jump becomes the BRA that it is, unless nothing reaches it: it may be one of a subroutine. The
result is only looked at; it need not run.
"""

from __future__ import annotations

from collections.abc import Sequence

from verilocc_bench.backends.nvidia.architectures import ARCHITECTURES
from verilocc_bench.backends.nvidia.cubin import CubinKernel, with_other_code
from verilocc_bench.backends.nvidia.flow import calls_subroutine, returns
from verilocc_bench.backends.nvidia.records import SassBlock, SassFunction, SassInstruction

_INSTRUCTION_BYTES = 16
_OPCODE_BITS, _NO_INCREMENT, _BRANCH = 0xFFF, 1 << 86, 0x947
_CALL = "CALL.REL.NOINC"
# ISETP.NE.AND PT, PT, R0, R0, PT and BRA, without registers and offset.
_COMPARISON = 0x000FE20003F05270_000000000000720C | 7 << 81
_JUMP = 0x000FEA0003800000_0000000000007947
_GUARD_BITS = 0xF000


def copies_of(blocks: Sequence[SassBlock]) -> dict[tuple[int, ...], int]:
    """The number of each chain of calls: the kernel itself is 0."""
    return {calls: number for number, calls in enumerate(sorted({b.calls for b in blocks}))}


def copied_size(function: SassFunction) -> int:
    """The instructions of a copy: all but the NOPs at the end, which nvdisasm leaves out."""
    size = len(function.instructions)
    while function.instructions[size - 1].opcode == "NOP":
        size -= 1
    return size


def with_contexts(
    data: bytes, kernel: CubinKernel, function: SassFunction, blocks: Sequence[SassBlock]
) -> bytes:
    """The cubin with a copy of the kernel's code for each chain of calls, in order."""
    copies, size = copies_of(blocks), copied_size(function)
    reached = {index for block in blocks for index in block.instructions}
    words = [
        _as_jump(each) if index in reached else each.encoding
        for index, each in enumerate(function.instructions)
    ]
    code = _Code(function, words)
    if len(copies) == 1:
        return with_other_code(data, kernel, code.bytes())
    code.words = code.words[:size] * len(copies)
    for block in blocks:
        if not block.instructions:
            continue
        index = block.instructions[-1]
        last = function.instructions[index]
        if not (calls_subroutine(last) or returns(last)):
            continue
        at = copies[block.calls] * size + index
        to = blocks[block.successors[0]]
        target = copies[to.calls] * size + to.instructions[0]
        if calls_subroutine(last):
            code.jump(at, target, last.encoding & _GUARD_BITS)
        else:
            code.jump(at, len(code.words), last.encoding & _GUARD_BITS)
            pair = last.uses[0].first
            code.words += [_COMPARISON | pair << 24 | pair + 1 << 32, 0]
            code.jump(len(code.words) - 1, target)
    return with_other_code(data, kernel, code.bytes())


class _Code:
    def __init__(self, function: SassFunction, words: list[int]) -> None:
        self.fields = ARCHITECTURES[function.architecture].jump_offset
        self.words = words

    def jump(self, at: int, target: int, guard: int | None = None) -> None:
        """Writes a jump to the instruction `target`; `guard` are the bits of its guard."""
        offset = (target - at - 1) * _INSTRUCTION_BYTES
        word = _JUMP if guard is None else _JUMP & ~_GUARD_BITS | guard
        for first, lowest, width in self.fields:
            word |= (offset >> lowest & ((1 << width) - 1)) << first
        self.words[at] = word

    def bytes(self) -> bytes:
        return b"".join(word.to_bytes(_INSTRUCTION_BYTES, "little") for word in self.words)


def _as_jump(instruction: SassInstruction) -> int:
    """The word of an instruction, with BRA for a CALL to a place: the offset stays."""
    if instruction.opcode != _CALL or instruction.is_call_by_the_abi:
        return instruction.encoding
    return instruction.encoding & ~_OPCODE_BITS & ~_NO_INCREMENT | _BRANCH
