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
- `the same bytes`: at a barrier, and every wave that reads a byte before the next barrier has
  itself written the same value there since the last one: its own accesses come in order;
- at a barrier `loads into registers`, and `write then read` and the like where other waves touch
  the bytes before the next barrier. For these the kernel runs with and without the wait side by
  side, in all four orders of the waves: `no other` where no instruction reads or writes
  another value, else the instructions that do.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from equal_answers import values
from execution import chosen_rows, kernels

from verilocc_bench.execution import AnswerExecutor
from verilocc_bench.machine import fields as f
from verilocc_bench.machine.execution import RunnableKernel
from verilocc_bench.machine.special_decoding import BARRIER, NO_OPERATION
from verilocc_bench.machine.state import (
    LDS_QUEUE,
    SCALAR_QUEUE,
    VECTOR_QUEUE,
    WAVE_ORDER,
    GroupState,
    WaveOrder,
)
from verilocc_bench.machine.stepping import SteppedRun


@dataclass(frozen=True, slots=True)
class Landing:
    """An access that a wait lands: the wave's number, how many barriers it has passed, the queue,
    true for a store, its bytes in LDS, and what a store puts there."""

    wave: int
    phase: int
    queue: int
    writes: bool
    place: frozenset[int]
    content: Mapping[int, int]


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


def content_of(state: GroupState, wave: int, row: int, slot: int) -> dict[int, int]:
    """What a store in the queue puts into LDS, byte by byte."""
    fields = state.rows[row]
    size, flags = int(fields[f.SIZE]), int(fields[f.FLAGS])
    if not flags & f.STORES or flags & f.ATOMIC:
        return {}
    execution = int(state.queue_execution[wave, LDS_QUEUE, slot])
    words = state.queue_data[wave, LDS_QUEUE, slot]
    offsets = [fields[f.OFFSET]]
    if flags & f.TWO_PLACES:
        offsets.append(fields[f.OFFSET_1])
    found = {}
    for lane in range(f.LANES):
        if not execution >> lane & 1:
            continue
        data = words[:, lane].astype("<u4").tobytes()[2 * bool(flags & f.DATA_HIGH) :]
        for part, offset in enumerate(offsets):
            first = int(state.queue_addresses[wave, LDS_QUEUE, slot, lane] + offset)
            for byte in range(size):
                found[first + byte] = data[part * max(4, size) + byte]
    return found


def last_group(executor: AnswerExecutor) -> tuple[int, int, int]:
    """The work-group that has the cut tiles."""
    x, y, z = (int(n) - 1 for n in (*executor.launch.grid, 1, 1)[:3])
    return x, y, z


def in_flight(state: GroupState, wave: int, row: int, phase: int) -> Iterator[Landing]:
    """What a wait lands, after so many barriers."""
    for queue, slot in landing(state, wave, row):
        by = int(state.queue_rows[wave, queue, slot])
        writes = bool(state.rows[by, f.FLAGS] & (f.STORES | f.ATOMIC))
        place = bytes_of(state, wave, by, slot) if queue == LDS_QUEUE else frozenset()
        content = content_of(state, wave, by, slot) if place else {}
        yield Landing(wave, phase, queue, writes, place, content)


def classes(
    kernel: RunnableKernel, executor: AnswerExecutor, addresses: list[int]
) -> dict[int, str]:
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
    written: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
    issued: dict[int, int] = {}
    state = run.state
    for wave, row in run.stops(last_group(executor)):
        if wave in issued:  # now in the queue
            slot = int(state.queue_sizes[wave, LDS_QUEUE]) - 1
            content = content_of(state, wave, issued.pop(wave), slot)
            written[wave, phase[wave]].update(content)
        if rows[row, f.GROUP] == f.SPECIAL and rows[row, f.OPERATION] == BARRIER:
            phase[wave] += 1
        elif rows[row, f.GROUP] == f.LDS:
            writes = bool(rows[row, f.FLAGS] & (f.STORES | f.ATOMIC))
            for byte in bytes_of(state, wave, row, None):
                touched[wave, phase[wave]].add((writes, byte))
            issued[wave] = row
        if row in wanted:
            landed[row] += in_flight(state, wave, row, phase[wave])
    found = {}
    for row in wanted:
        if run.waves == 1:
            word = "one wave"
        elif not landed[row]:
            word = "nothing in flight"
        elif row not in at_barrier:
            word = "other" if any(access.writes for access in landed[row]) else "waited for later"
        else:
            word = ", ".join(sorted(set(conflicts(landed[row], touched, written, run.waves))))
            if "then" in word:
                word += "; " + side_by_side(kernel, executor, row)
        found[program.instructions[row].address] = word or "own bytes"
    return found


def conflicts(
    accesses: list[Landing],
    touched: Mapping[tuple[int, int], set[tuple[bool, int]]],
    written: Mapping[tuple[int, int], Mapping[int, int]],
    waves: int,
) -> Iterator[str]:
    """What other waves do after the barrier with the bytes that were in flight at it."""
    for access in accesses:
        if access.queue != LDS_QUEUE:
            yield "loads into registers"
            continue
        before = "write" if access.writes else "read"
        for other in set(range(waves)) - {access.wave}:
            own = written.get((other, access.phase), {})
            for is_write, byte in touched.get((other, access.phase + 1), ()):
                if byte not in access.place or not (is_write or access.writes):
                    continue
                if not is_write and own.get(byte, -1) == access.content.get(byte):
                    yield "the same bytes"
                else:
                    yield f"{before} then {'write' if is_write else 'read'}"


def side_by_side(kernel: RunnableKernel, executor: AnswerExecutor, wait: int) -> str:
    """The instructions that read other values without the wait, in any order of the waves."""
    without = executor.load(executor.own_code)
    without.program.rows[wait, f.OPERATION] = NO_OPERATION
    without.program.rows[wait, f.OFFSET] = -1
    read, written = set[str](), set[str]()
    for order in WaveOrder:
        runs = [
            SteppedRun(k, executor.arguments, executor.launch.grid, asynchronous=True)
            for k in (kernel, without)
        ]
        for run in runs:
            run.state.settings[WAVE_ORDER] = order
        group = last_group(executor)
        executed: dict[int, int] = {}
        for (wave, row), stop in zip(runs[0].stops(group), runs[1].stops(group), strict=True):
            if (wave, row) != stop:
                return "another path"
            if wave in executed and differs(runs, wave, before := executed[wave], results=True):
                written.add(kernel.program.instructions[before].mnemonic)
            if differs(runs, wave, row, results=False):
                read.add(kernel.program.instructions[row].mnemonic)
            executed[wave] = row
    if written:
        return "other results of " + ", ".join(sorted(written))
    return ("other values read, same results: " + ", ".join(sorted(read))) if read else "no other"


def differs(runs: list[SteppedRun], wave: int, row: int, *, results: bool) -> bool:
    """True if the registers that an instruction reads (or writes) hold other values in the runs."""
    fields = runs[0].state.rows[row]
    if results:
        places = [(f.RESULT, f.RESULT_WIDTH), (f.SECOND, f.SECOND_WIDTH)]
    else:
        places = [(f.A + 2 * n, f.A_WIDTH + 2 * n) for n in range(4)]
    held = [(int(fields[first]), int(fields[width])) for first, width in places]
    one, two = (values(run.state, wave, row, held) for run in runs)
    return one != two


def main() -> None:
    parser = argparse.ArgumentParser(description="what unnoticed waits would have waited for")
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--rows", default="", help="ids; by default all")
    options = parser.parse_args()
    unnoticed: dict[str, list[int]] = defaultdict(list)
    for path in options.files:
        for line in path.read_text().splitlines():
            entry = json.loads(line)
            if options.rows and entry["key"][1] not in options.rows.split(","):
                continue
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
