"""What a running work-group consists of, as arrays for compiled code."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.machine.fields import LANES, SCALARS, VECTORS
from verilocc_bench.machine.lanes import Integers, Numbers, Registers
from verilocc_bench.machine.matrix_step import MATRIX_NUMBERS

QUEUES = 3
(VECTOR_QUEUE, LDS_QUEUE, SCALAR_QUEUE) = range(QUEUES)
QUEUE_ROOM = 64
"""Accesses of one kind in flight in a wave. The counters hold fewer."""

(PC, STATUS, CLOCK, STEPS) = range(4)
CONTROL_FIELDS = 8
(RUNNING, AT_BARRIER, ENDED, FAULTED, STOPPED) = range(5)

(
    STRICT,
    STEP_LIMIT,
    LDS_LIMIT,
    SCRATCH_BYTES,
    SCRATCH_BASE,
    EVENTS,
    STOP_AT,
    STOP_SKIP,
    ARCH_942,
    TOTAL_STEPS,
    WAVE_ORDER,
    PHASE,
    FIRST_WAVE,
) = range(13)
SETTINGS = 16
EVERYWHERE = -2
"""As STOP_AT: waves stop before each instruction."""

(FAULT_KIND, FAULT_ROW, FAULT_LANE, FAULT_ADDRESS, FAULT_WAVE) = range(5)
FAULT_FIELDS = 5
(OUTSIDE_MEMORY, READ_ONLY, OUTSIDE_LDS, TOO_MANY_STEPS, BAD_ROW, BARRIER_LEFT) = range(1, 7)

(EVENT_KIND, EVENT_ROW, EVENT_PLACE, EVENT_BY, EVENT_DISTANCE) = range(5)
EVENT_FIELDS = 5
EVENT_ROOM = 256
(READ_IN_FLIGHT, WRITTEN_IN_FLIGHT, TOO_SOON) = range(3)

(
    LAST_WRITE,
    LAST_WRITE_TRAITS,
    LAST_MATRIX,
    LAST_MATRIX_ROW,
    LAST_C_READ,
    LAST_C_READ_ROW,
    LAST_WIDE_STORE,
    PENDING,
    LAST_DOT,
    LAST_VALU,
    MATRIX_FIRST,
    LAST_DOT_ROW,
) = range(12)
VECTOR_MARKS = 12
(SCALAR_VALU, SCALAR_SALU, SCALAR_PENDING) = range(3)
SCALAR_MARKS = 3
(MARK_DOUBLE_MATRIX, MARK_SPOILED) = range(2)


class WaveOrder(IntEnum):
    """Which wave of a work-group runs first after each barrier: the first or the last one.

    The last two alternate. Which wave counts as the first one can be chosen, too
    (FIRST_WAVE): the others follow in a circle. Where several waves write the same bytes, a
    wave that has read too early must also be the last one to write.
    """

    FORWARD = 0
    BACKWARD = 1
    FORWARD_FIRST = 2
    BACKWARD_FIRST = 3


class GroupState(NamedTuple):
    """The arrays of a work-group.

    `scalars` (waves, SCALARS), `vectors` (waves, VECTORS, 64); `lds` and
    `memory` are bytes. `regions` has base, size, place in `memory` and whether
    it may be written, for each piece of memory that there is. The queues hold
    accesses that are in flight, by wave and kind: the instruction's row, EXEC,
    the address of each lane (or -1), the data to be stored. The marks say when
    each register was last written, and by what, for the hazard rules.
    """

    rows: Integers
    scalars: Integers
    vectors: Registers
    lds: Numbers
    memory: Numbers
    regions: Integers
    control: Integers
    settings: Integers
    counts: Integers
    fault: Integers
    events: Integers
    queue_sizes: Integers
    queue_rows: Integers
    queue_execution: Integers
    queue_addresses: Integers
    queue_data: Registers
    vector_marks: Integers
    scalar_marks: Integers
    wave_marks: Integers
    sources: Integers
    results: Integers
    spare: Integers
    left: Numbers
    right: Numbers
    matrix_results: Integers
    total: Numbers


def new_state(
    rows: NDArray[np.int64],
    memory: NDArray[np.uint8],
    regions: NDArray[np.int64],
    waves: int,
    lds_bytes: int,
) -> GroupState:
    """Arrays for work-groups of this number of waves, with nothing in them yet."""
    integers = np.int64
    return GroupState(
        rows=rows,
        scalars=np.zeros((waves, SCALARS), integers),
        vectors=np.zeros((waves, VECTORS, LANES), np.uint32),
        lds=np.zeros(max(lds_bytes, 1), np.uint8),
        memory=memory,
        regions=regions,
        control=np.zeros((waves, CONTROL_FIELDS), integers),
        settings=np.zeros(SETTINGS, integers),
        counts=np.zeros(len(rows), integers),
        fault=np.zeros(FAULT_FIELDS, integers),
        events=np.zeros((EVENT_ROOM, EVENT_FIELDS), integers),
        queue_sizes=np.zeros((waves, QUEUES), integers),
        queue_rows=np.zeros((waves, QUEUES, QUEUE_ROOM), integers),
        queue_execution=np.zeros((waves, QUEUES, QUEUE_ROOM), integers),
        queue_addresses=np.zeros((waves, QUEUES, QUEUE_ROOM, LANES), integers),
        queue_data=np.zeros((waves, QUEUES, QUEUE_ROOM, 4, LANES), np.uint32),
        vector_marks=np.zeros((waves, VECTOR_MARKS, VECTORS), integers),
        scalar_marks=np.zeros((waves, SCALAR_MARKS, SCALARS), integers),
        wave_marks=np.zeros((waves, 2), integers),
        sources=np.zeros((4, LANES), integers),
        results=np.zeros((2, LANES), integers),
        spare=np.zeros(LANES, integers),
        left=np.zeros(MATRIX_NUMBERS, np.float64),
        right=np.zeros(MATRIX_NUMBERS, np.float64),
        matrix_results=np.zeros(MATRIX_NUMBERS, integers),
        total=np.zeros(LANES, np.float64),
    )
