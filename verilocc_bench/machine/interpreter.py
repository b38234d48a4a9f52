"""The waves of a work-group, instruction by instruction, in compiled code."""

from __future__ import annotations

from verilocc_bench.machine.compiled import compiled
from verilocc_bench.machine.fields import (
    ACROSS_LANES,
    BRANCH,
    EXEC,
    FLAGS,
    GROUP,
    INTEGER,
    LANES,
    LDS,
    LDS_LANES,
    MATRIX,
    NONE,
    OFFSET,
    OFFSET_1,
    OPERATION,
    RESULT,
    RESULT_WIDTH,
    SCALAR_32,
    SCALAR_64,
    SCC,
    SELECT,
    SPECIAL,
    TARGET,
    VCC,
    VECTOR,
    VECTOR_MEMORY,
    WRITES_EXEC,
    A,
    B,
)
from verilocc_bench.machine.hazards import check_before, mark_after, poison_scalars, poison_vectors
from verilocc_bench.machine.landing_step import land
from verilocc_bench.machine.lanes import Integers, read_pair, write_pair
from verilocc_bench.machine.matrix_step import matrix_step
from verilocc_bench.machine.memory_step import (
    issue_lds,
    issue_lds_lanes,
    issue_scalar,
    issue_vector,
)
from verilocc_bench.machine.scalar_operations import scalar_operation_32, scalar_operation_64
from verilocc_bench.machine.special_decoding import BARRIER, END, WAIT
from verilocc_bench.machine.state import (
    AT_BARRIER,
    BAD_ROW,
    CLOCK,
    ENDED,
    EVERYWHERE,
    FAULT_KIND,
    FAULT_ROW,
    FAULT_WAVE,
    FAULTED,
    FIRST_WAVE,
    LDS_QUEUE,
    MARK_SPOILED,
    PC,
    PENDING,
    PHASE,
    QUEUE_ROOM,
    QUEUES,
    RUNNING,
    SCALAR_PENDING,
    SCALAR_QUEUE,
    STATUS,
    STEP_LIMIT,
    STOP_AT,
    STOP_SKIP,
    STOPPED,
    STRICT,
    TOO_MANY_STEPS,
    TOTAL_STEPS,
    VECTOR_QUEUE,
    WAVE_ORDER,
    GroupState,
    WaveOrder,
)
from verilocc_bench.machine.vector_step import across_lanes, vector_step

_FORWARD, _BACKWARD = int(WaveOrder.FORWARD), int(WaveOrder.BACKWARD)
_BACKWARD_FIRST = int(WaveOrder.BACKWARD_FIRST)
ALWAYS = 0
"""The kind of a branch that is always taken."""

_LDS_COUNTER, _VECTOR_COUNTER = 15, 63
"""The most that the counters hold: an instruction waits before they run over."""


@compiled
def _scalar_step(fields: Integers, scalars: Integers) -> None:
    a = scalars[fields[A]] if fields[A] != NONE else 0
    b = scalars[fields[B]] if fields[B] != NONE else 0
    if fields[GROUP] == SCALAR_32:
        old = scalars[fields[RESULT]] if fields[RESULT] != NONE else 0
        result, scc = scalar_operation_32(fields[OPERATION], a, b, old, scalars[SCC])
        if fields[RESULT] != NONE:
            scalars[fields[RESULT]] = result & 0xFFFF_FFFF
        scalars[SCC] = scc
        return
    if fields[A + 1] == 2:
        a = read_pair(scalars, fields[A])
    if fields[B] != NONE and fields[B + 1] == 2:
        b = read_pair(scalars, fields[B])
    execution = read_pair(scalars, EXEC)
    saves = fields[FLAGS] & WRITES_EXEC
    if saves:
        b = execution
    old = read_pair(scalars, fields[RESULT]) if fields[RESULT_WIDTH] == 2 else 0
    result, scc = scalar_operation_64(fields[OPERATION], a, b, old, scalars[SCC])
    if saves:
        write_pair(scalars, fields[RESULT], execution)
        write_pair(scalars, EXEC, result)
    elif fields[RESULT_WIDTH] == 2:
        write_pair(scalars, fields[RESULT], result)
    elif fields[RESULT_WIDTH] == 1:
        scalars[fields[RESULT]] = result & 0xFFFF_FFFF
    scalars[SCC] = scc


@compiled
def _takes_branch(scalars: Integers, kind: int) -> bool:
    if kind == ALWAYS:
        return True
    if kind == 1:
        return scalars[SCC] == 0
    if kind == 2:
        return scalars[SCC] != 0
    if kind == 3:
        return read_pair(scalars, VCC) == 0
    if kind == 4:
        return read_pair(scalars, VCC) != 0
    if kind == 5:
        return read_pair(scalars, EXEC) == 0
    return read_pair(scalars, EXEC) != 0


@compiled
def _mark_pending(
    fields: Integers, vector_marks: Integers, scalar_marks: Integers, mark: int
) -> None:
    """Marks the destination of a load as in flight (or no longer: 0)."""
    place = fields[RESULT]
    if place == NONE:
        return
    for word in range(fields[RESULT_WIDTH]):
        if place >= VECTOR:
            vector_marks[PENDING, place - VECTOR + word] = mark
        else:
            scalar_marks[SCALAR_PENDING, place + word] = mark


@compiled
def _land_oldest(state: GroupState, wave: int, queue: int) -> None:
    """Lands the oldest access of a queue, and moves the others up."""
    row = state.queue_rows[wave, queue, 0]
    _mark_pending(state.rows[row], state.vector_marks[wave], state.scalar_marks[wave], 0)
    land(state, wave, queue, 0)
    count = state.queue_sizes[wave, queue] - 1
    state.queue_sizes[wave, queue] = count
    for slot in range(count):
        state.queue_rows[wave, queue, slot] = state.queue_rows[wave, queue, slot + 1]
        state.queue_execution[wave, queue, slot] = state.queue_execution[wave, queue, slot + 1]
        # Numba compiles assignments of slices for all shapes and errors: loops take seconds less.
        for lane in range(LANES):
            state.queue_addresses[wave, queue, slot, lane] = state.queue_addresses[
                wave, queue, slot + 1, lane
            ]
            for word in range(4):
                state.queue_data[wave, queue, slot, word, lane] = state.queue_data[
                    wave, queue, slot + 1, word, lane
                ]
    # Landing has cleared the marks of its registers, which loads behind it may share.
    for slot in range(count):
        flying = state.queue_rows[wave, queue, slot]
        _mark_pending(
            state.rows[flying], state.vector_marks[wave], state.scalar_marks[wave], flying + 1
        )


@compiled
def _land_down_to(state: GroupState, wave: int, queue: int, limit: int) -> None:
    while state.queue_sizes[wave, queue] > limit:
        _land_oldest(state, wave, queue)


@compiled
def _wait(state: GroupState, wave: int, row: int) -> None:
    """s_waitcnt. Scalar loads return in any order: only a limit of 0 covers them."""
    _land_down_to(state, wave, VECTOR_QUEUE, state.rows[row, OFFSET])
    _land_down_to(state, wave, LDS_QUEUE, state.rows[row, OFFSET_1])
    if state.rows[row, OFFSET_1] == 0:
        _land_down_to(state, wave, SCALAR_QUEUE, 0)


@compiled
def _memory_step(state: GroupState, wave: int, row: int) -> None:
    group = state.rows[row, GROUP]
    if group == VECTOR_MEMORY:
        queue = VECTOR_QUEUE
        issue_vector(state, wave, row)
    elif group == LDS:
        queue = LDS_QUEUE
        issue_lds(state, wave, row)
    elif group == LDS_LANES:
        queue = LDS_QUEUE
        issue_lds_lanes(state, wave, row)
    else:
        queue = SCALAR_QUEUE
        issue_scalar(state, wave, row)
    if not state.settings[STRICT]:
        land(state, wave, queue, 0)
        state.queue_sizes[wave, queue] = 0
        return
    fields = state.rows[row]
    if fields[RESULT] >= VECTOR:
        execution = state.queue_execution[wave, queue, state.queue_sizes[wave, queue] - 1]
        poison_vectors(
            state.vectors[wave], fields[RESULT] - VECTOR, fields[RESULT_WIDTH], execution
        )
    elif fields[RESULT] != NONE:
        poison_scalars(state.scalars[wave], fields[RESULT], fields[RESULT_WIDTH])
    _mark_pending(fields, state.vector_marks[wave], state.scalar_marks[wave], row + 1)
    # A counter holds no more: the hardware waits until the oldest access has landed.
    limit = _LDS_COUNTER if queue == LDS_QUEUE else _VECTOR_COUNTER
    _land_down_to(state, wave, queue, min(limit, QUEUE_ROOM - 1))


@compiled
def _is_branch_always(rows: Integers, row: int) -> bool:
    return row < len(rows) and rows[row, GROUP] == BRANCH and rows[row, OPERATION] == ALWAYS


@compiled
def _control_step(state: GroupState, wave: int, row: int) -> int:
    """Branches, ends, barriers, waits and pauses. Gives the wave's status."""
    control, fields = state.control[wave], state.rows[row]
    control[CLOCK] += 1
    operation = fields[OPERATION]
    if fields[GROUP] == BRANCH:
        if _takes_branch(state.scalars[wave], operation):
            # LLVM counts an s_branch after a conditional one, though it is passed over.
            if operation != ALWAYS and _is_branch_always(state.rows, row + 1):
                control[CLOCK] += 1
            control[PC] = fields[TARGET]
        return RUNNING
    if operation == BARRIER:
        return AT_BARRIER
    if operation == END:
        for queue in range(QUEUES):
            _land_down_to(state, wave, queue, 0)
    elif operation != WAIT:
        control[CLOCK] += fields[OFFSET]
    elif state.settings[STRICT]:
        _wait(state, wave, row)
    if state.fault[FAULT_KIND]:
        return FAULTED
    return ENDED if operation == END else RUNNING


@compiled
def _compute_step(state: GroupState, wave: int, row: int) -> int:
    """All other instructions. Gives the wave's status."""
    fields, strict = state.rows[row], state.settings[STRICT] != 0
    group = fields[GROUP]
    if strict:
        state.wave_marks[wave, MARK_SPOILED] = 0
        check_before(state, wave, row)
    if group == SCALAR_32 or group == SCALAR_64:
        _scalar_step(fields, state.scalars[wave])
    elif INTEGER <= group <= SELECT:
        vector_step(
            fields, state.scalars[wave], state.vectors[wave], state.sources, state.results,
            state.spare,
        )  # fmt: skip
    elif group == ACROSS_LANES:
        across_lanes(fields, state.scalars[wave], state.vectors[wave])
    elif group == MATRIX:
        matrix_step(
            fields, state.scalars[wave], state.vectors[wave], state.left, state.right,
            state.matrix_results, state.total,
        )  # fmt: skip
    else:
        _memory_step(state, wave, row)
        if state.fault[FAULT_KIND]:
            return FAULTED
    clock = state.control[wave, CLOCK] + 1
    if strict:
        if state.wave_marks[wave, MARK_SPOILED] and fields[RESULT] >= VECTOR:
            poison_vectors(state.vectors[wave], fields[RESULT] - VECTOR, fields[RESULT_WIDTH], -1)
        mark_after(state, wave, row, clock)
    state.control[wave, CLOCK] = clock
    return RUNNING


@compiled
def _stops_before(settings: Integers, row: int) -> bool:
    """True where a wave is to stop; an instruction that it has stopped at is let through once."""
    if settings[STOP_AT] != row and settings[STOP_AT] != EVERYWHERE:
        return False
    if settings[STOP_SKIP] == 0:
        return True
    settings[STOP_SKIP] -= 1
    return False


@compiled
def _run_wave(state: GroupState, wave: int) -> None:
    """Runs a wave until it ends, comes to a barrier, stops or fails."""
    control, settings = state.control[wave], state.settings
    status = RUNNING
    while status == RUNNING:
        row = control[PC]
        if row < 0 or row >= len(state.rows):
            control[STATUS] = FAULTED
            state.fault[FAULT_KIND], state.fault[FAULT_WAVE] = BAD_ROW, wave
            return
        if _stops_before(settings, row):
            control[STATUS] = STOPPED
            return
        settings[TOTAL_STEPS] += 1
        if settings[TOTAL_STEPS] > settings[STEP_LIMIT]:
            control[STATUS] = FAULTED
            state.fault[FAULT_KIND], state.fault[FAULT_ROW] = TOO_MANY_STEPS, row
            state.fault[FAULT_WAVE] = wave
            return
        state.counts[row] += 1
        control[PC] = row + 1
        group = state.rows[row, GROUP]
        if group == SPECIAL or group == BRANCH:
            status = _control_step(state, wave, row)
        else:
            status = _compute_step(state, wave, row)
    control[STATUS] = status


@compiled
def _turns_backwards(order: int, phase: int) -> bool:
    """True if the last wave has the first turn between two barriers."""
    if order == _FORWARD or order == _BACKWARD:
        return order == _BACKWARD
    return (phase & 1 == 0) == (order == _BACKWARD_FIRST)


@compiled
def run_work_group(state: GroupState) -> int:
    """Runs all waves of a work-group, each until its next barrier, in turn.

    WAVE_ORDER and FIRST_WAVE say in which order, PHASE how many barriers the group has
    passed.
    Gives ENDED, FAULTED or STOPPED.
    """
    waves = len(state.control)
    settings = state.settings
    while True:
        waiting = 0
        backwards = _turns_backwards(settings[WAVE_ORDER], settings[PHASE])
        for turn in range(waves):
            place = waves - 1 - turn if backwards else turn
            wave = (place + settings[FIRST_WAVE]) % waves
            if state.control[wave, STATUS] == RUNNING:
                _run_wave(state, wave)
            status = state.control[wave, STATUS]
            if status == FAULTED or status == STOPPED:
                return status
            if status == AT_BARRIER:
                waiting += 1
        if waiting == 0:
            return ENDED
        settings[PHASE] += 1
        for wave in range(waves):
            if state.control[wave, STATUS] == AT_BARRIER:
                state.control[wave, STATUS] = RUNNING
