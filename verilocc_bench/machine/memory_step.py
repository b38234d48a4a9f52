"""Memory instructions of a wave, in compiled code.

An access has two halves. *Issue* takes EXEC, the addresses and the data to be
stored from the registers, as the hardware does, and puts them into a queue.
*Landing* (landing_step) moves the data. In the fast mode an access lands at once; otherwise
when a wait covers it.
"""

from __future__ import annotations

from verilocc_bench.machine.compiled import compiled, int64, uint32
from verilocc_bench.machine.fields import (
    A_WIDTH,
    ADDRESS_BUFFER,
    ADDRESS_IDXEN,
    ADDRESS_OFFEN,
    ADDRESS_SCRATCH,
    B_WIDTH,
    EXEC,
    FLAGS,
    LANES,
    M0,
    NONE,
    OFFSET,
    OFFSET_1,
    OPERATION,
    SIZE,
    TO_LDS,
    VECTOR,
    A,
    B,
    C,
    D,
)
from verilocc_bench.machine.landing_step import OUT_OF_RANGE
from verilocc_bench.machine.lanes import Integers, read_pair
from verilocc_bench.machine.memory_decoding import BPERMUTE, PERMUTE
from verilocc_bench.machine.state import (
    LDS_QUEUE,
    SCALAR_QUEUE,
    SCRATCH_BASE,
    SCRATCH_BYTES,
    VECTOR_QUEUE,
    GroupState,
)


@compiled
def _slot(state: GroupState, wave: int, queue: int, row: int) -> int:
    """A place at the end of a queue for an access of the active lanes."""
    slot = state.queue_sizes[wave, queue]
    state.queue_sizes[wave, queue] = slot + 1
    state.queue_rows[wave, queue, slot] = row
    state.queue_execution[wave, queue, slot] = read_pair(state.scalars[wave], EXEC)
    return slot


@compiled
def _take_data(state: GroupState, wave: int, queue: int, slot: int, row: int) -> None:
    """Copies the data to be stored out of the registers."""
    fields = state.rows[row]
    register, count = fields[B] - VECTOR, fields[B_WIDTH]
    for word in range(count):
        for lane in range(LANES):
            state.queue_data[wave, queue, slot, word, lane] = state.vectors[
                wave, register + word, lane
            ]


@compiled
def _buffer_address(state: GroupState, wave: int, row: int, lane: int) -> tuple[int, int]:
    """A lane's address in a buffer, and how many bytes are in range from there on."""
    fields, scalars = state.rows[row], state.scalars[wave]
    resource, flags = fields[C], fields[FLAGS]
    word1, records, word3 = scalars[resource + 1], scalars[resource + 2], scalars[resource + 3]
    base = scalars[resource] | ((word1 & 0xFFFF) << 32)
    stride, swizzles = (word1 >> 16) & 0x3FFF, (word1 >> 31) & 1
    offset, index = fields[OFFSET], 0
    register = fields[A] - VECTOR
    if flags & ADDRESS_IDXEN:
        index = int64(state.vectors[wave, register, lane])
        register += 1
    if flags & ADDRESS_OFFEN:
        offset += int64(state.vectors[wave, register, lane])
    scalar = fields[OFFSET_1] if fields[D] == NONE else scalars[fields[D]]
    if (word3 >> 23) & 1:
        index += lane
    if swizzles:
        element, index_stride = 4, 8 << ((word3 >> 21) & 3)
        address = base + scalar + (index // index_stride) * stride * index_stride
        address += (offset // element) * index_stride * element
        address += (index % index_stride) * element + offset % element
        return address, 1 << 40
    offset += index * stride
    return base + scalar + offset, records - scalar - offset


@compiled
def issue_vector(state: GroupState, wave: int, row: int) -> None:
    """Puts an access to memory into its queue.

    Lanes out of a buffer's range get the address -1: they load zero and store
    nothing. A range may end within an access; then the rest is as out of range.
    """
    fields, scalars = state.rows[row], state.scalars[wave]
    flags = fields[FLAGS]
    slot = _slot(state, wave, VECTOR_QUEUE, row)
    execution = state.queue_execution[wave, VECTOR_QUEUE, slot]
    for lane in range(LANES):
        if not (execution >> lane) & 1:
            continue
        if flags & ADDRESS_BUFFER:
            address, left = _buffer_address(state, wave, row, lane)
            if left < fields[SIZE]:
                # The dwords that are in range stand in the low bits of a negative address.
                address = OUT_OF_RANGE if left < 4 else -(address << 3) - (left >> 2)
        elif flags & ADDRESS_SCRATCH:
            address = fields[OFFSET]
            if fields[A] != NONE:
                address += int64(state.vectors[wave, fields[A] - VECTOR, lane])
            if fields[C] != NONE:
                address += scalars[fields[C]]
            address = _scratch_address(state.settings, wave, address, lane, fields[SIZE])
        else:
            register = fields[A] - VECTOR
            address = int64(state.vectors[wave, register, lane])
            if fields[A_WIDTH] == 2:
                address |= int64(state.vectors[wave, register + 1, lane]) << 32
            if fields[C] != NONE:
                address += read_pair(scalars, fields[C])
            address += fields[OFFSET]
        state.queue_addresses[wave, VECTOR_QUEUE, slot, lane] = address
    if fields[B] != NONE:
        _take_data(state, wave, VECTOR_QUEUE, slot, row)
    if flags & TO_LDS:
        state.queue_data[wave, VECTOR_QUEUE, slot, 0, 0] = uint32(scalars[M0])


@compiled
def _scratch_address(settings: Integers, wave: int, offset: int, lane: int, size: int) -> int:
    """The address of a lane's private memory; a lane's bytes stand side by side."""
    limit = settings[SCRATCH_BYTES]
    if offset < 0 or offset + size > limit:
        return -(1 << 60)
    return settings[SCRATCH_BASE] + (wave * LANES + lane) * limit + offset


@compiled
def issue_lds(state: GroupState, wave: int, row: int) -> None:
    """Puts an access to LDS into its queue."""
    fields = state.rows[row]
    slot = _slot(state, wave, LDS_QUEUE, row)
    register = fields[A] - VECTOR
    for lane in range(LANES):
        state.queue_addresses[wave, LDS_QUEUE, slot, lane] = state.vectors[wave, register, lane]
    if fields[B] != NONE:
        _take_data(state, wave, LDS_QUEUE, slot, row)
    if fields[C] != NONE:
        words = fields[B_WIDTH]
        for word in range(words):
            for lane in range(LANES):
                state.queue_data[wave, LDS_QUEUE, slot, words + word, lane] = state.vectors[
                    wave, fields[C] - VECTOR + word, lane
                ]


@compiled
def issue_lds_lanes(state: GroupState, wave: int, row: int) -> None:
    """DS_BPERMUTE, DS_PERMUTE and DS_SWIZZLE: the results wait in the queue."""
    fields = state.rows[row]
    slot = _slot(state, wave, LDS_QUEUE, row)
    execution = state.queue_execution[wave, LDS_QUEUE, slot]
    out = state.queue_data[wave, LDS_QUEUE, slot, 0]
    operation, offset = fields[OPERATION], fields[OFFSET]
    first = fields[A] - VECTOR
    for lane in range(LANES):
        out[lane] = uint32(0)
    for lane in range(LANES):
        if operation == PERMUTE:
            if (execution >> lane) & 1:
                target = ((int64(state.vectors[wave, first, lane]) + offset) >> 2) & 63
                out[target] = state.vectors[wave, fields[B] - VECTOR, lane]
            continue
        if operation == BPERMUTE:
            source = ((int64(state.vectors[wave, first, lane]) + offset) >> 2) & 63
            value = state.vectors[wave, fields[B] - VECTOR, source]
        else:
            if offset & 0x8000:
                source = (lane & ~3) | ((offset >> (2 * (lane & 3))) & 3)
            else:
                low = lane & 31
                low = ((low & (offset & 31)) | ((offset >> 5) & 31)) ^ ((offset >> 10) & 31)
                source = (lane & 32) | low
            value = state.vectors[wave, first, source]
        if (execution >> source) & 1:
            out[lane] = value


@compiled
def issue_scalar(state: GroupState, wave: int, row: int) -> None:
    """Puts a scalar load into its queue."""
    fields, scalars = state.rows[row], state.scalars[wave]
    slot = _slot(state, wave, SCALAR_QUEUE, row)
    offset = fields[OFFSET]
    if fields[B] != NONE:
        offset += scalars[fields[B]]
    if fields[FLAGS] & ADDRESS_BUFFER:
        base = scalars[fields[A]] | ((scalars[fields[A] + 1] & 0xFFFF) << 32)
        state.queue_addresses[wave, SCALAR_QUEUE, slot, 1] = scalars[fields[A] + 2] - (offset & ~3)
    else:
        base = read_pair(scalars, fields[A])
    state.queue_addresses[wave, SCALAR_QUEUE, slot, 0] = (base + offset) & ~3
