"""Distances that the hardware does not keep by itself, in compiled code.

The compiler has to keep some instructions apart by others or by s_nop. The
rules here come from LLVM's hazard recognizer for gfx90a and gfx942
(llvm/lib/Target/AMDGPU/GCNHazardRecognizer.cpp: checkMAIHazards90A,
checkMAIVALUHazards, checkVALUHazards, checkVMEMHazards, checkDPPHazards,
checkDivFMasHazards, checkRWLaneHazards, checkReadM0Hazards), applied to the
instructions that were executed. What is read or overwritten too soon becomes
poison, and an event says so.

An instruction takes one wait state, `s_nop N` takes N + 1. A distance is the
number of wait states between two instructions.
"""

from __future__ import annotations

from verilocc_bench.machine.compiled import compiled, uint32
from verilocc_bench.machine.fields import (
    A_WIDTH,
    B_WIDTH,
    C_WIDTH,
    CARRY,
    COMPARE,
    EXEC,
    FIRST_CONSTANT,
    FLAGS,
    GROUP,
    IS_DIV_FMAS,
    IS_DOT,
    IS_DOUBLE_MATRIX,
    IS_DPP,
    IS_FMA_64,
    IS_LANE_ACCESS,
    IS_MATRIX,
    IS_MEMORY,
    IS_READ_LANE,
    IS_SALU,
    IS_TRANSCENDENTAL,
    IS_VALU,
    IS_VECTOR_MEMORY,
    IS_WIDE_STORE,
    IS_XDL,
    LANES,
    M0,
    NONE,
    PASSES,
    READS_M0,
    RESULT,
    RESULT_WIDTH,
    SECOND,
    TRAITS,
    VCC,
    VECTOR,
    WRITES_EXEC,
    WRITES_HALF,
    A,
    B,
    C,
)
from verilocc_bench.machine.lanes import Integers, Registers
from verilocc_bench.machine.matrix_distances import after_matrix, matrix_to_matrix
from verilocc_bench.machine.state import (
    ARCH_942,
    CLOCK,
    EVENTS,
    LAST_C_READ,
    LAST_C_READ_ROW,
    LAST_DOT,
    LAST_DOT_ROW,
    LAST_MATRIX,
    LAST_MATRIX_ROW,
    LAST_VALU,
    LAST_WIDE_STORE,
    LAST_WRITE,
    LAST_WRITE_TRAITS,
    MARK_DOUBLE_MATRIX,
    MARK_SPOILED,
    MATRIX_FIRST,
    PENDING,
    READ_IN_FLIGHT,
    SCALAR_PENDING,
    SCALAR_SALU,
    SCALAR_VALU,
    TOO_SOON,
    WRITTEN_IN_FLIGHT,
    GroupState,
)

NEVER = -1_000_000
"""The time of what has not happened."""


@compiled
def note_event(
    settings: Integers, events: Integers, kind: int, row: int, place: int, by: int, distance: int
) -> None:
    """Counts an event, and keeps the first ones."""
    count = settings[EVENTS]
    settings[EVENTS] = count + 1
    if count < len(events):
        events[count, 0] = kind
        events[count, 1] = row
        events[count, 2] = place
        events[count, 3] = by
        events[count, 4] = distance


@compiled
def poison_vectors(vectors: Registers, register: int, count: int, execution: int) -> None:
    """Fills registers of some lanes with NaNs that differ from one another."""
    for word in range(count):
        for lane in range(LANES):
            if (execution >> lane) & 1:
                noise = ((register + word) * 67 + lane * 13) & 0x1FF
                vectors[register + word, lane] = uint32(0x7FDE_7E00 | noise)


@compiled
def poison_scalars(scalars: Integers, place: int, count: int) -> None:
    """Fills scalar registers with numbers that are useless as a value or an address."""
    for word in range(count):
        scalars[place + word] = 0x7FDE_7E00 | ((place + word) & 0x1FF)


@compiled
def _poisoned(state: GroupState, wave: int, row: int, place: int, by: int, short: int) -> None:
    """A source that was read too soon."""
    note_event(state.settings, state.events, TOO_SOON, row, place, by, short)
    if place >= VECTOR:
        poison_vectors(state.vectors[wave], place - VECTOR, 1, -1)
    elif place < FIRST_CONSTANT:
        poison_scalars(state.scalars[wave], place, 1)


@compiled
def _check_matrix_sources(state: GroupState, wave: int, row: int, now: int) -> None:
    fields = state.rows[row]
    for slot in range(3):
        place = fields[A + 2 * slot]
        if place < VECTOR:
            continue
        for word in range(fields[A_WIDTH + 2 * slot]):
            register = place - VECTOR + word
            marks = state.vector_marks[wave, :, register]
            traits = marks[LAST_WRITE_TRAITS]
            since = now - marks[LAST_VALU]
            if since < 2 and traits & IS_VALU and not traits & (IS_MATRIX | IS_DOT):
                _poisoned(state, wave, row, place + word, -1, 2 - since)
            if marks[LAST_MATRIX] == NEVER:
                continue
            needed = matrix_to_matrix(state, wave, row, slot, register, place)
            since = now - marks[LAST_MATRIX]
            if since < needed:
                _poisoned(state, wave, row, place + word, marks[LAST_MATRIX_ROW], needed - since)


@compiled
def _check_vector_source(
    state: GroupState, wave: int, row: int, place: int, slot: int, now: int
) -> None:
    """A vector register that an ordinary or a memory instruction reads."""
    fields, newer = state.rows[row], state.settings[ARCH_942]
    traits = fields[TRAITS]
    marks = state.vector_marks[wave, :, place - VECTOR]
    if marks[LAST_MATRIX] != NEVER:
        writer = state.rows[marks[LAST_MATRIX_ROW]]
        needed = after_matrix(
            newer, writer[PASSES], writer[TRAITS] & IS_DOUBLE_MATRIX != 0,
            writer[TRAITS] & IS_XDL != 0, traits & IS_MEMORY != 0,
        )  # fmt: skip
        since = now - marks[LAST_MATRIX]
        if since < needed:
            _poisoned(state, wave, row, place, marks[LAST_MATRIX_ROW], needed - since)
    if marks[LAST_DOT] != NEVER and now - marks[LAST_DOT] < 3:
        same = state.rows[marks[LAST_DOT_ROW], 1] == fields[1] and traits & IS_DOT
        if not same or slot != 2:
            _poisoned(state, wave, row, place, marks[LAST_DOT_ROW], 3 - now + marks[LAST_DOT])
    since = now - marks[LAST_WRITE]
    written_by = marks[LAST_WRITE_TRAITS]
    if traits & IS_DPP and slot == 0 and since < 2:
        _poisoned(state, wave, row, place, -1, 2 - since)
    if newer and traits & IS_VALU and since < 1:
        late = written_by & WRITES_HALF or (
            written_by & IS_TRANSCENDENTAL and not traits & IS_TRANSCENDENTAL
        )
        if late or (traits & IS_READ_LANE and written_by & IS_VALU):
            _poisoned(state, wave, row, place, -1, 1 - since)
    if (
        not newer
        and traits & IS_MEMORY
        and state.wave_marks[wave, MARK_DOUBLE_MATRIX] > (marks[LAST_VALU])
        and now - marks[LAST_VALU] < 2
    ):
        _poisoned(state, wave, row, place, -1, 2)


@compiled
def _check_scalar_source(
    state: GroupState, wave: int, row: int, place: int, slot: int, now: int
) -> None:
    traits = state.rows[row, TRAITS]
    since = now - state.scalar_marks[wave, SCALAR_VALU, place]
    if traits & IS_VECTOR_MEMORY and since < 5:
        _poisoned(state, wave, row, place, -1, 5 - since)
    if traits & IS_LANE_ACCESS and slot == 1 and since < 4:
        _poisoned(state, wave, row, place, -1, 4 - since)
    if state.settings[ARCH_942] and traits & IS_VALU and since < 2:
        _poisoned(state, wave, row, place, -1, 2 - since)


@compiled
def _check_result(state: GroupState, wave: int, row: int, now: int) -> None:
    """Registers that are overwritten while a matrix instruction or a store still uses them."""
    fields, newer = state.rows[row], state.settings[ARCH_942]
    for word in range(fields[RESULT_WIDTH]):
        register = fields[RESULT] - VECTOR + word
        marks = state.vector_marks[wave, :, register]
        if marks[LAST_MATRIX] != NEVER:
            writer = state.rows[marks[LAST_MATRIX_ROW]]
            needed = after_matrix(
                newer, writer[PASSES], writer[TRAITS] & IS_DOUBLE_MATRIX != 0,
                writer[TRAITS] & IS_XDL != 0, False,
            )  # fmt: skip
            since = now - marks[LAST_MATRIX]
            if since < needed:
                # The matrix instruction writes last: its result stays.
                note_event(
                    state.settings, state.events, TOO_SOON, row, VECTOR + register,
                    marks[LAST_MATRIX_ROW], needed - since,
                )  # fmt: skip
                state.wave_marks[wave, MARK_SPOILED] = 1
        if marks[LAST_C_READ] != NEVER:
            passes = state.rows[marks[LAST_C_READ_ROW], PASSES]
            needed = 1 if passes == 2 else 3 if passes == 4 else 7 if passes == 8 else 15
            since = now - marks[LAST_C_READ]
            if since < needed:
                _spoil_matrix(state, wave, row, register, needed - since)
        if fields[TRAITS] & IS_VALU and now - marks[LAST_WIDE_STORE] < (2 if newer else 1):
            note_event(state.settings, state.events, TOO_SOON, row, VECTOR + register, -1, 1)
            state.wave_marks[wave, MARK_SPOILED] = 2


@compiled
def _spoil_matrix(state: GroupState, wave: int, row: int, register: int, short: int) -> None:
    """The result of the matrix instruction that still reads a register as C becomes poison."""
    reader = state.vector_marks[wave, LAST_C_READ_ROW, register]
    note_event(state.settings, state.events, TOO_SOON, row, VECTOR + register, reader, short)
    poison_vectors(
        state.vectors[wave],
        state.rows[reader, RESULT] - VECTOR,
        state.rows[reader, RESULT_WIDTH],
        -1,
    )


@compiled
def _check_flight(state: GroupState, wave: int, row: int) -> None:
    """Registers whose loads have not landed: reading them gives poison."""
    fields = state.rows[row]
    for slot in range(4):
        place = fields[A + 2 * slot]
        if place == NONE:
            continue
        for word in range(fields[A_WIDTH + 2 * slot]):
            if place >= VECTOR:
                by = state.vector_marks[wave, PENDING, place - VECTOR + word]
            elif place + word < FIRST_CONSTANT:
                by = state.scalar_marks[wave, SCALAR_PENDING, place + word]
            else:
                break
            if by:
                note_event(
                    state.settings, state.events, READ_IN_FLIGHT, row, place + word, by - 1, 0
                )
    place = fields[RESULT]
    if place == NONE:
        return
    for word in range(fields[RESULT_WIDTH]):
        if place >= VECTOR:
            by = state.vector_marks[wave, PENDING, place - VECTOR + word]
        else:
            by = state.scalar_marks[wave, SCALAR_PENDING, place + word]
        if by and not fields[TRAITS] & IS_MEMORY:
            note_event(
                state.settings, state.events, WRITTEN_IN_FLIGHT, row, place + word, by - 1, 0
            )


@compiled
def check_before(state: GroupState, wave: int, row: int) -> None:
    """Looks for registers in flight and for distances that are too short; makes them poison."""
    fields = state.rows[row]
    traits, now = fields[TRAITS], state.control[wave, CLOCK]
    _check_flight(state, wave, row)
    if traits & IS_MATRIX:
        if now - state.scalar_marks[wave, SCALAR_VALU, EXEC] < 4:
            note_event(state.settings, state.events, TOO_SOON, row, EXEC, -1, 4)
            poison_vectors(state.vectors[wave], fields[A] - VECTOR, 1, -1)
        _check_matrix_sources(state, wave, row, now)
        return
    if not traits & (IS_VALU | IS_MEMORY):
        return
    for slot in range(4):
        place = fields[A + 2 * slot]
        if place == NONE:
            continue
        for word in range(fields[A_WIDTH + 2 * slot]):
            if place >= VECTOR:
                _check_vector_source(state, wave, row, place + word, slot, now)
            elif place < FIRST_CONSTANT:
                _check_scalar_source(state, wave, row, place + word, slot, now)
    _check_implicit(state, wave, row, now)
    if fields[RESULT] >= VECTOR:
        _check_result(state, wave, row, now)


@compiled
def _check_implicit(state: GroupState, wave: int, row: int, now: int) -> None:
    """EXEC, VCC and M0 where no operand names them."""
    traits = state.rows[row, TRAITS]
    valu_wrote = state.scalar_marks[wave, SCALAR_VALU]
    if traits & IS_DIV_FMAS and now - valu_wrote[VCC] < 4:
        _poisoned(state, wave, row, VCC, -1, 4 - now + valu_wrote[VCC])
    if traits & IS_DPP and now - valu_wrote[EXEC] < 5:
        _poisoned(state, wave, row, state.rows[row, A], -1, 5)
    if state.settings[ARCH_942] and traits & IS_LANE_ACCESS and now - valu_wrote[EXEC] < 4:
        _poisoned(state, wave, row, state.rows[row, A], -1, 4)
    if traits & READS_M0 and now - state.scalar_marks[wave, SCALAR_SALU, M0] < 1:
        _poisoned(state, wave, row, M0, -1, 1)
    if traits & IS_FMA_64 and now - state.wave_marks[wave, MARK_DOUBLE_MATRIX] < 2:
        _poisoned(state, wave, row, state.rows[row, A], -1, 2)


@compiled
def _mark_vectors(state: GroupState, wave: int, row: int, after: int) -> None:
    fields = state.rows[row]
    traits = fields[TRAITS]
    for word in range(fields[RESULT_WIDTH]):
        marks = state.vector_marks[wave, :, fields[RESULT] - VECTOR + word]
        marks[LAST_WRITE], marks[LAST_WRITE_TRAITS] = after, traits
        if traits & IS_MATRIX:
            marks[LAST_MATRIX], marks[LAST_MATRIX_ROW] = after, row
            marks[MATRIX_FIRST] = fields[RESULT]
        else:
            marks[LAST_MATRIX] = NEVER
        if traits & IS_VALU and not traits & IS_MATRIX:
            marks[LAST_VALU] = after
        if traits & IS_DOT:
            marks[LAST_DOT], marks[LAST_DOT_ROW] = after, row
        else:
            marks[LAST_DOT] = NEVER


@compiled
def mark_after(state: GroupState, wave: int, row: int, after: int) -> None:
    """Remembers what an instruction wrote, and that its result is there from `after` on."""
    fields = state.rows[row]
    traits = fields[TRAITS]
    if fields[RESULT] >= VECTOR:
        _mark_vectors(state, wave, row, after)
    elif fields[RESULT] != NONE and traits & (IS_VALU | IS_SALU):
        kind = SCALAR_VALU if traits & IS_VALU else SCALAR_SALU
        for word in range(fields[RESULT_WIDTH]):
            state.scalar_marks[wave, kind, fields[RESULT] + word] = after
            if kind == SCALAR_SALU:
                state.scalar_marks[wave, SCALAR_VALU, fields[RESULT] + word] = NEVER
    if fields[GROUP] == CARRY:
        state.scalar_marks[wave, SCALAR_VALU, fields[SECOND]] = after
        state.scalar_marks[wave, SCALAR_VALU, fields[SECOND] + 1] = after
    if fields[GROUP] == COMPARE and fields[FLAGS] & WRITES_EXEC:
        state.scalar_marks[wave, SCALAR_VALU, EXEC] = after
        state.scalar_marks[wave, SCALAR_VALU, EXEC + 1] = after
    if traits & IS_MATRIX:
        if traits & IS_DOUBLE_MATRIX:
            state.wave_marks[wave, MARK_DOUBLE_MATRIX] = after
        elif fields[C] >= VECTOR and (not state.settings[ARCH_942] or traits & IS_XDL):
            for word in range(fields[C_WIDTH]):
                register = fields[C] - VECTOR + word
                state.vector_marks[wave, LAST_C_READ, register] = after
                state.vector_marks[wave, LAST_C_READ_ROW, register] = row
    if traits & IS_WIDE_STORE:
        for word in range(fields[B_WIDTH]):
            state.vector_marks[wave, LAST_WIDE_STORE, fields[B] - VECTOR + word] = after
