"""Memory instructions of a wave, in compiled code.

An access has two halves. *Issue* takes EXEC, the addresses and the data to be
stored from the registers, as the hardware does, and puts them into a queue.
*Landing* moves the data. In the fast mode an access lands at once; otherwise
when a wait covers it.
"""

from __future__ import annotations

import numpy as np

from verilocc_bench.machine.atomics_step import do_atomic, load_bytes, store_bytes
from verilocc_bench.machine.compiled import (
    compiled,
    int64,
    uint32,
)
from verilocc_bench.machine.fields import (
    A_WIDTH,
    ADDRESS_BUFFER,
    ADDRESS_IDXEN,
    ADDRESS_OFFEN,
    ADDRESS_SCRATCH,
    ATOMIC,
    B_WIDTH,
    DATA_HIGH,
    EXEC,
    FLAGS,
    LANES,
    M0,
    MERGES_HIGH,
    MERGES_LOW,
    NONE,
    OFFSET,
    OFFSET_1,
    OPERATION,
    RESULT,
    RETURNS,
    SIGNED,
    SIZE,
    STORES,
    TO_LDS,
    TWO_PLACES,
    VECTOR,
    A,
    B,
    C,
    D,
)
from verilocc_bench.machine.lanes import Integers, Numbers, Registers, read_pair
from verilocc_bench.machine.memory_decoding import BPERMUTE, PERMUTE
from verilocc_bench.machine.state import (
    FAULT_ADDRESS,
    FAULT_KIND,
    FAULT_LANE,
    FAULT_ROW,
    FAULT_WAVE,
    LDS_LIMIT,
    LDS_QUEUE,
    OUTSIDE_LDS,
    OUTSIDE_MEMORY,
    READ_ONLY,
    SCALAR_QUEUE,
    SCRATCH_BASE,
    SCRATCH_BYTES,
    VECTOR_QUEUE,
    GroupState,
)

_OUT_OF_RANGE = -1
LDS_LANES_ADDRESS = -2


@compiled
def _fault(fault: Integers, wave: int, kind: int, row: int, lane: int, address: int) -> None:
    if fault[FAULT_KIND] == 0:
        fault[FAULT_KIND] = kind
        fault[FAULT_ROW] = row
        fault[FAULT_LANE] = lane
        fault[FAULT_ADDRESS] = address
        fault[FAULT_WAVE] = wave


@compiled
def _place(
    regions: Integers, fault: Integers, wave: int, row: int, lane: int, address: int, size: int,
    writes: bool,
) -> int:  # fmt: skip
    """Where an address is in `memory`; -1, and a fault, where there is nothing."""
    for region in range(len(regions)):
        offset = address - regions[region, 0]
        if offset >= 0 and offset + size <= regions[region, 1]:
            if writes and not regions[region, 3]:
                _fault(fault, wave, READ_ONLY, row, lane, address)
                return -1
            return regions[region, 2] + offset
    _fault(fault, wave, OUTSIDE_MEMORY, row, lane, address)
    return -1


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
                address = _OUT_OF_RANGE if left < 4 else -(address << 3) - (left >> 2)
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


@compiled
def land(state: GroupState, wave: int, queue: int, slot: int) -> None:
    """Does what an access in a queue asks for."""
    row = state.queue_rows[wave, queue, slot]
    if queue == SCALAR_QUEUE:
        _land_scalar(state, wave, slot, row)
    elif queue == VECTOR_QUEUE:
        _land_vector(state, wave, slot, row)
    elif state.rows[row, A + 0] != NONE and state.rows[row, SIZE] == 0:
        out = state.rows[row, RESULT] - VECTOR
        execution = state.queue_execution[wave, queue, slot]
        for lane in range(LANES):
            if (execution >> lane) & 1:
                state.vectors[wave, out, lane] = state.queue_data[wave, queue, slot, 0, lane]
    else:
        _land_lds(state, wave, slot, row)


@compiled
def _land_scalar(state: GroupState, wave: int, slot: int, row: int) -> None:
    fields = state.rows[row]
    address = state.queue_addresses[wave, SCALAR_QUEUE, slot, 0]
    left = state.queue_addresses[wave, SCALAR_QUEUE, slot, 1]
    for word in range(fields[SIZE] // 4):
        if fields[FLAGS] & ADDRESS_BUFFER and left < 4 * word + 4:
            state.scalars[wave, fields[RESULT] + word] = 0
            continue
        place = _place(state.regions, state.fault, wave, row, 0, address + 4 * word, 4, False)
        if place < 0:
            return
        state.scalars[wave, fields[RESULT] + word] = load_bytes(state.memory, place, 4)


@compiled
def _loaded(
    vectors: Registers, register: int, lane: int, flags: int, size: int, value: int
) -> None:
    """Puts a loaded number into its register, extended or merged with what is there."""
    if flags & SIGNED:
        sign = 1 << (8 * size - 1)
        value = (value ^ sign) - sign
    old = int64(vectors[register, lane])
    if flags & MERGES_LOW:
        value = (old & 0xFFFF_0000) | (value & 0xFFFF)
    elif flags & MERGES_HIGH:
        value = (old & 0xFFFF) | ((value & 0xFFFF) << 16)
    vectors[register, lane] = uint32(value & 0xFFFF_FFFF)


@compiled
def _land_vector(state: GroupState, wave: int, slot: int, row: int) -> None:
    fields = state.rows[row]
    flags, size = fields[FLAGS], fields[SIZE]
    execution = state.queue_execution[wave, VECTOR_QUEUE, slot]
    writes = bool(flags & (STORES | ATOMIC))
    for lane in range(LANES):
        if not (execution >> lane) & 1:
            continue
        address = state.queue_addresses[wave, VECTOR_QUEUE, slot, lane]
        in_range = 1 << 40
        if address == _OUT_OF_RANGE:
            in_range = 0
        elif -(1 << 60) < address < 0:
            in_range = 4 * (-address & 7)
            address = (-address) >> 3
        if in_range == 0 and flags & ATOMIC:
            if flags & RETURNS:
                for word in range(size // 4):
                    state.vectors[wave, fields[RESULT] - VECTOR + word, lane] = uint32(0)
            continue
        place = 0
        if in_range > 0:
            place = _place(
                state.regions, state.fault, wave, row, lane, address, min(size, in_range), writes
            )
            if place < 0:
                return
        if flags & ATOMIC:
            do_atomic(
                fields,
                state.vectors[wave],
                state.queue_data[wave, VECTOR_QUEUE, slot],
                lane,
                state.memory,
                place,
            )
        elif flags & STORES:
            _store(
                fields,
                state.queue_data[wave, VECTOR_QUEUE, slot],
                lane,
                0,
                state.memory,
                place,
                in_range,
            )
        elif flags & TO_LDS:
            to = int64(state.queue_data[wave, VECTOR_QUEUE, slot, 0, 0]) + fields[OFFSET]
            to += lane * size
            if to + size > state.settings[LDS_LIMIT]:
                _fault(state.fault, wave, OUTSIDE_LDS, row, lane, to)
                return
            for byte in range(size):
                state.lds[to + byte] = state.memory[place + byte] if in_range else np.uint8(0)
        else:
            _load(fields, state.vectors[wave], lane, 0, state.memory, place, in_range)


@compiled
def _load(
    fields: Integers, vectors: Registers, lane: int, first: int, memory: Numbers, place: int,
    in_range: int,
) -> None:  # fmt: skip
    """Loads a lane's bytes into its registers from number `first` on."""
    size, register = fields[SIZE], fields[RESULT] - VECTOR + first
    if size < 4:
        value = load_bytes(memory, place, size) if in_range >= size else 0
        _loaded(vectors, register, lane, fields[FLAGS], size, value)
        return
    for word in range(size // 4):
        value = 0
        if in_range >= 4 * word + 4:
            value = load_bytes(memory, place + 4 * word, 4)
        vectors[register + word, lane] = uint32(value)


@compiled
def _store(
    fields: Integers, data: Registers, lane: int, first: int, memory: Numbers, place: int,
    in_range: int,
) -> None:  # fmt: skip
    """Stores a lane's data from word `first` on."""
    size, flags = fields[SIZE], fields[FLAGS]
    if size < 4:
        value = int64(data[first, lane])
        if flags & DATA_HIGH:
            value >>= 16
        if in_range >= size:
            store_bytes(memory, place, size, value)
        return
    for word in range(size // 4):
        if in_range >= 4 * word + 4:
            store_bytes(memory, place + 4 * word, 4, int64(data[first + word, lane]))


@compiled
def _land_lds(state: GroupState, wave: int, slot: int, row: int) -> None:
    fields = state.rows[row]
    flags, size = fields[FLAGS], fields[SIZE]
    words = max(1, size // 4)
    execution = state.queue_execution[wave, LDS_QUEUE, slot]
    for lane in range(LANES):
        if not (execution >> lane) & 1:
            continue
        base = state.queue_addresses[wave, LDS_QUEUE, slot, lane]
        for part in range(2 if flags & TWO_PLACES else 1):
            address = (base + fields[OFFSET if part == 0 else OFFSET_1]) & 0xFFFF_FFFF
            if address + size > state.settings[LDS_LIMIT]:
                _fault(state.fault, wave, OUTSIDE_LDS, row, lane, address)
                return
            if flags & ATOMIC:
                do_atomic(
                    fields,
                    state.vectors[wave],
                    state.queue_data[wave, LDS_QUEUE, slot],
                    lane,
                    state.lds,
                    address,
                )
            elif flags & STORES:
                _store(
                    fields,
                    state.queue_data[wave, LDS_QUEUE, slot],
                    lane,
                    part * words,
                    state.lds,
                    address,
                    1 << 40,
                )
            else:
                _load(fields, state.vectors[wave], lane, part * words, state.lds, address, 1 << 40)
