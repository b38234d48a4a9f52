"""Executes answers to a kernel of the dataset.

An answer is lowered as it is, valid or not: execution is a judge of its own. The
kernel's reference (verilocc_bench.references) gives inputs, launch and expected
numbers, and llc's own allocation of the same machine IR the bits.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.backends.amdgpu.kernel import MachineKernel
from verilocc_bench.backends.amdgpu.label import own_input
from verilocc_bench.backends.amdgpu.lower import code_input, run_llc_on, write_answer
from verilocc_bench.dataset import Row
from verilocc_bench.edits import Answer
from verilocc_bench.errors import InputError
from verilocc_bench.machine.execution import (
    LDS_BYTES,
    Event,
    Fault,
    MachineExecution,
    RunnableKernel,
    load_kernel,
)
from verilocc_bench.machine.state import WaveOrder
from verilocc_bench.references import Buffer, Comparison, compare, launch_for

ORDERS = (
    WaveOrder.FORWARD, WaveOrder.BACKWARD_FIRST, WaveOrder.BACKWARD, WaveOrder.FORWARD_FIRST,
)  # fmt: skip
"""The first two in which a kernel is right are used."""

TILES = 2
"""Tiles in each dimension of the grid: the least with a work-group whose numbers are all not 0.

Where all numbers are 0, an answer that spoils the register of one may leave the right numbers.
"""

REFUSED, FAULT, WRONG, RIGHT = "refused", "fault", "wrong numbers", "right numbers"


@dataclass(frozen=True, slots=True)
class ExecutedAnswer:
    """What came of an answer.

    `outcome` is `refused` (it cannot be lowered, or llc or the decoder refuses it), `fault`,
    `wrong numbers` or `right numbers`; `why` says more of the first two.
    `comparisons` hold each buffer against the reference. `same_bits` says if
    every buffer is, bit for bit, what llc's own allocation leaves; None where
    that was not asked. In asynchronous time that holds for each order of the waves;
    `buffers` and counts are the first order's, `digests` of each order's buffers.
    """

    outcome: str
    why: str = ""
    comparisons: tuple[Comparison, ...] = ()
    same_bits: bool | None = None
    wave_instructions: int = 0
    event_count: int = 0
    events: tuple[Event, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    buffers: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    digests: tuple[str, ...] = ()

    @property
    def accepted(self) -> bool:
        """True if the numbers are right, and the bits where they were compared."""
        return self.outcome == RIGHT and self.same_bits is not False

    def to_json(self) -> dict[str, Any]:
        """The outcome as one JSON object, without the buffers."""
        return {
            "outcome": self.outcome,
            "why": self.why or None,
            "same_bits": self.same_bits,
            "wave_instructions": self.wave_instructions,
            "buffers": [
                {
                    "name": c.name,
                    "error": c.error if np.isfinite(c.error) else None,
                    "tolerance": c.tolerance,
                    "stray_writes": c.stray_writes,
                    "agrees": c.agrees,
                }
                for c in self.comparisons
            ],
            "events": self.event_count,
            "first_events": [str(event) for event in self.events[:10]],
            "executed": dict(self.counts),
        }


class AnswerExecutor:
    """Runs one kernel with the registers of any number of answers.

    `tiles` is how many tiles each dimension of the grid has
    (verilocc_bench.references.launch_for). With `asynchronous` time is made
    adversarial, and the waves run in two orders (`orders`): sums by atomics may differ
    in their bits between the orders. `step_limit` bounds the wave instructions of a run,
    `lds_bytes` the LDS of a work-group.
    """

    def __init__(
        self,
        kernel: MachineKernel,
        name: str,
        parameters: Mapping[str, Any],
        *,
        tiles: int = TILES,
        asynchronous: bool = True,
        step_limit: int = 50_000_000,
        lds_bytes: int = LDS_BYTES,
    ) -> None:
        self.kernel = kernel
        self.launch = launch_for(name, parameters, tiles=tiles, sampled=True)
        self.asynchronous, self.step_limit = asynchronous, step_limit
        self.lds_bytes = lds_bytes

    @classmethod
    def of_row(cls, kernel: MachineKernel, row: Row, **options: Any) -> AnswerExecutor:
        """The executor of a row's kernel."""
        # What a kernel has no share of is a fault, as it is zero on hardware.
        share = json.loads(row.provenance).get("shared_memory_bytes", LDS_BYTES)
        return cls(kernel, row.kernel, json.loads(row.params), lds_bytes=share, **options)

    @cached_property
    def arguments(self) -> list[Any]:
        """The launch's arguments as the interpreter takes them."""
        return [
            a.initial
            if isinstance(a, Buffer)
            else np.float32(a.value) if a.element == "fp32" else np.int32(a.value)
            for a in self.launch.arguments
        ]  # fmt: skip

    @cached_property
    def own(self) -> ExecutedAnswer:
        """llc's own allocation, executed."""
        return self._run(self.own_code)

    @cached_property
    def own_code(self) -> bytes:
        """llc's own allocation as an object file."""
        return run_llc_on(self.kernel, own_input(self.kernel), "obj")

    def lower(self, answer: Answer) -> bytes:
        """An answer as an object file, unverified. Raises InputError where llc refuses it."""
        lowered = write_answer(self.kernel, answer)
        return run_llc_on(self.kernel, code_input(self.kernel, answer, lowered), "obj")

    def execute(self, answer: Answer, *, with_bits: bool = True) -> ExecutedAnswer:
        """An answer, executed, and compared with llc's own allocation by its bits."""
        try:
            code = self.lower(answer)
        except (InputError, KeyError, ValueError) as error:
            return ExecutedAnswer(REFUSED, str(error))
        return self.execute_code(code, with_bits=with_bits)

    def execute_code(self, code: bytes, *, with_bits: bool = True) -> ExecutedAnswer:
        """An object file, executed."""
        return self._run(code, self.own if with_bits else None)

    def load(self, code: bytes) -> RunnableKernel:
        """The kernel in an object file."""
        return load_kernel(code, self.kernel.name)

    def _run(self, code: bytes, base: ExecutedAnswer | None = None) -> ExecutedAnswer:
        try:
            kernel = self.load(code)
        except InputError as error:
            return ExecutedAnswer(REFUSED, error.message)
        orders = self.orders
        try:
            runs = [self._run_once(kernel, order) for order in orders]
        except Fault as fault:
            return ExecutedAnswer(FAULT, str(fault))
        done, buffers = runs[0], [self._buffers(each) for each in runs]
        compared = [compare(self.launch, each) for each in buffers]
        wrong = [n for n, found in enumerate(compared) if not all(c.agrees for c in found)]
        digests = tuple(map(_digest, buffers))
        return ExecutedAnswer(
            WRONG if wrong else RIGHT,
            f"with the waves in the order {orders[wrong[0]].name}" if wrong and wrong[0] else "",
            compared[wrong[0] if wrong else 0],
            None if base is None or not base.digests else digests == base.digests,
            done.wave_instructions,
            sum(each.event_count for each in runs),
            tuple(event for each in runs for event in each.events),
            _by_kind(kernel, done.counts),
            buffers[0],
            digests,
        )

    @cached_property
    def orders(self) -> tuple[WaveOrder, ...]:
        """Two orders of the waves in which llc's own allocation is right, or as many as there are.

        Some kernels of eight waves, of which four are a barrier ahead, read LDS before a barrier
        and wait after it. They rely on LDS serving all waves in the order of their accesses.
        """
        if not self.asynchronous:
            return ORDERS[:1]
        kernel, found = self.load(self.own_code), []
        for order in ORDERS:
            try:
                buffers = self._buffers(self._run_once(kernel, order))
            except Fault:
                continue
            if all(each.agrees for each in compare(self.launch, buffers)):
                found.append(order)
            if len(found) == 2:
                break
        return tuple(found) or ORDERS[:1]

    def _run_once(self, kernel: RunnableKernel, order: WaveOrder) -> MachineExecution:
        return kernel.run(
            self.arguments,
            self.launch.grid,
            asynchronous=self.asynchronous,
            lds_bytes=max(self.lds_bytes, kernel.code.descriptor.lds_bytes),
            order=order,
            step_limit=self.step_limit,
            groups=self.launch.groups,
        )

    def _buffers(self, done: MachineExecution) -> dict[str, NDArray[Any]]:
        return {
            a.name: content
            for a, content in zip(self.launch.arguments, done.buffers, strict=True)
            if content is not None
        }


def _digest(buffers: Mapping[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256()
    for content in buffers.values():
        digest.update(content.tobytes())
    return digest.hexdigest()


def _by_kind(kernel: RunnableKernel, counts: NDArray[np.int64]) -> dict[str, int]:
    """How many instructions all waves executed, by kind."""
    found: dict[str, int] = {}
    for instruction, count in zip(kernel.program.instructions, counts, strict=True):
        if count:
            kind = instruction_kind(instruction.mnemonic)
            found[kind] = found.get(kind, 0) + int(count)
    return dict(sorted(found.items()))


def instruction_kind(mnemonic: str) -> str:
    """The kind under which an instruction is counted."""
    if mnemonic in {"s_waitcnt", "s_nop", "s_barrier"}:
        return mnemonic
    if mnemonic.startswith("v_mfma"):
        return "matrix"
    if mnemonic.startswith(("v_mov_b32", "v_accvgpr_")):
        return "vector moves"
    prefixes = {
        "v_": "vector", "ds_": "lds", "buffer_": "memory", "global_": "memory", "flat_": "memory",
        "scratch_": "scratch", "s_load": "scalar loads", "s_buffer_load": "scalar loads",
        "s_cbranch": "branches", "s_branch": "branches", "s_": "scalar",
    }  # fmt: skip
    return next(kind for prefix, kind in prefixes.items() if mnemonic.startswith(prefix))
