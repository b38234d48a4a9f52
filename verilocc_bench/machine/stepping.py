"""Execution with stops: the registers of a wave before it executes an instruction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.errors import InputError
from verilocc_bench.machine.execution import LDS_BYTES, RunnableKernel, launch_size
from verilocc_bench.machine.fields import ACCUMULATORS, EXEC, SCC, VCC
from verilocc_bench.machine.interpreter import run_work_group
from verilocc_bench.machine.launch import Argument
from verilocc_bench.machine.state import (
    ENDED,
    EVERYWHERE,
    FAULTED,
    PC,
    RUNNING,
    STATUS,
    STOP_AT,
    STOP_SKIP,
    STOPPED,
    STRICT,
    GroupState,
)


@dataclass(frozen=True, slots=True)
class WaveRegisters:
    """The registers of one wave at an instruction."""

    scalars: NDArray[np.uint32]
    vectors: NDArray[np.uint32]
    accumulators: NDArray[np.uint32]
    execution: int
    vcc: int
    scc: int

    @classmethod
    def of_wave(cls, state: GroupState, wave: int) -> WaveRegisters:
        """A copy of what the registers of a wave hold now."""
        scalars = state.scalars[wave].astype(np.uint32)
        return cls(
            scalars[:102],
            state.vectors[wave, :ACCUMULATORS].copy(),
            state.vectors[wave, ACCUMULATORS:].copy(),
            int(scalars[EXEC]) | int(scalars[EXEC + 1]) << 32,
            int(scalars[VCC]) | int(scalars[VCC + 1]) << 32,
            int(scalars[SCC]),
        )


class SteppedRun:
    """A run of work-groups that stops before each instruction, or before one of them.

    `row` is the number of that instruction in the program. `state` has registers,
    memory and queues while a run stands still.
    """

    def __init__(
        self,
        kernel: RunnableKernel,
        arguments: Sequence[Argument],
        grid: Sequence[int],
        *,
        row: int = EVERYWHERE,
        block: Sequence[int] | None = None,
        lds_bytes: int = LDS_BYTES,
        asynchronous: bool = False,
    ) -> None:
        launch = launch_size(kernel.code, grid, block)
        self.kernel, self.waves = kernel, launch.waves
        self._memory, self.state = kernel.prepare(arguments, launch, lds_bytes)
        self.state.settings[STRICT], self.state.settings[STOP_AT] = int(asynchronous), row

    def stops(self, group: tuple[int, int, int] = (0, 0, 0)) -> Iterator[tuple[int, int]]:
        """Runs a work-group; the wave and the instruction's number at each stop.

        Raises Fault as RunnableKernel.run does.
        """
        state = self.state
        self.kernel.start_group(self._memory, state, group)
        state.settings[STOP_SKIP] = 0
        while (status := run_work_group(state)) != ENDED:
            if status == FAULTED:
                raise self.kernel.fault(state, group)
            wave = int(np.flatnonzero(state.control[:, STATUS] == STOPPED)[0])
            yield wave, int(state.control[wave, PC])
            state.control[wave, STATUS] = RUNNING
            state.settings[STOP_SKIP] = 1


def trace(
    kernel: RunnableKernel,
    arguments: Sequence[Argument],
    grid: Sequence[int],
    address: int,
    *,
    group: tuple[int, int, int] = (0, 0, 0),
    wave: int = 0,
    visit: int = 0,
    block: Sequence[int] | None = None,
) -> WaveRegisters:
    """The registers of a wave just before it executes the instruction at an address.

    It is the first time that the wave comes there, or the one after `visit` times.
    Raises InputError where the wave does not come there as often.
    """
    row = kernel.program.index_of(address)
    run = SteppedRun(kernel, arguments, grid, row=row, block=block)
    if not 0 <= wave < run.waves:
        raise InputError(f"a work-group has {run.waves} waves, and wave {wave} is not one of them")
    seen = 0
    for stopped, _ in run.stops(group):
        if stopped == wave:
            if seen == visit:
                return WaveRegisters.of_wave(run.state, wave)
            seen += 1
    raise InputError(f"wave {wave} comes to 0x{address:x} {seen} times")
