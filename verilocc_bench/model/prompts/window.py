"""`window`: a function in pieces, with what is placed so far, and an object for each."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from functools import partial
from typing import ClassVar

from verilocc_bench.allocators import Assistance, Request
from verilocc_bench.allocators.register_state import RegisterState
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.ir import RegisterClass, format_class
from verilocc_bench.model.language_model import Ask, Episode
from verilocc_bench.model.prompts.conversation import (
    ObjectConstraint,
    Turn,
    example_turns,
    messages,
    object_tokens,
    print_object,
)
from verilocc_bench.model.prompts.episode_record import EpisodeRecord
from verilocc_bench.model.prompts.feedback import (
    assignment_of,
    blamed,
    feedback_text,
    latest_attempt,
)
from verilocc_bench.model.prompts.prompt_format import PromptFormat
from verilocc_bench.model.prompts.reading import Unparsable, UnparsableReason
from verilocc_bench.model.prompts.units import base_ranges, runs_of
from verilocc_bench.model.prompts.windows import Window, cut_windows
from verilocc_bench.settings.allocator import Decoding, FeedbackKind
from verilocc_bench.settings.language_model import WINDOW_REGISTERS, LanguageModelSettings

SYSTEM = """\
You allocate registers for a GPU kernel, one window of its instructions after the other. Give \
each virtual register of the line "place" a base register.
- A class line has a name, a width and the legal bases: "class V2 2 v/2" is two registers wide \
and starts at v0, v2, v4, …. The first class is that of the registers that name none.
- A register of width w at base v4 takes v4 to v(4+w-1). Stay within the counts of the line \
"registers", and off the reserved registers.
- "given" are the registers placed before. "free V2" are the bases that all of class V2 to be \
placed here can have (v4..v8 is all legal bases from v4 to v8); "%12 also v20" says what %12 can \
have besides.
- Two registers placed here may share a register where neither is written while the other holds \
a value that is still to be read. Those of the line "beyond" hold values outside of this window, \
too; the others are read for the last time in it.
- An operand marked ~0 must be in the same register as definition 0 of its instruction; one \
marked & is written before the instruction reads.
Answer with one JSON object and nothing else, such as {"%12": "v4", "%13": "v6"}."""

DESCRIPTION = (
    "`window`: a few virtual registers a prompt, with the piece of the function in which "
    "they are first mentioned and the bases that earlier answers leave to each. What collides "
    "within the window, and when a register is read for the last time, it has to read itself."
)

FINDINGS_SHOWN = 8

ONE_BY_ONE = 8
"""How many bases at the start of a list are named one by one, so that none need be counted."""


class WindowFormat(PromptFormat):
    """The model sees a piece of the function, and what its earlier answers leave free."""

    name: ClassVar[str] = "window"
    version: ClassVar[int] = 3
    assistance: ClassVar[Assistance] = Assistance.STATE
    description: ClassVar[str] = DESCRIPTION
    system: ClassVar[str] = SYSTEM
    has_windows: ClassVar[bool] = True
    can_repair: ClassVar[bool] = True

    def demonstrations(
        self,
        problem: AllocationProblem,
        answer: Mapping[str, str],
        *,
        new_registers: int | None = None,
    ) -> Iterator[Turn]:
        """One turn for each window; see PromptFormat."""
        windows = _Windows(problem, new_registers or WINDOW_REGISTERS)
        for window, prompt in windows.prompts():
            yield Turn(prompt, print_object(answer, window.new))
            windows.follow(window, answer)

    def episode(self, request: Request, settings: LanguageModelSettings) -> Episode:
        """See PromptFormat."""
        record = EpisodeRecord()
        width = settings.window_registers or WINDOW_REGISTERS
        windows = _Windows(request.problem, width)
        turns = example_turns(request, settings, partial(self._example, width))
        if settings.few_shot:
            record.more["examples"] = len(turns)
        attempt = latest_attempt(request, settings)
        kept = windows.unblamed(request) if settings.feedback is FeedbackKind.REPAIR else {}
        for window, prompt in windows.prompts():
            if window in kept:
                windows.follow(window, kept[window])
                continue
            told = feedback_text(attempt, FINDINGS_SHOWN, [f"%{n}" for n in window.new])
            constraint = None
            if settings.decoding is Decoding.CONSTRAINED:
                constraint = ObjectConstraint(windows.state, window.new)
            conversation = messages(self.system, turns, prompt + told, settings.system)
            tokens = object_tokens(len(window.new), settings)
            completion = yield Ask(conversation, tokens, constraint, settings.thinking_tokens or 0)
            record.add(completion)
            failed = record.failed(completion, constraint.stuck if constraint is not None else None)
            if failed is not None:
                return failed
            found = _asked_for(record.read(completion, settings.extract), window, request.problem)
            if isinstance(found, Unparsable):
                return record.unparsable(found)
            windows.follow(window, found)
        return record.answered(windows.answer)

    def _example(
        self, new_registers: int, problem: AllocationProblem, answer: Mapping[str, str]
    ) -> Iterator[Turn]:
        for turn in self.demonstrations(problem, answer, new_registers=new_registers):
            yield turn
            return


def _asked_for(
    found: dict[str, str] | Unparsable, window: Window, problem: AllocationProblem
) -> dict[str, str] | Unparsable:
    """The answer to a window, which may name only registers that the window asks for."""
    if isinstance(found, Unparsable):
        return found
    count = len(problem.function.virtual_registers)
    for key in found:
        number = int(key[1:])
        if number < count and number not in window.new:
            return Unparsable(UnparsableReason.NOT_ASKED, f"{key} is not asked for here")
    return found


def _points_of_instructions(problem: AllocationProblem) -> list[int]:
    """The points of each instruction, counted over the function, as a set of bits."""
    found: dict[tuple[int, int], int] = {}
    for point, place in enumerate(problem.liveness.points):
        if place[1] >= 0:
            found[place] = found.get(place, 0) | 1 << point
    return [found[place] for place in sorted(found)]


class _Windows:
    """The windows of a function, and the answers so far."""

    def __init__(self, problem: AllocationProblem, new_registers: int = WINDOW_REGISTERS) -> None:
        self.problem = problem
        self.state = RegisterState(problem)
        self.answer: dict[str, str] = {}
        self.windows = cut_windows(problem, new_registers)
        self.classes = problem.function.classes()
        self.known = {f"%{number}" for number in range(len(problem.function.virtual_registers))}
        lines = problem.normalized.splitlines()
        self.header = [line for line in lines if line.startswith(("registers ", "reserved "))]
        self.points = _points_of_instructions(problem)
        self.again = {number for window in self.windows for number in window.known}

    def unblamed(self, request: Request) -> dict[Window, dict[str, str]]:
        """The windows of the last answer that no finding blames, with their answers.

        Empty if all windows are to be asked about: there is no answer so far, or
        no window is to blame.
        """
        answered = [attempt for attempt in request.feedback if assignment_of(attempt) is not None]
        if not answered:
            return {}
        assignment = assignment_of(answered[-1]) or {}
        wrong = set(blamed(answered[-1], [n for window in self.windows for n in window.new]))
        kept = {}
        for window in self.windows:
            keys = [f"%{number}" for number in window.new]
            if wrong.isdisjoint(window.new) and assignment.keys() >= set(keys):
                kept[window] = {key: assignment[key] for key in keys}
        return kept if wrong else {}

    def prompts(self) -> Iterator[tuple[Window, str]]:
        """Each window with something to place, and its prompt; follow each before the next."""
        for number, window in enumerate(self.windows, 1):
            if window.new:
                yield window, self._prompt(number, window)

    def follow(self, window: Window, answer: Mapping[str, str]) -> None:
        """Takes over the answer to a window. A name that is not legal occupies nothing."""
        asked = {f"%{number}": number for number in window.new}
        classes, placements = self.problem.function.virtual_registers, self.problem.placements
        for key, name in answer.items():
            if key not in asked:
                if key not in self.known:
                    self.answer[key] = name
                continue
            self.answer[key] = name
            base = placements.by_name[classes[asked[key]]].get(name)
            if base is not None:
                self.state.place(asked[key], base)

    def _prompt(self, number: int, window: Window) -> str:
        lines = [f"window {number} of {len(self.windows)}", *self.header, *self._classes(window)]
        classes = self.problem.function.virtual_registers
        lines.append("place " + " ".join(f"%{n}:{classes[n].name}" for n in window.new))
        given = [register for register in window.known if f"%{register}" in self.answer]
        if given:
            texts = [f"{self._typed(register)}={self.answer[f'%{register}']}" for register in given]
            lines.append("given " + " ".join(texts))
        if beyond := [register for register in window.new if self._lives_beyond(window, register)]:
            lines.append("beyond " + " ".join(f"%{register}" for register in beyond))
        lines += self._free(window)
        return "\n".join([*lines, *window.lines, ""])

    def _classes(self, window: Window) -> Iterator[str]:
        """The header's lines of the first class and of the classes in the window."""
        function = self.problem.function
        files = {file.name: file for file in function.files}
        mentioned = {function.virtual_registers[n] for n in (*window.new, *window.known)}
        for place, register_class in enumerate(self.classes):
            if place == 0 or register_class in mentioned:
                yield f"class {format_class(register_class, files)}"

    def _typed(self, register: int) -> str:
        register_class = self.problem.function.virtual_registers[register]
        typed = f"%{register}:{register_class.name}"
        return f"%{register}" if register_class == self.classes[0] else typed

    def _lives_beyond(self, window: Window, register: int) -> bool:
        """True if a register is read after the window, or lives at a point outside it."""
        if register in self.again:
            return True
        here = 0
        for instruction in window.instructions:
            here |= self.points[instruction]
        return any((live | defined) & ~here for live, defined in self.state.lifetimes(register))

    def _free(self, window: Window) -> Iterator[str]:
        """For each class the bases that all its new registers can have, and what else each can."""
        classes = self.problem.function.virtual_registers
        legal = {register: self.state.legal(register) for register in window.new}
        for register_class in self.classes:
            members = [register for register in window.new if classes[register] == register_class]
            if members:
                common = set.intersection(*(set(legal[register]) for register in members))
                yield f"free {register_class.name} {self._runs(common, register_class)}"
                for register in members:
                    if more := legal[register].keys() - common:
                        yield f"%{register} also {self._runs(more, register_class)}"

    def _runs(self, bases: Container[int], register_class: RegisterClass) -> str:
        """The first bases one by one, and runs of the others; `none` if there are none."""
        names = self.problem.placements.legal[register_class]
        ranges = base_ranges(self.problem, register_class)
        listed = [base for legal in ranges for base in legal if base in bases]
        lowest, others = listed[:ONE_BY_ONE], set(listed[ONE_BY_ONE:])
        texts = [names[base] for base in lowest]
        for first, last in runs_of(others, ranges):
            texts.append(names[first] if first == last else f"{names[first]}..{names[last]}")
        return " ".join(texts) or "none"


FORMAT = WindowFormat()
