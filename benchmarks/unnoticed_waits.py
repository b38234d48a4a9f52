"""Why leaving out an s_waitcnt changes nothing: what it would have waited for.

    python benchmarks/unnoticed_waits.py FILE…

FILE is an output of `execution.py drop --mnemonic s_waitcnt`. For each wait that neither numbers
nor events noticed, the kernel runs in asynchronous time and stops at every instruction. What is
in flight at the wait, and would land there, decides about the class:

- `one wave`: work-groups of one wave, whose accesses to LDS come in order anyway;
- `nothing in flight`: at no visit does anything land there;
- `own bytes`: at a barrier, and no other wave touches the bytes before the next barrier;
- `waited for later`: no barrier; loads into registers that another wait covers, or the counter's
  own limit, before they are read;
- at a barrier `loads into registers`, and `write then read` and the like where other waves touch
  the bytes before the next barrier: to be looked at.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from execution import chosen_rows, kernels

from verilocc_bench.machine import fields as f
from verilocc_bench.machine.special_decoding import BARRIER
from verilocc_bench.machine.state import LDS_QUEUE, SCALAR_QUEUE, VECTOR_QUEUE, GroupState
from verilocc_bench.machine.stepping import SteppedRun


@dataclass(frozen=True, slots=True)
class Landing:
    """An access that a wait lands: the wave's number, how many barriers it has passed, the queue,
    true for a store, and its bytes in LDS."""

    wave: int
    phase: int
    queue: int
    writes: bool
    place: frozenset[int]


def landing(state: GroupState, wave: int, row: int) -> Iterator[tuple[int, int]]:
    """(queue, slot) of what a wait lands."""
    limits = {VECTOR_QUEUE: state.rows[row, f.OFFSET], LDS_QUEUE: state.rows[row, f.OFFSET_1]}
    limits[SCALAR_QUEUE] = 0 if limits[LDS_QUEUE] == 0 else 64
    for queue, limit in limits.items():
        for slot in range(max(0, state.queue_sizes[wave, queue] - limit)):
            yield queue, slot


def bytes_of(state: GroupState, wave: int, row: int, slot: int | None) -> frozenset[int]:
    """The bytes of LDS that an access touches: one in the queue, or one before it is issued."""
    fields = state.rows[row]
    if fields[f.SIZE] == 0:
        return frozenset()  # DS_BPERMUTE and the like
    if slot is None:
        scalars = state.scalars[wave]
        execution = int(scalars[f.EXEC]) | int(scalars[f.EXEC + 1]) << 32
        addresses = state.vectors[wave, fields[f.A] - f.VECTOR].astype(np.int64)
    else:
        execution = int(state.queue_execution[wave, LDS_QUEUE, slot])
        addresses = state.queue_addresses[wave, LDS_QUEUE, slot]
    offsets = [fields[f.OFFSET]]
    if fields[f.FLAGS] & f.TWO_PLACES:
        offsets.append(fields[f.OFFSET_1])
    return frozenset(
        int(addresses[lane] + offset + byte)
        for lane in range(f.LANES)
        if execution >> lane & 1
        for offset in offsets
        for byte in range(fields[f.SIZE])
    )


def classes(kernel: Any, executor: Any, addresses: list[int]) -> dict[int, str]:
    """The class of each unnoticed wait of a kernel."""
    program = kernel.program
    run = SteppedRun(kernel, executor.arguments, executor.launch.grid, asynchronous=True)
    wanted = {program.index_of(address) for address in addresses}
    rows = program.rows
    at_barrier = {n for n in wanted if rows[n + 1, f.OPERATION] == BARRIER
                  and rows[n + 1, f.GROUP] == f.SPECIAL}  # fmt: skip
    phase: Counter[int] = Counter()
    touched: dict[tuple[int, int], set[tuple[bool, int]]] = defaultdict(set)
    landed: dict[int, list[Landing]] = defaultdict(list)
    group = tuple(int(n) - 1 for n in (*executor.launch.grid, 1, 1)[:3])
    for wave, row in run.stops(group):  # the last work-group has the cut tiles
        state = run.state
        if rows[row, f.GROUP] == f.SPECIAL and rows[row, f.OPERATION] == BARRIER:
            phase[wave] += 1
        elif rows[row, f.GROUP] == f.LDS:
            writes = bool(rows[row, f.FLAGS] & (f.STORES | f.ATOMIC))
            for byte in bytes_of(state, wave, row, None):
                touched[wave, phase[wave]].add((writes, byte))
        if row in wanted:
            for queue, slot in landing(state, wave, row):
                by = int(state.queue_rows[wave, queue, slot])
                writes = bool(rows[by, f.FLAGS] & (f.STORES | f.ATOMIC))
                place = bytes_of(state, wave, by, slot) if queue == LDS_QUEUE else frozenset()
                landed[row].append(Landing(wave, phase[wave], queue, writes, place))
    found = {}
    for row in wanted:
        if run.waves == 1:
            word = "one wave"
        elif not landed[row]:
            word = "nothing in flight"
        elif row not in at_barrier:
            word = "other" if any(access.writes for access in landed[row]) else "waited for later"
        else:
            word = ", ".join(sorted(set(conflicts(landed[row], touched, run.waves)))) or "own bytes"
        found[program.instructions[row].address] = word
    return found


def conflicts(
    accesses: list[Landing], touched: Mapping[tuple[int, int], set[tuple[bool, int]]], waves: int
) -> Iterator[str]:
    """What other waves do after the barrier with the bytes that were in flight at it."""
    for access in accesses:
        if access.queue != LDS_QUEUE:
            yield "loads into registers"
            continue
        before = "write" if access.writes else "read"
        for other in set(range(waves)) - {access.wave}:
            for is_write, byte in touched[other, access.phase + 1]:
                if byte in access.place and (is_write or access.writes):
                    yield f"{before} then {'write' if is_write else 'read'}"


def main() -> None:
    parser = argparse.ArgumentParser(description="what unnoticed waits would have waited for")
    parser.add_argument("files", type=Path, nargs="+")
    options = parser.parse_args()
    unnoticed: dict[str, list[int]] = defaultdict(list)
    for path in options.files:
        for line in path.read_text().splitlines():
            entry = json.loads(line)
            if not entry["noticed"] and not entry["events"]:
                unnoticed[entry["key"][1]].append(entry["key"][2])
    total: Counter[str] = Counter()
    for row, late, _ in kernels(chosen_rows("mini", ["test"], None), 1):
        if row.id not in unnoticed:
            continue
        kernel = late.load(late.own_code)
        found = classes(kernel, late, unnoticed[row.id])
        total.update(found.values())
        for address, word in sorted(found.items()):
            index = kernel.program.index_of(address)
            around = [i.text for i in kernel.program.instructions[index - 1 : index + 2]]
            print(json.dumps({"row": row.id, "address": address, "class": word, "at": around}),
                  flush=True)  # fmt: skip
    print(dict(total))


if __name__ == "__main__":
    main()
