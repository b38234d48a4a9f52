"""Memory instructions of a wave, in compiled code.

An access has two halves. *Issue* takes EXEC, the addresses and the data to be
stored from the registers, as the hardware does, and puts them into a queue.
*Landing* moves the data. In the fast mode an access lands at once; otherwise
when a wait covers it.
"""

from __future__ import annotations

import numpy as np

from verilocc_bench.machine.compiled import (
    compiled,
    float32_bits,
    float32_of,
    float64_bits,
    float64_of,
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
from verilocc_bench.machine.integer_operations import signed32
from verilocc_bench.machine.lanes import Numbers, read_pair
from verilocc_bench.machine.memory_decoding import BPERMUTE, PERMUTE
from verilocc_bench.machine.memory_opcodes import (
    ADD,
    ADD_F32,
    ADD_F64,
    AND,
    COMPARE_SWAP,
    DECREMENT,
    INCREMENT,
    MAX_F32,
    MAX_F64,
    MAX_SIGNED,
    MAX_UNSIGNED,
    MIN_F32,
    MIN_F64,
    MIN_SIGNED,
    MIN_UNSIGNED,
    OR,
    PACKED_ADD_BF16,
    REVERSE_SUBTRACT,
    SUBTRACT,
    SWAP,
    XOR,
)
from verilocc_bench.machine.number_formats import (
    float16_bits,
    float16_of,
    maximum32,
    maximum64,
    minimum32,
    minimum64,
)
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

__all__ = ["issue_lds", "issue_lds_lanes", "issue_scalar", "issue_vector", "land"]

_OUT_OF_RANGE = -1
LDS_LANES_ADDRESS = -2


@compiled
def _fault(state: GroupState, wave: int, kind: int, row: int, lane: int, address: int) -> None:
    if state.fault[FAULT_KIND] == 0:
        state.fault[FAULT_KIND] = kind
        state.fault[FAULT_ROW] = row
        state.fault[FAULT_LANE] = lane
        state.fault[FAULT_ADDRESS] = address
        state.fault[FAULT_WAVE] = wave


@compiled
def _place(
    state: GroupState, wave: int, row: int, lane: int, address: int, size: int, writes: bool
) -> int:
    """Where an address is in `memory`; -1, and a fault, where there is nothing."""
    for region in range(len(state.regions)):
        offset = address - state.regions[region, 0]
        if offset >= 0 and offset + size <= state.regions[region, 1]:
            if writes and not state.regions[region, 3]:
                _fault(state, wave, READ_ONLY, row, lane, address)
                return -1
            return state.regions[region, 2] + offset
    _fault(state, wave, OUTSIDE_MEMORY, row, lane, address)
    return -1


@compiled
def _load_bytes(memory: Numbers, place: int, size: int) -> int:
    """Up to four bytes as a number."""
    value = int64(memory[place])
    for byte in range(1, size):
        value |= int64(memory[place + byte]) << (8 * byte)
    return value


@compiled
def _store_bytes(memory: Numbers, place: int, size: int, value: int) -> None:
    for byte in range(size):
        memory[place + byte] = np.uint8((value >> (8 * byte)) & 0xFF)


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
            address = _scratch_address(state, wave, address, lane, fields[SIZE])
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
def _scratch_address(state: GroupState, wave: int, offset: int, lane: int, size: int) -> int:
    """The address of a lane's private memory; a lane's bytes stand side by side."""
    limit = state.settings[SCRATCH_BYTES]
    if offset < 0 or offset + size > limit:
        return -(1 << 60)
    return state.settings[SCRATCH_BASE] + (wave * LANES + lane) * limit + offset


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
        place = _place(state, wave, row, 0, address + 4 * word, 4, False)
        if place < 0:
            return
        state.scalars[wave, fields[RESULT] + word] = _load_bytes(state.memory, place, 4)


@compiled
def _loaded(
    state: GroupState, wave: int, register: int, lane: int, flags: int, size: int, value: int
) -> None:
    """Puts a loaded number into its register, extended or merged with what is there."""
    if flags & SIGNED:
        sign = 1 << (8 * size - 1)
        value = (value ^ sign) - sign
    old = int64(state.vectors[wave, register, lane])
    if flags & MERGES_LOW:
        value = (old & 0xFFFF_0000) | (value & 0xFFFF)
    elif flags & MERGES_HIGH:
        value = (old & 0xFFFF) | ((value & 0xFFFF) << 16)
    state.vectors[wave, register, lane] = uint32(value & 0xFFFF_FFFF)


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
            place = _place(state, wave, row, lane, address, min(size, in_range), writes)
            if place < 0:
                return
        if flags & ATOMIC:
            _atomic(state, wave, VECTOR_QUEUE, slot, row, lane, state.memory, place)
        elif flags & STORES:
            _store(state, wave, VECTOR_QUEUE, slot, row, lane, 0, state.memory, place, in_range)
        elif flags & TO_LDS:
            to = int64(state.queue_data[wave, VECTOR_QUEUE, slot, 0, 0]) + fields[OFFSET]
            to += lane * size
            if to + size > state.settings[LDS_LIMIT]:
                _fault(state, wave, OUTSIDE_LDS, row, lane, to)
                return
            for byte in range(size):
                state.lds[to + byte] = state.memory[place + byte] if in_range else np.uint8(0)
        else:
            _load(state, wave, row, lane, 0, state.memory, place, in_range)


@compiled
def _load(
    state: GroupState, wave: int, row: int, lane: int, first: int,
    memory: Numbers, place: int, in_range: int,
) -> None:  # fmt: skip
    """Loads a lane's bytes into its registers from number `first` on."""
    fields = state.rows[row]
    size, register = fields[SIZE], fields[RESULT] - VECTOR + first
    if size < 4:
        value = _load_bytes(memory, place, size) if in_range >= size else 0
        _loaded(state, wave, register, lane, fields[FLAGS], size, value)
        return
    for word in range(size // 4):
        value = 0
        if in_range >= 4 * word + 4:
            value = _load_bytes(memory, place + 4 * word, 4)
        state.vectors[wave, register + word, lane] = uint32(value)


@compiled
def _store(
    state: GroupState, wave: int, queue: int, slot: int, row: int, lane: int, first: int,
    memory: Numbers, place: int, in_range: int,
) -> None:  # fmt: skip
    """Stores a lane's data from word `first` on."""
    size, flags = state.rows[row, SIZE], state.rows[row, FLAGS]
    if size < 4:
        value = int64(state.queue_data[wave, queue, slot, first, lane])
        if flags & DATA_HIGH:
            value >>= 16
        if in_range >= size:
            _store_bytes(memory, place, size, value)
        return
    for word in range(size // 4):
        if in_range >= 4 * word + 4:
            value = int64(state.queue_data[wave, queue, slot, first + word, lane])
            _store_bytes(memory, place + 4 * word, 4, value)


@compiled
def _packed_sum(old: int, data: int, shift: int, is_bf16: bool) -> int:
    x, y = (old >> shift) & 0xFFFF, (data >> shift) & 0xFFFF
    if not is_bf16:
        return float16_bits(float16_of(x) + float16_of(y)) << shift
    bits = float32_bits(float32_of(x << 16) + float32_of(y << 16))
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return (rounded & 0xFFFF) << shift


@compiled
def _combined(operation: int, old: int, data: int, size: int) -> int:
    """What an atomic leaves in memory. Numbers of 32 bits are not negative."""
    x, y = old, data
    if size == 4:
        x, y = signed32(old), signed32(data)
    flip = -0x8000_0000_0000_0000
    if operation == ADD:
        return old + data
    if operation == SUBTRACT:
        return old - data
    if operation == REVERSE_SUBTRACT:
        return data - old
    if operation == SWAP:
        return data
    if operation == MIN_SIGNED:
        return old if x < y else data
    if operation == MAX_SIGNED:
        return old if x > y else data
    if operation == MIN_UNSIGNED:
        return old if (old ^ flip) < (data ^ flip) else data
    if operation == MAX_UNSIGNED:
        return old if (old ^ flip) > (data ^ flip) else data
    if operation == AND:
        return old & data
    if operation == OR:
        return old | data
    if operation == XOR:
        return old ^ data
    if operation == INCREMENT:
        return 0 if (old ^ flip) >= (data ^ flip) else old + 1
    if operation == DECREMENT:
        return data if old == 0 or (old ^ flip) > (data ^ flip) else old - 1
    if operation == ADD_F32:
        return float32_bits(float32_of(old) + float32_of(data))
    if operation == MIN_F32:
        return minimum32(old, data)
    if operation == MAX_F32:
        return maximum32(old, data)
    if operation == ADD_F64:
        return float64_bits(float64_of(old) + float64_of(data))
    if operation == MIN_F64:
        return minimum64(old, data)
    if operation == MAX_F64:
        return maximum64(old, data)
    is_bf16 = operation == PACKED_ADD_BF16
    return _packed_sum(old, data, 0, is_bf16) | _packed_sum(old, data, 16, is_bf16)


@compiled
def _atomic(
    state: GroupState, wave: int, queue: int, slot: int, row: int, lane: int,
    memory: Numbers, place: int,
) -> None:  # fmt: skip
    fields = state.rows[row]
    size, operation = fields[SIZE], fields[OPERATION]
    words = size // 4
    old = _load_bytes(memory, place, 4)
    data = int64(state.queue_data[wave, queue, slot, 0, lane])
    compared = int64(state.queue_data[wave, queue, slot, words, lane])
    if words == 2:
        old |= _load_bytes(memory, place + 4, 4) << 32
        data |= int64(state.queue_data[wave, queue, slot, 1, lane]) << 32
        compared |= int64(state.queue_data[wave, queue, slot, 3, lane]) << 32
    if operation == COMPARE_SWAP:
        new = data if old == compared else old
    else:
        new = _combined(operation, old, data, size)
    _store_bytes(memory, place, 4, new & 0xFFFF_FFFF)
    if words == 2:
        _store_bytes(memory, place + 4, 4, (new >> 32) & 0xFFFF_FFFF)
    if fields[FLAGS] & RETURNS:
        register = fields[RESULT] - VECTOR
        state.vectors[wave, register, lane] = uint32(old & 0xFFFF_FFFF)
        if words == 2:
            state.vectors[wave, register + 1, lane] = uint32((old >> 32) & 0xFFFF_FFFF)


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
                _fault(state, wave, OUTSIDE_LDS, row, lane, address)
                return
            if flags & ATOMIC:
                _atomic(state, wave, LDS_QUEUE, slot, row, lane, state.lds, address)
            elif flags & STORES:
                _store(
                    state, wave, LDS_QUEUE, slot, row, lane, part * words, state.lds, address,
                    1 << 40,
                )  # fmt: skip
            else:
                _load(state, wave, row, lane, part * words, state.lds, address, 1 << 40)
