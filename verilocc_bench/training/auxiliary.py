"""Further questions about what a prompt shows: what decides the answer, to be learnt with it.

A prompt of `whole` or `window` is shown once more, with a question at its end
(in `whole` in place of its last line) and a system message of its own. So all
that a model works out while it reads serves both. The questions:

- `pressure`: the most lanes of each file that are live at once, at the points
  of the instructions shown: `v:37 s:12 vcc:1`. As everywhere the scored files
  count together, here under the name of the first, and files of which nothing
  is live are left out. Of `whole` that is the lower bound on registers.
- `lifetimes`: of each virtual register that the answer would list the last
  point, in the order of the text, where a lane of it is live: `bb3 %12:5 %13:7
  bb4 %14:1`, where `bb3 %12:5` is just after the fifth instruction below the
  line of bb3, and a block is named where it is another than before. A window
  shows no further than it goes: what lives on is live at its last instruction.
  Registers that are live at none of the points shown are left out.

No prompt of the harness ends with such a question, and no answer to one
begins as the answers to the harness do; in the tokenizer `text`, which leaves
the system message out and most words, what is left of the question is
`given` or `place`, and a line break.

Exact: from the same liveness and pressure as the verifier's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from verilocc_bench.allocator_options import WINDOW_REGISTERS
from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.model.prompts.conversation import messages
from verilocc_bench.model.prompts.windows import cut_windows
from verilocc_bench.views.turns import TrainingTurn

__all__ = ["FORMATS", "QUESTIONS", "Auxiliary", "with_auxiliary"]

FORMATS = ("whole", "window")

SYSTEMS = {
    "pressure": """\
You look at a GPU kernel, or a window of its instructions, before registers are allocated. Say \
for each register file how many registers, at the point where they are most, hold a value that \
is still to be read. The vector registers of all kinds count together.
Answer with one line and nothing else, such as v:37 s:12 vcc:1""",
    "lifetimes": """\
You look at a GPU kernel, or a window of its instructions, before registers are allocated. Say \
for each virtual register that is to be placed where it last holds a value: bb3 %12:5 is just \
after the fifth instruction below the line of bb3. A block is named where it is another than \
before; what holds no value here is left out.
Answer with one line and nothing else, such as bb3 %12:5 %13:7 bb4 %14:1""",
}

QUESTIONS = {
    "pressure": "Say how many registers of each file are given at most.\n",
    "lifetimes": "Say for each register to place where it is live last.\n",
}
"""The line that a prompt ends with, by task."""


@dataclass(frozen=True, slots=True)
class Auxiliary:
    """Which questions are asked, each about one prompt in `every`, drawn at random."""

    tasks: tuple[str, ...] = ()
    every: int = 1


class _Excerpt(NamedTuple):
    """What a prompt shows: the points from `first` to before `end`, and what is placed there."""

    first: int
    end: int
    registers: Sequence[int]


def with_auxiliary(
    problem: AllocationProblem,
    prompt_format: str,
    turns: Iterable[TrainingTurn],
    asked: Auxiliary,
    seed: int,
    *,
    new_registers: int | None = None,
) -> Iterator[TrainingTurn]:
    """The turns of a function in `whole` or `window`, each perhaps followed by further questions.

    `turns` are all of the format, windows cut for `new_registers`, if these are
    others than the format's own; they come as they are. A question to which
    there is nothing to say is not asked.
    """
    if not asked.tasks:
        yield from turns
        return
    generator = Random(f"{seed} auxiliary")  # noqa: S311  no secret depends on it
    if prompt_format == "whole":
        excerpts = _whole(problem)
    else:
        excerpts = _windows(problem, new_registers or WINDOW_REGISTERS)
    for turn, excerpt in zip(turns, excerpts, strict=True):
        yield turn
        shown = turn.messages[-1].content
        if prompt_format == "whole":
            shown = problem.normalized
        for task in asked.tasks:
            drawn = generator.randrange(asked.every) == 0
            if drawn and (pieces := tuple(_TASKS[task](problem, excerpt))):
                conversation = messages(SYSTEMS[task], (), shown + QUESTIONS[task])
                yield TrainingTurn(conversation, pieces, ends=True)


def _whole(problem: AllocationProblem) -> Iterator[_Excerpt]:
    registers = range(len(problem.function.virtual_registers))
    yield _Excerpt(0, len(problem.liveness.points), registers)


def _windows(problem: AllocationProblem, new_registers: int) -> Iterator[_Excerpt]:
    """The windows with something to place; the entry's point is the first one's."""
    ends = [point + 1 for block in problem.liveness.after for point in block]
    first = done = 0
    for window in cut_windows(problem, new_registers):
        done += sum(not line.startswith("bb") for line in window.lines)
        end = ends[done - 1] if done else first
        if window.new:
            yield _Excerpt(first, end, window.new)
        first = end


def _pressure(problem: AllocationProblem, excerpt: _Excerpt) -> Iterator[str]:
    target, lead = problem.target, ""
    scored = next(file.name for file in target.files if file.name in target.vector_files)
    for group, curve in problem.pressure.curves.items():
        most = max(curve[excerpt.first : excerpt.end], default=0)
        if most:
            name = scored if group == VECTOR else group
            yield from _numbered(f"{lead}{name}:", most)
            lead = " "


def _lifetimes(problem: AllocationProblem, excerpt: _Excerpt) -> Iterator[str]:
    liveness, classes = problem.liveness, problem.function.virtual_registers
    shown = (1 << excerpt.end) - (1 << excerpt.first)
    starts: dict[int, int] = {}  # the first instruction below each line of a block
    for block, index in liveness.points[excerpt.first : excerpt.end]:
        starts.setdefault(block, max(index, 0))
    named, lead = -1, ""
    for register in excerpt.registers:
        live, lane = 0, liveness.lane_offsets[register]
        for mask in liveness.live[lane : lane + classes[register].width]:
            live |= mask & shown
        if not live:
            continue
        block, index = liveness.points[live.bit_length() - 1]
        if block != named:
            yield f"{lead}bb{block}"
            named, lead = block, " "
        yield from _numbered(f"{lead}%{register}:", index - starts[block] + 1)


def _numbered(lead: str, number: int) -> Iterator[str]:
    """A number of any size in pieces of two digits: the tokenizer `text` has no large ones."""
    digits = str(number)
    head = 2 - len(digits) % 2
    yield lead + digits[:head]
    yield from (digits[place : place + 2] for place in range(head, len(digits), 2))


_TASKS = {"pressure": _pressure, "lifetimes": _lifetimes}
