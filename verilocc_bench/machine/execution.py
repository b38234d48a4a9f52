"""Machine code of gfx90a and gfx942, executed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.errors import InputError
from verilocc_bench.machine.code_object import CodeObject, KernelCode, load_code_object
from verilocc_bench.machine.decoding import Program, decode
from verilocc_bench.machine.disassembly import CodeInstruction, disassemble
from verilocc_bench.machine.fields import (
    ACCUMULATORS,
    AS_FLOAT_32,
    CLAMP,
    EXEC,
    FORMAT_SHIFT,
    OUTPUT_SHIFT,
    RESULT_MODIFIERS,
    VCC,
    VECTOR,
)
from verilocc_bench.machine.hazards import NEVER
from verilocc_bench.machine.interpreter import run_work_group
from verilocc_bench.machine.launch import (
    Argument,
    LaunchMemory,
    LaunchSize,
    check_support,
    first_row,
    lay_out_memory,
    start_group,
)
from verilocc_bench.machine.mode_decoding import flushes_denormals
from verilocc_bench.machine.state import (
    ARCH_942,
    BAD_ROW,
    CLOCK,
    ENDED,
    EVENTS,
    FIRST_WAVE,
    LAST_C_READ,
    LAST_DOT,
    LAST_MATRIX,
    LAST_VALU,
    LAST_WIDE_STORE,
    LAST_WRITE,
    LDS_LIMIT,
    OUTSIDE_LDS,
    OUTSIDE_MEMORY,
    PC,
    PHASE,
    READ_IN_FLIGHT,
    READ_ONLY,
    SCALAR_SALU,
    SCALAR_VALU,
    SCRATCH_BASE,
    SCRATCH_BYTES,
    STEP_LIMIT,
    STOP_AT,
    STRICT,
    TOO_MANY_STEPS,
    TOTAL_STEPS,
    WAVE_ORDER,
    WRITTEN_IN_FLIGHT,
    GroupState,
    WaveOrder,
    new_state,
)

_VECTOR_REGISTER = re.compile(r"\b([va])(?:(\d+)|\[(?:\d+:)?(\d+)\])")
LDS_BYTES = 65_536
"""The LDS of a compute unit; a kernel's own share is not always in its descriptor."""

STEP_LIMIT_DEFAULT = 200_000_000


class Fault(InputError):
    """Execution cannot go on: the message names instruction, lane and address.

    `kind` is `memory`, `read-only`, `lds`, `steps` or `address`.
    """

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Event:
    """A register that was read or written while a load was in flight, or too soon.

    `kind` is `read in flight`, `written in flight` or `too soon`; `by` is the
    instruction whose result it was, None where only its kind is known;
    `missing` the wait states that are missing.
    """

    kind: str
    instruction: CodeInstruction
    register: str
    by: CodeInstruction | None
    missing: int

    def __str__(self) -> str:
        by = "" if self.by is None else f" (from 0x{self.by.address:x}: {self.by.text})"
        short = f", {self.missing} wait states short" if self.missing else ""
        return (
            f"0x{self.instruction.address:x}: {self.instruction.text}: {self.register} "
            f"{self.kind}{by}{short}"
        )


@dataclass(frozen=True, slots=True)
class MachineExecution:
    """What came of it.

    `buffers` has the final content of each argument that is an array (else
    None), in the order of the arguments; `counts[n]` says how often instruction
    n of the program was executed by all waves. `events` are the first of
    `event_count`; without asynchronous time there are none.
    """

    buffers: tuple[NDArray[Any] | None, ...]
    counts: NDArray[np.int64]
    events: tuple[Event, ...]
    event_count: int
    wave_instructions: int


class RunnableKernel:
    """A kernel, decoded and ready to run."""

    def __init__(self, code: KernelCode, program: Program) -> None:
        check_support(code)
        self.code, self.program = code, program

    @cached_property
    def start(self) -> int:
        """The row where execution begins."""
        return first_row(self.code, self.program)

    def run(
        self,
        arguments: Sequence[Argument],
        grid: Sequence[int],
        *,
        block: Sequence[int] | None = None,
        lds_bytes: int = LDS_BYTES,
        asynchronous: bool = False,
        order: WaveOrder = WaveOrder.FORWARD,
        first_wave: int = 0,
        step_limit: int = STEP_LIMIT_DEFAULT,
        groups: Iterable[tuple[int, int, int]] | None = None,
    ) -> MachineExecution:
        """Runs all work-groups of the grid, or only those named, one after the other.

        See `run`.
        """
        launch = launch_size(self.code, grid, block)
        memory, state = self.prepare(arguments, launch, lds_bytes)
        settings = state.settings
        settings[STRICT], settings[STEP_LIMIT] = int(asynchronous), step_limit
        settings[WAVE_ORDER], settings[FIRST_WAVE] = order, first_wave
        width, height, depth = launch.grid
        chosen = (
            ((z, y, x) for z in range(depth) for y in range(height) for x in range(width))
            if groups is None
            else ((z, y, x) for x, y, z in groups)
        )
        for z, y, x in chosen:
            self.start_group(memory, state, (x, y, z))
            if run_work_group(state) != ENDED:
                raise self.fault(state, (x, y, z))
        return MachineExecution(
            tuple(
                None if place is None else _as_array(memory.data[place], argument)
                for place, argument in zip(memory.places, arguments, strict=True)
            ),
            state.counts,
            self._events(state),
            int(settings[EVENTS]),
            int(settings[TOTAL_STEPS]),
        )

    def prepare(
        self, arguments: Sequence[Argument], launch: LaunchSize, lds_bytes: int
    ) -> tuple[LaunchMemory, GroupState]:
        """Memory with the arguments in it, and the state of the work-groups to come."""
        memory = lay_out_memory(self.code, arguments, launch)
        rows = self.program.rows
        state = new_state(rows, memory.data, memory.regions, launch.waves, lds_bytes)
        settings = state.settings
        settings[STEP_LIMIT], settings[LDS_LIMIT] = STEP_LIMIT_DEFAULT, lds_bytes
        settings[STOP_AT], settings[ARCH_942] = -1, int(self.code.arch == "gfx942")
        settings[SCRATCH_BYTES] = self.code.descriptor.scratch_bytes
        settings[SCRATCH_BASE] = memory.scratch
        return memory, state

    def start_group(
        self, memory: LaunchMemory, state: GroupState, group: tuple[int, int, int]
    ) -> None:
        """Sets up registers and LDS as the hardware does when a work-group starts."""
        state.settings[PHASE] = 0
        state.control[:, :] = 0
        state.control[:, PC] = self.start
        state.queue_sizes[:, :] = 0
        state.lds[:] = 0xDE
        state.control[:, CLOCK] = 0
        if state.settings[STRICT]:
            state.vector_marks[:, :, :] = 0
            for mark in (
                LAST_WRITE, LAST_MATRIX, LAST_C_READ, LAST_WIDE_STORE, LAST_DOT, LAST_VALU,
            ):  # fmt: skip
                state.vector_marks[:, mark, :] = NEVER
            state.scalar_marks[:, :, :] = 0
            state.scalar_marks[:, SCALAR_VALU, :] = NEVER
            state.scalar_marks[:, SCALAR_SALU, :] = NEVER
            state.wave_marks[:, :] = NEVER
        start_group(self.code, self.program.constants, memory, group, state)

    def fault(self, state: GroupState, group: tuple[int, int, int]) -> Fault:
        """The fault at which a work-group stopped."""
        kind, row, lane, address, wave = (int(number) for number in state.fault)
        where = f"work-group {group}, wave {wave}"
        if kind == BAD_ROW:
            return Fault(f"{self.code.name}: {where} runs past the end of the code", "address")
        instruction = self.program.instructions[row]
        place = f"{self.code.name}: 0x{instruction.address:x}: {instruction.text!r}, {where}"
        if kind == TOO_MANY_STEPS:
            return Fault(f"{place}: more instructions than the limit", "steps")
        what, name = {
            OUTSIDE_MEMORY: ("outside every argument's memory", "memory"),
            READ_ONLY: ("read-only memory", "read-only"),
            OUTSIDE_LDS: ("outside the LDS", "lds"),
        }[kind]
        return Fault(f"{place}, lane {lane}: address 0x{address % 2**64:x} is {what}", name)

    def _events(self, state: GroupState) -> tuple[Event, ...]:
        names = {READ_IN_FLIGHT: "read in flight", WRITTEN_IN_FLIGHT: "written in flight"}
        count = min(int(state.settings[EVENTS]), len(state.events))
        instructions = self.program.instructions
        return tuple(
            Event(
                names.get(int(kind), "too soon"),
                instructions[row],
                register_name(int(place)),
                instructions[by] if by >= 0 else None,
                int(distance),
            )
            for kind, row, place, by, distance in state.events[:count]
        )


def register_name(place: int) -> str:
    """The assembler's name of a register."""
    if place >= VECTOR + ACCUMULATORS:
        return f"a{place - VECTOR - ACCUMULATORS}"
    if place >= VECTOR:
        return f"v{place - VECTOR}"
    special = {VCC: "vcc_lo", VCC + 1: "vcc_hi", EXEC: "exec_lo", EXEC + 1: "exec_hi", 124: "m0"}
    return special.get(place, f"s{place}")


def _as_array(content: NDArray[np.uint8], argument: Argument) -> NDArray[Any]:
    assert isinstance(argument, np.ndarray)
    return np.frombuffer(content.tobytes(), argument.dtype).reshape(argument.shape)


def launch_size(code: KernelCode, grid: Sequence[int], block: Sequence[int] | None) -> LaunchSize:
    """A launch of a kernel. Raises InputError for numbers that no hardware takes."""

    def three(numbers: Sequence[int]) -> tuple[int, int, int]:
        x, y, z = (*(int(number) for number in numbers), 1, 1, 1)[:3]
        if min(x, y, z) < 1 or list(numbers) != [x, y, z][: len(numbers)]:
            what = "one to three positive numbers of work-groups or items"
            raise InputError(f"expected {what}, got {numbers}")
        return x, y, z

    items = three(block) if block is not None else (code.largest_work_group, 1, 1)
    if items[0] * items[1] * items[2] > code.largest_work_group:
        most = code.largest_work_group
        raise InputError(f"a work-group of {code.name} has at most {most} work-items, got {items}")
    groups = three(grid)
    if any(count * size >= 1 << 32 for count, size in zip(groups, items, strict=True)):
        raise InputError(f"a dispatch has fewer than 2^32 work-items a dimension, got {groups}")
    return LaunchSize(groups, items)


def load_kernel(
    code_object: bytes | Path | CodeObject, kernel: str | None = None
) -> RunnableKernel:
    """A kernel of a code object, decoded. Raises InputError with the first instruction, modifier
    or operand that is not supported."""
    if isinstance(code_object, Path):
        code_object = code_object.read_bytes()
    if isinstance(code_object, bytes):
        code_object = load_code_object(code_object)
    code = code_object.kernel(kernel)
    flushes = flushes_denormals(code.descriptor.float_mode)
    instructions = disassemble(code_object.data, code)
    _check_registers(code, instructions)
    ieee = code.descriptor.ieee
    program = decode(instructions, code.arch, flushes=flushes, ieee=ieee)
    if not code.descriptor.dx10_clamp and (program.rows[:, RESULT_MODIFIERS] & CLAMP).any():
        raise InputError(f"kernel {code.name} clamps NaNs to NaN, which is not supported")
    changed = program.rows[:, RESULT_MODIFIERS]
    changed = changed[changed >> OUTPUT_SHIFT & 3 != 0]
    if len(changed) and (ieee or not flushes or (changed >> FORMAT_SHIFT & 3 != AS_FLOAT_32).any()):
        told = "omod has no effect in IEEE mode, or where denormals are kept"
        raise InputError(f"kernel {code.name}: {told}")
    return RunnableKernel(code, program)


def _check_registers(code: KernelCode, instructions: Sequence[CodeInstruction]) -> None:
    """Raises InputError for a vector register beyond those that the descriptor asks for."""
    count, vectors = code.descriptor.vector_registers, code.descriptor.accumulator_offset
    room = {"v": min(count, vectors), "a": max(count - vectors, 0)}
    for each in instructions:
        for file, one, last in _VECTOR_REGISTER.findall(" ".join(each.operands)):
            if int(one or last) >= room[file]:
                raise InputError(
                    f"kernel {code.name}: {each.text!r}, at 0x{each.address:x}: its descriptor "
                    f"has {room[file]} registers {file}"
                )


def run(
    code_object: bytes | Path | CodeObject,
    kernel: str | None,
    arguments: Sequence[Argument],
    grid: Sequence[int],
    *,
    block: Sequence[int] | None = None,
    lds_bytes: int = LDS_BYTES,
    asynchronous: bool = False,
    order: WaveOrder = WaveOrder.FORWARD,
    first_wave: int = 0,
    step_limit: int = STEP_LIMIT_DEFAULT,
) -> MachineExecution:
    """Runs a kernel over a grid of work-groups.

    An argument is an array, whose memory the kernel sees, or a number; trailing
    ones may be left out and are zero. `block` is the size of a work-group, by
    default the largest that the kernel allows. With `asynchronous` time is made
    adversarial: results of loads land only at the wait that covers them, and
    a value that is read too soon is poison. `order` and `first_wave` say in which order the
    waves of a work-group run between two barriers.

    Raises InputError for what is not supported, before anything runs, and Fault
    for memory outside the arguments.
    """
    return load_kernel(code_object, kernel).run(
        arguments, grid, block=block, lds_bytes=lds_bytes, asynchronous=asynchronous,
        order=order, first_wave=first_wave, step_limit=step_limit,
    )  # fmt: skip
