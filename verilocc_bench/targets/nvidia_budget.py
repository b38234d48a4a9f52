"""The number of registers that a thread of an NVIDIA kernel may name, from its cubin.

A multiprocessor of sm_80 has 65,536 registers, a quarter for each of its four
partitions. It gives them to whole warps, in units of 8 for each thread. All warps of a
block must fit at once, so W warps (rounded up to a multiple of 4) leave each thread
65,536 / 32 W registers, rounded down to 8. An instruction can name no more than 255
registers, and `.maxnreg` in the PTX may allow fewer. ptxas keeps two of a thread's
registers: with a limit of 64 it names R0 to R61.

ptxas writes the size of the block (`.reqntid` or `.maxntid`) and `.maxnreg` into the
cubin's section `.nv.info.KERNEL`, but not `.minnctapersm`. So a cubin does not show if
`.minnctapersm` made ptxas use fewer registers.

Sources: PTX ISA, performance-tuning directives; CUDA C++ Programming Guide,
technical specifications per compute capability; experiments with ptxas 13.5 for the
multiples of 4 and the two kept registers; names of the attributes as cuobjdump prints
them.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from verilocc_bench.errors import InputError
from verilocc_bench.targets.nvidia import (
    COMPILER_REGISTERS,
    PARTITIONS,
    REGISTERS_PER_PARTITION,
    THREAD_GRANULARITY,
    WARP_THREADS,
)

MAXIMUM_REGISTERS = 255
"""The registers that an instruction can name: R0 to R254."""

_MAXIMUM_THREADS = 1_024

_MAX_THREADS = 0x05  # EIATTR_MAX_THREADS: three 32-bit sizes, .maxntid
_REQUIRED_THREADS = 0x10  # EIATTR_REQNTID: likewise, .reqntid
_REGISTER_COUNT = 0x1B  # EIATTR_MAXREG_COUNT: 16 bits, .maxnreg; 255 without one
_INLINE_FORMATS = (1, 2, 3)
_SIZED_FORMAT = 4


@dataclass(frozen=True, slots=True)
class LaunchBounds:
    """The launch bounds of a kernel.

    `threads` is the most threads of a block; None if the kernel does not say.
    `maximum_registers` is a thread's limit by `.maxnreg`; 255 if the kernel has none.
    """

    threads: int | None = None
    maximum_registers: int = MAXIMUM_REGISTERS

    @property
    def register_limit(self) -> int:
        """See the function of that name."""
        return register_limit(self.threads, self.maximum_registers)


def register_limit(threads: int | None, maximum_registers: int = MAXIMUM_REGISTERS) -> int:
    """Registers that a thread may get in a block of `threads`, which must be 1 to 1,024.

    Without a block size only the 255 of instructions and `.maxnreg` count, as in ptxas.
    Raises ValueError for another number of threads.
    """
    limit = min(MAXIMUM_REGISTERS, maximum_registers)
    if threads is None:
        return limit
    if not 1 <= threads <= _MAXIMUM_THREADS:
        raise ValueError(f"a block cannot have {threads} threads")
    warps_per_partition = -(-threads // (WARP_THREADS * PARTITIONS))
    share = REGISTERS_PER_PARTITION // (WARP_THREADS * warps_per_partition)
    return min(limit, share // THREAD_GRANULARITY * THREAD_GRANULARITY)


def nameable_registers(limit: int) -> int:
    """The number of registers, from R0 on, that ptxas names under a limit."""
    return max(0, limit - COMPILER_REGISTERS)


def read_launch_bounds(information: bytes) -> LaunchBounds:
    """The launch bounds in the bytes of a section `.nv.info.KERNEL`; none in empty bytes.

    Raises InputError for bytes that are not a list of attributes, or for impossible
    bounds.
    """
    threads: int | None = None
    registers = MAXIMUM_REGISTERS
    for code, value in _attributes(information):
        if code in {_MAX_THREADS, _REQUIRED_THREADS}:
            if len(value) != 12:
                raise InputError(f"attribute {code:#x} of .nv.info is not a block size")
            threads = math.prod(struct.unpack("<III", value))
            if not 1 <= threads <= _MAXIMUM_THREADS:
                raise InputError(f"the kernel asks for a block of {threads} threads")
        elif code == _REGISTER_COUNT:
            registers = min(int.from_bytes(value, "little"), MAXIMUM_REGISTERS)
            if not registers:
                raise InputError("the kernel asks for no register at all")
    return LaunchBounds(threads, registers)


def _attributes(information: bytes) -> Iterator[tuple[int, bytes]]:
    """The code and value of each attribute.

    An attribute is a format byte, a code byte and two more bytes: its value, or the
    size of a value that follows.
    """
    position = 0
    while position < len(information):
        head = information[position : position + 4]
        position += 4
        if len(head) == 4 and head[0] in _INLINE_FORMATS:
            yield head[1], head[2:]
            continue
        size = int.from_bytes(head[2:], "little")
        value = information[position : position + size]
        position += size
        if len(head) < 4 or head[0] != _SIZED_FORMAT or len(value) < size:
            raise InputError(f"no attribute of .nv.info at byte {position - size - 4}")
        yield head[1], value
