"""The state in which the hardware starts a wave, and the memory that it sees.

Source: LLVM, "User Guide for AMDGPU Backend", section "Initial Kernel Execution
State". Work-item numbers are packed into v0, as on gfx90a and later. Kernarg
preloading is done as the firmware that supports it does it: the first user
scalars hold the arguments, and execution begins 256 bytes after the entry.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.errors import InputError
from verilocc_bench.machine.code_object import Descriptor, KernelArgument, KernelCode
from verilocc_bench.machine.decoding import Program
from verilocc_bench.machine.fields import EXEC, FIRST_CONSTANT, FLAT_SCRATCH, LANES, M0, MODE
from verilocc_bench.machine.mode_decoding import is_supported_mode
from verilocc_bench.machine.state import GroupState

Argument: TypeAlias = "NDArray[Any] | int | float | np.generic | None"

_FIRST_ADDRESS = 0x0000_7E00_4000_0000
_SPACING = (1 << 34) + 0x1357_9B00
"""Between two buffers: an offset of 32 bits does not lead from one into another.

Both halves of their addresses differ: a pointer with another buffer's lower half, or with a
small number in its place, is a fault.
"""

_PRELOAD_SKIP = 256
_UNDEFINED_SCALAR, _UNDEFINED_VECTOR = 0x7FDE_7E55, 0x7FDE_7EAA
_ALIGNMENT = 256


@dataclass(frozen=True, slots=True)
class LaunchSize:
    """How a kernel is started: work-groups in each direction, work-items in a work-group."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]

    @property
    def waves(self) -> int:
        """The waves of a work-group."""
        return -(-math.prod(self.block) // LANES)


@dataclass(frozen=True, slots=True)
class LaunchMemory:
    """All memory of a launch: `data`, and `regions` as GroupState has them.

    `places[n]` is the slice of argument n where it is an array. `kernarg` is
    the address of the arguments, `scratch` the address of the private memory.
    """

    data: NDArray[np.uint8]
    regions: NDArray[np.int64]
    places: tuple[slice | None, ...]
    kernarg: int
    scratch: int
    arguments: bytes
    launch: LaunchSize


def lay_out_memory(
    kernel: KernelCode, arguments: Sequence[Argument], launch: LaunchSize
) -> LaunchMemory:
    """Puts the arguments into memory. Raises InputError where they do not fit the kernel's own."""
    explicit = [a for a in kernel.arguments if not a.kind.startswith("hidden_")]
    if len(arguments) > len(explicit):
        raise InputError(
            f"kernel {kernel.name} has {len(explicit)} arguments, got {len(arguments)}"
        )
    given = list(arguments) + [None] * (len(explicit) - len(arguments))
    segment = bytearray(max(kernel.descriptor.kernarg_bytes, 1))
    pieces: list[NDArray[np.uint8]] = []
    regions: list[tuple[int, int, int, int]] = []
    places: list[slice | None] = []
    known: dict[int, tuple[int, slice]] = {}
    end = 0

    def add(content: NDArray[np.uint8], *, writable: bool) -> tuple[int, slice]:
        nonlocal end
        address = _FIRST_ADDRESS + len(regions) * _SPACING
        place = slice(end, end + content.size)
        regions.append((address, content.size, end, int(writable)))
        padded = -(-content.size // _ALIGNMENT) * _ALIGNMENT
        pieces.append(np.pad(content, (0, padded - content.size)))
        end += padded
        return address, place

    for argument, value in zip(explicit, given, strict=True):
        place: slice | None = None
        if isinstance(value, np.ndarray) and value.ndim:
            if id(value) not in known:
                known[id(value)] = add(_content(value, kernel.name), writable=True)
            address, place = known[id(value)]
            raw = address.to_bytes(8, "little")
        else:
            raw = _by_value(argument, value, kernel.name)
        if argument.size != len(raw):
            raise InputError(
                f"argument at byte {argument.offset} of {kernel.name} has {argument.size} bytes, "
                f"got {len(raw)}"
            )
        segment[argument.offset : argument.offset + argument.size] = raw
        places.append(place)
    _hidden(kernel, launch, segment)
    kernarg, _ = add(np.frombuffer(bytes(segment), np.uint8), writable=False)
    scratch = 0
    if kernel.descriptor.scratch_bytes:
        size = kernel.descriptor.scratch_bytes * LANES * launch.waves
        scratch, _ = add(np.full(size, 0xDE, np.uint8), writable=True)
    return LaunchMemory(
        np.concatenate(pieces),
        np.array(regions, np.int64),
        tuple(places[: len(arguments)]),
        kernarg,
        scratch,
        bytes(segment),
        launch,
    )


def _content(array: NDArray[Any], kernel: str) -> NDArray[np.uint8]:
    if array.dtype.hasobject:
        raise InputError(f"kernel {kernel}: an argument is an array of objects")
    return np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)


def _by_value(argument: KernelArgument, value: Argument, kernel: str) -> bytes:
    """The bytes of an argument that is a number.

    The code object has no types: of two bytes nothing says which kind of float they are,
    and a number without a type that does not fit its bytes is refused.
    """
    if value is None:
        return bytes(argument.size)
    if isinstance(value, np.ndarray):
        value = value[()]
    if isinstance(value, np.generic) and not value.dtype.hasobject:
        return value.tobytes()
    size = argument.size
    where = f"kernel {kernel}: the argument at byte {argument.offset} has {size} bytes, got {value}"
    if isinstance(value, float):
        if size not in (4, 8):
            raise InputError(f"{where}: expected a NumPy number or the bits of one")
        with np.errstate(over="ignore"):
            narrow = np.array(value, f"<f{size}")
        if np.isinf(narrow) and not np.isinf(value):
            raise InputError(f"{where}: expected a number that fits")
        return narrow.tobytes()
    if isinstance(value, int):
        if not -(1 << 8 * size - 1) <= value < 1 << 8 * size:
            raise InputError(f"{where}: expected a number that fits")
        return (value % (1 << 8 * size)).to_bytes(size, "little")
    raise InputError(f"kernel {kernel}: an argument is neither an array nor a number")


def _hidden(kernel: KernelCode, launch: LaunchSize, segment: bytearray) -> None:
    """Fills the arguments that the runtime adds; those that are not known stay zero.

    The grid has as many dimensions as the last one with more than one work-item needs.
    """
    dimensions = [place for place, count in enumerate(launch.grid, 1) if count > 1]
    dimensions += [place for place, count in enumerate(launch.block, 1) if count > 1]
    for argument in kernel.arguments:
        axis = "xyz".find(argument.kind[-1])
        value = 0
        if argument.kind.startswith("hidden_block_count_"):
            value = launch.grid[axis]
        elif argument.kind.startswith("hidden_group_size_"):
            value = launch.block[axis]
        elif argument.kind == "hidden_grid_dims":
            value = max(dimensions, default=1)
        if value:
            segment[argument.offset : argument.offset + argument.size] = value.to_bytes(
                argument.size, "little"
            )


def check_support(kernel: KernelCode) -> None:
    """Raises InputError for a kernel that needs what is not there."""
    descriptor = kernel.descriptor
    missing = {
        "the dispatch packet": descriptor.dispatch_pointer,
        "the queue": descriptor.queue_pointer,
        f"a floating-point mode 0x{descriptor.float_mode:x}": not is_supported_mode(
            descriptor.float_mode
        ),
        "overflow that is clamped": descriptor.clamps_overflow,
    }
    for what, needed in missing.items():
        if needed:
            raise InputError(f"kernel {kernel.name} needs {what}, which is not supported")


def first_row(kernel: KernelCode, program: Program) -> int:
    """Where execution begins."""
    skip = _PRELOAD_SKIP if kernel.descriptor.preload_length else 0
    return program.index_of(kernel.entry + skip)


def start_group(
    kernel: KernelCode,
    constants: NDArray[np.int64],
    memory: LaunchMemory,
    group: tuple[int, int, int],
    state: GroupState,
) -> None:
    """Sets the registers of all waves of a work-group. What the hardware leaves undefined is
    filled with NaNs."""
    launch = memory.launch
    descriptor, scalars, vectors = kernel.descriptor, state.scalars, state.vectors
    scalars[:, :] = _UNDEFINED_SCALAR
    vectors[:, :, :] = _UNDEFINED_VECTOR
    scalars[:, FIRST_CONSTANT : FIRST_CONSTANT + len(constants)] = constants
    scalars[:, FIRST_CONSTANT - 8 : FIRST_CONSTANT] = 0
    scalars[:, MODE] = descriptor.float_mode
    scalars[:, M0] = 0xFFFF_FFFF
    items = math.prod(launch.block)
    for wave in range(launch.waves):
        initial = _user_scalars(kernel, memory)
        initial += [
            number for number, on in zip(group, descriptor.work_group_ids, strict=True) if on
        ]
        if descriptor.work_group_info:
            initial.append(0)
        if descriptor.private_segment and kernel.arch == "gfx90a":
            initial.append(wave * LANES * descriptor.scratch_bytes)
        scalars[wave, : len(initial)] = initial
        if kernel.arch != "gfx90a" or descriptor.flat_scratch_init:
            scalars[wave, FLAT_SCRATCH] = memory.scratch & 0xFFFF_FFFF
            scalars[wave, FLAT_SCRATCH + 1] = memory.scratch >> 32
        active = min(LANES, items - wave * LANES)
        execution = (1 << active) - 1
        scalars[wave, EXEC], scalars[wave, EXEC + 1] = execution & 0xFFFF_FFFF, execution >> 32
        vectors[wave, 0] = _packed_items(descriptor, launch.block, wave)


def _packed_items(
    descriptor: Descriptor, block: tuple[int, int, int], wave: int
) -> NDArray[np.uint32]:
    flat = np.arange(wave * LANES, (wave + 1) * LANES, dtype=np.uint32)
    x = flat % block[0]
    y = flat // block[0] % block[1]
    z = flat // (block[0] * block[1])
    packed: NDArray[Any] = x
    if descriptor.work_item_dimensions > 1:
        packed = packed | y << 10
    if descriptor.work_item_dimensions > 2:
        packed = packed | z << 20
    return packed.astype(np.uint32)


def _user_scalars(kernel: KernelCode, memory: LaunchMemory) -> list[int]:
    """The user scalars in their order."""
    descriptor = kernel.descriptor
    found: list[int] = []
    if descriptor.private_segment_buffer:
        # Swizzled: lanes side by side every four bytes; the number of the lane is added.
        found += [
            memory.scratch & 0xFFFF_FFFF,
            memory.scratch >> 32 & 0xFFFF | 1 << 31,
            0xFFFF_FFFF,
            3 << 21 | 1 << 23,
        ]
    for present, words in (
        (descriptor.dispatch_pointer, 2), (descriptor.queue_pointer, 2),
    ):  # fmt: skip
        found += [0] * words if present else []
    if descriptor.kernarg_pointer:
        found += [memory.kernarg & 0xFFFF_FFFF, memory.kernarg >> 32]
    if descriptor.dispatch_id:
        found += [0, 0]
    if descriptor.flat_scratch_init:
        found += [0, 0]
    if descriptor.private_segment_size:
        found.append(descriptor.scratch_bytes)
    start = 4 * descriptor.preload_offset
    for word in range(descriptor.preload_length):
        piece = memory.arguments[start + 4 * word : start + 4 * word + 4]
        found.append(int.from_bytes(piece, "little"))
    return found
