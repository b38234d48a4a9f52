"""The second half of memory instructions, in compiled code: what is in a queue moves its data."""

from __future__ import annotations

import numpy as np

from verilocc_bench.machine.atomics_step import do_atomic, load_bytes, store_bytes
from verilocc_bench.machine.compiled import compiled, int64, uint32
from verilocc_bench.machine.fields import (
    ADDRESS_BUFFER,
    ATOMIC,
    DATA_HIGH,
    FLAGS,
    LANES,
    NONE,
    OFFSET,
    OFFSET_1,
    RESULT,
    RETURNS,
    SIGNED,
    SIZE,
    STORES,
    TO_LDS,
    TWO_PLACES,
    VECTOR,
    A,
)
from verilocc_bench.machine.lanes import Integers, Numbers, Registers
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
    VECTOR_QUEUE,
    GroupState,
)

OUT_OF_RANGE = -1
"""The address of a lane outside a buffer."""

_UNLIMITED = 1 << 40
_SCALAR_LINE = 16
"""The bytes in range where no buffer resource limits them."""


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
    writes: bool, aligned: int,
) -> int:  # fmt: skip
    """Where an address is in `memory`; -1, and a fault, where there is nothing.

    A region can be accessed up to the next multiple of `aligned`, a power of two.
    """
    for region in range(len(regions)):
        offset = address - regions[region, 0]
        if offset >= 0 and offset + size <= (regions[region, 1] + aligned - 1) & -aligned:
            if writes and not regions[region, 3]:
                _fault(fault, wave, READ_ONLY, row, lane, address)
                return -1
            return regions[region, 2] + offset
    _fault(fault, wave, OUTSIDE_MEMORY, row, lane, address)
    return -1


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
        # LLVM loads three aligned words as four: no page ends between them.
        place = _place(
            state.regions, state.fault, wave, row, 0, address + 4 * word, 4, False, _SCALAR_LINE
        )
        if place < 0:
            return
        state.scalars[wave, fields[RESULT] + word] = load_bytes(state.memory, place, 4)


@compiled
def _loaded(
    vectors: Registers, register: int, lane: int, flags: int, size: int, value: int
) -> None:
    """Puts a loaded number into its register, extended."""
    if flags & SIGNED:
        sign = 1 << (8 * size - 1)
        value = (value ^ sign) - sign
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
        in_range = _UNLIMITED
        if address == OUT_OF_RANGE:
            in_range = 0
        elif -(1 << 60) < address < 0:
            # issue_vector marks an access that ends beyond its buffer: negated, with the number
            # of words within it in the low three bits.
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
                state.regions, state.fault, wave, row, lane, address, min(size, in_range), writes, 1
            )
            if place < 0:
                return
        if flags & TO_LDS:
            to = int64(state.queue_data[wave, VECTOR_QUEUE, slot, 0, 0]) + fields[OFFSET]
            to += lane * size
            if to + size > state.settings[LDS_LIMIT]:
                _fault(state.fault, wave, OUTSIDE_LDS, row, lane, to)
                return
            for byte in range(size):
                state.lds[to + byte] = state.memory[place + byte] if in_range else np.uint8(0)
            continue
        _transfer(
            fields, state.vectors[wave], state.queue_data[wave, VECTOR_QUEUE, slot], lane, 0,
            state.memory, place, in_range,
        )  # fmt: skip


@compiled
def _transfer(
    fields: Integers, vectors: Registers, data: Registers, lane: int, first: int, memory: Numbers,
    place: int, in_range: int,
) -> None:  # fmt: skip
    """Moves a lane's bytes between memory and registers, from register or data word `first` on."""
    flags = fields[FLAGS]
    if flags & ATOMIC:
        do_atomic(fields, vectors, data, lane, memory, place)
    elif flags & STORES:
        _store(fields, data, lane, first, memory, place, in_range)
    else:
        _load(fields, vectors, lane, first, memory, place, in_range)


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
            _transfer(
                fields, state.vectors[wave], state.queue_data[wave, LDS_QUEUE, slot], lane,
                part * words, state.lds, address, _UNLIMITED,
            )  # fmt: skip
