"""Why a wrong answer leaves the right numbers: two runs side by side, instruction by instruction.

    python benchmarks/equal_answers.py FILE… [--tiles N]

FILE is an output of executed_answers.py. Each wrong answer with the same numbers, but other machine
code, is made again and lowered, without LLVM's last scheduler, so that its instructions stand in
the order of the right answer's. Both run in fast mode and stop before every instruction. The
instructions that both programs have are compared in each wave: what they read (of the lanes that
are active) and what they write. The word about an answer is

- `equal`: no instruction that was executed reads another value: what was overwritten is not read
  on this path, or by no active lane, or the same value stands there;
- `absorbed`: instructions read other values; the last ones give the same results, or store
  nothing else. Their opcodes are listed;
- `other path`: the waves take other branches.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import numpy as np
from executed_answers import Kernels, Subject, mutate

from verilocc_bench.backends.amdgpu.label import LlcInput
from verilocc_bench.backends.amdgpu.lower import run_llc_on, write_answer
from verilocc_bench.backends.amdgpu.tools import LLC_OPTIONS
from verilocc_bench.edits import Answer
from verilocc_bench.machine import fields as f
from verilocc_bench.machine.execution import RunnableKernel, load_kernel
from verilocc_bench.machine.state import GroupState
from verilocc_bench.machine.stepping import SteppedRun
from verilocc_bench.references import Buffer

IN_ORDER = ("-post-RA-scheduler=0", "-enable-post-misched=0")
NOT_COMPARED = {"s_waitcnt", "s_nop"}
ALL_LANES = {f.ACROSS_LANES, f.MATRIX, f.LDS_LANES}


@dataclass(frozen=True, slots=True)
class Step:
    """One executed instruction: its number in the program, what it reads, and what it writes."""

    row: int
    reads: bytes
    writes: bytes


def code_in_order(subject: Subject, answer: Answer) -> bytes:
    lowered = write_answer(subject.kernel, answer)
    options = (*LLC_OPTIONS, *lowered.llc_options, *IN_ORDER)
    return run_llc_on(subject.kernel, LlcInput(lowered.text, "kernel.mir", options), "obj")


def values(state: GroupState, wave: int, row: int, places: list[tuple[int, int]]) -> bytes:
    """What registers hold, of vectors the active lanes."""
    fields = state.rows[row]
    execution = int(state.scalars[wave, f.EXEC]) | int(state.scalars[wave, f.EXEC + 1]) << 32
    if fields[f.GROUP] in ALL_LANES or fields[f.TRAITS] & f.IS_DPP:
        execution = -1
    lanes = np.array([bool(execution >> lane & 1) for lane in range(f.LANES)])
    parts = []
    for place, width in places:
        if place >= f.VECTOR:
            first = place - f.VECTOR
            parts.append(state.vectors[wave, first : first + width][:, lanes].tobytes())
        elif place != f.NONE and place < f.FIRST_CONSTANT:
            parts.append(state.scalars[wave, place : place + width].tobytes())
    return b"|".join(parts)


def steps(subject: Subject, kernel: RunnableKernel, tiles: int) -> dict[Any, list[Step]]:
    """The instructions of each wave of each work-group."""
    launch = subject.launch(tiles)
    arguments = [a.initial if isinstance(a, Buffer) else a.value for a in launch.arguments]
    block = (64 * json.loads(subject.row.params)["num_warps"], 1, 1)
    run = SteppedRun(kernel, arguments, launch.grid, block=block)
    found: dict[Any, list[Step]] = defaultdict(list)
    x, y, z = (*launch.grid, 1, 1)[:3]
    for group in [(i, j, k) for k in range(z) for j in range(y) for i in range(x)]:
        pending: dict[int, tuple[int, bytes]] = {}
        for wave, row in run.stops(group):
            fields = run.state.rows[row]
            if wave in pending:
                before, reads = pending.pop(wave)
                result = run.state.rows[before]
                places = [(int(result[f.RESULT]), int(result[f.RESULT_WIDTH]))]
                places.append((int(result[f.SECOND]), int(result[f.SECOND_WIDTH])))
                writes = values(run.state, wave, before, places)
                found[group, wave].append(Step(before, reads, writes))
            places = [(int(fields[f.A + 2 * n]), int(fields[f.A_WIDTH + 2 * n])) for n in range(4)]
            pending[wave] = row, values(run.state, wave, row, places)
    return found


def common(own: RunnableKernel, other: RunnableKernel) -> dict[int, int]:
    """For instructions of the other program those of the own one that they correspond to."""
    names = [[i.mnemonic for i in k.program.instructions] for k in (own, other)]
    blocks = SequenceMatcher(None, *names, autojunk=False).get_matching_blocks()
    return {b.b + n: b.a + n for b in blocks for n in range(b.size)}


def why(subject: Subject, mutant: Answer, tiles: int) -> dict[str, Any]:
    own = load_kernel(code_in_order(subject, subject.answer), subject.row.kernel)
    other = load_kernel(code_in_order(subject, mutant), subject.row.kernel)
    match = common(own, other)
    known = set(match.values())
    rows = own.program.instructions
    right, wrong = steps(subject, own, tiles), steps(subject, other, tiles)
    read: Counter[str] = Counter()
    written: Counter[str] = Counter()
    absorbed: Counter[str] = Counter()
    for key, expected in right.items():
        ours = [s for s in expected if s.row in known and rows[s.row].mnemonic not in NOT_COMPARED]
        theirs = [
            Step(match[s.row], s.reads, s.writes) for s in wrong[key]
            if s.row in match and rows[match[s.row]].mnemonic not in NOT_COMPARED
        ]  # fmt: skip
        if [s.row for s in ours] != [s.row for s in theirs]:
            return {"why": "other path"}
        for one, two in zip(ours, theirs, strict=True):
            name = rows[one.row].mnemonic
            if one.reads != two.reads:
                read[name] += 1
                if one.writes == two.writes:
                    absorbed[name] += 1
            if one.writes != two.writes:
                written[name] += 1
    return {
        "why": "absorbed" if read else "equal",
        "read": dict(read), "written": dict(written), "absorbed": dict(absorbed),
        "unmatched": len(rows) - len(known), "steps": sum(map(len, right.values())),
    }  # fmt: skip


def unexplained(paths: list[Path]) -> Iterator[dict[str, Any]]:
    for path in paths:
        for line in path.read_text().splitlines():
            entry = json.loads(line)
            if entry["outcome"] == "same numbers" and not entry["valid"] and not entry["word"]:
                yield entry


def main() -> None:
    parser = argparse.ArgumentParser(description="why a wrong answer leaves the right numbers")
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--tiles", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    entries = list(unexplained(options.files))
    kernels = Kernels.of_mini({entry["row"] for entry in entries}, 10**9)
    rows = {row.id: row for row in kernels.rows}
    for entry in entries:
        subject = kernels.subject(rows[entry["row"]], entry["operator"], entry["number"])
        assert subject is not None
        text = f"{options.seed} {entry['number']} {entry['row']} {entry['operator']}"
        mutant = mutate(subject, entry["operator"], random.Random(text))
        assert mutant is not None
        print(json.dumps(entry | why(subject, mutant, options.tiles)), flush=True)


if __name__ == "__main__":
    main()
