"""Products of a warp group (HGMMA …), and the registers in which they sum up.

`WARPGROUP.ARRIVE` hands the registers of a warp over to the products behind it. PTX asks
for it (`wgmma.fence`) between any other access to a register and a product that reads
or writes the register. So what a product writes is its own from the arrival on, and no
other instruction between the two may read or write it. ptxas has none. On an H200 one
register that is read there once makes the numbers wrong in each launch; to move a sum
between two products, or to write over a factor at work, does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from verilocc_bench.backends.nvidia.architectures import operations
from verilocc_bench.backends.nvidia.flow import has_effect, opcode_stem
from verilocc_bench.backends.nvidia.records import SassBlock, SassFunction, SassInstruction
from verilocc_bench.backends.nvidia.webs import guard_reference

_PRODUCTS = operations("HGMMA IGMMA QGMMA")
_ARRIVAL = "WARPGROUP.ARRIVE"


def is_product(instruction: SassInstruction) -> bool:
    """True for a product of a warp group that executes."""
    return opcode_stem(instruction.opcode) in _PRODUCTS and not instruction.never


def added_to(instruction: SassInstruction) -> int | None:
    """The number of the use that a product of a warp group adds to; None where it is RZ.

    It stands behind the descriptor of the second factor.
    """
    if is_product(instruction):
        for number, (descriptor, total) in enumerate(pairwise(instruction.uses), 1):
            if (descriptor.file, total.file) == ("UR", "R"):
                return number
    return None


def behind_arrivals(
    function: SassFunction, blocks: Sequence[SassBlock]
) -> Iterator[tuple[int, int]]:
    """(other instruction, product) of which no arrival lies between, on some path."""
    instructions = function.instructions
    before: list[list[int]] = [[] for _ in blocks]
    for number, block in enumerate(blocks):
        for successor in block.successors:
            before[successor].append(number)
    for number, block in enumerate(blocks):
        for position, product in enumerate(block.instructions):
            if not is_product(instructions[product]):
                continue
            pending = [(number, block.instructions[:position])]
            entered: set[int] = set()
            while pending:
                here, run = pending.pop()
                for other in reversed(run):
                    instruction = instructions[other]
                    if instruction.opcode == _ARRIVAL and guard_reference(instruction) is None:
                        break
                    if has_effect(instruction) and not is_product(instruction):
                        yield other, product
                else:
                    fresh = set(before[here]) - entered
                    entered |= fresh
                    pending += [(each, blocks[each].instructions) for each in sorted(fresh)]
