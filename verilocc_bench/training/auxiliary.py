"""Auxiliary questions about a prompt: a model learns what decides the answer, too.

An auxiliary question repeats a prompt of `whole` or `window` with a question
at its end and a system message of its own. In `whole` the question replaces
the last line. What a model works out while it reads serves both answers. The
questions are:

- `pressure`: the most lanes of each file that are live at once, at the points
  of the instructions shown: `v:37 s:12 vcc:1`. The scored files count
  together, under the name of the first. Files without a live lane are left
  out. For `whole` this is the lower bound on registers.
- `lifetimes`: for each virtual register that the answer would list, the last
  point (in the order of the text) where one of its lanes is live: `bb3 %12:5
  %13:7 bb4 %14:1`. Here `bb3 %12:5` is the point just after the fifth
  instruction below the line of bb3. A block is named where it changes. A
  register that lives on beyond a window is live at the window's last
  instruction. Registers that are live at no point shown are left out.

No prompt of the harness ends with such a question, and answers to them begin
differently from answers to the harness. The tokenizer `text` drops the system
message and most words; it leaves `given` or `place` of the question, and a
line break.

The answers are exact: they come from the liveness and pressure that the
verifier uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.model.prompts.conversation import messages
from verilocc_bench.model.prompts.windows import cut_windows
from verilocc_bench.settings.language_model import WINDOW_REGISTERS
from verilocc_bench.views.training_turns import TrainingTurn

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
"""The last line of the prompt, by question."""


@dataclass(frozen=True, slots=True)
class Auxiliary:
    """The questions to ask; each is asked about one prompt in `every`, drawn at random."""

    tasks: tuple[str, ...] = ()
    every: int = 1


class _Excerpt(NamedTuple):
    """What a prompt shows: the points in `first` to `end` - 1, and the registers to place."""

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
    """Yields the turns of a function, each followed by the auxiliary questions drawn for it.

    `turns` are all turns of the function in the format `whole` or `window`;
    they are passed on unchanged. `new_registers` is the width for which the
    windows were cut; None stands for the format's own. A question whose answer
    would be empty is not asked.
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
    """The windows that place a register. The point of the entry belongs to the first window."""
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
    """The number in pieces of two digits: the tokenizer `text` has no word for large numbers."""
    digits = str(number)
    head = 2 - len(digits) % 2
    yield lead + digits[:head]
    yield from (digits[place : place + 2] for place in range(head, len(digits), 2))


_TASKS = {"pressure": _pressure, "lifetimes": _lifetimes}
