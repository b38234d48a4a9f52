"""What `state` and `candidates` have in common: one virtual register after the other.

Virtual registers come in the order of model.prompts.decision_features: the widest
first; of one width by first live point.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from verilocc_bench.allocators import (
    Assistance,
    Feedback,
    Request,
    Response,
)
from verilocc_bench.allocators.ejection import Ejection
from verilocc_bench.allocators.register_state import RegisterState
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.ir import RegisterClass
from verilocc_bench.model.language_model import (
    Ask,
    Choice,
    Completion,
    Constraint,
    Episode,
    Segment,
)
from verilocc_bench.model.prompts.conversation import (
    TRACKS,
    Turn,
    check_settings,
    example_turns,
    messages,
    no_place,
)
from verilocc_bench.model.prompts.decision_features import decision_order
from verilocc_bench.model.prompts.episode_record import EpisodeRecord
from verilocc_bench.model.prompts.feedback import (
    feedback_text,
    latest_attempt,
    rejected_names,
)
from verilocc_bench.model.prompts.reading import Unparsable, UnparsableReason, read_word
from verilocc_bench.model.prompts.source_hash import source_hash
from verilocc_bench.settings.allocator import Decoding
from verilocc_bench.settings.language_model import LanguageModelSettings

TOKENS = 16
"""The limit of a completion: a name, and white space."""

END = "\n"
"""What a completion ends with: it tells v1 from the beginning of v10."""

FINDINGS_SHOWN = 4
EXAMPLE_DECISIONS = 4
"""So many decisions of each example are shown, spread over it."""


@dataclass(frozen=True, slots=True)
class View:
    """The lines of a prompt after the one that says what is asked.

    `names` are the registers that they offer. None leaves the choice to the
    model, which then can say something even if nothing is legal.
    """

    lines: tuple[str, ...]
    names: tuple[str, ...] | None = None


class Viewer(Protocol):
    """Shows the decisions of one function."""

    def __call__(self, state: RegisterState, register: int, choices: Mapping[int, str], /) -> View:
        """The view of one decision, given its choices: bases and their names."""
        ...

    def query(self, state: RegisterState, register: int) -> str:
        """The line that says what is asked."""
        ...


@dataclass(frozen=True, slots=True)
class DecisionFormat:
    """A format of one decision a prompt; `make_viewer` makes the viewer of a function."""

    name: str
    assistance: Assistance
    shows: str
    description: str
    system: str
    make_viewer: Callable[[AllocationProblem], Viewer]
    version: int = 1
    tracks: tuple[str, ...] = TRACKS
    has_windows: bool = False
    ends_with_token: bool = False

    @property
    def decisions(self) -> DecisionFormat:
        """See PromptFormat."""
        return self

    @property
    def source_hash(self) -> str:
        """See PromptFormat."""
        return source_hash()

    def check(self, settings: LanguageModelSettings) -> None:
        """See PromptFormat."""
        check_settings(self.name, settings, can_backtrack=True, can_repair=True)

    def episode(self, request: Request, settings: LanguageModelSettings) -> Episode:
        """See PromptFormat."""
        turns = example_turns(request, settings, self._examples)
        run = _DecisionEpisode(self, request, settings, turns)
        return (yield from run.whole())

    def demonstrations(
        self,
        problem: AllocationProblem,
        answer: Mapping[str, str],
        *,
        every: int = 1,
        new_registers: int | None = None,  # noqa: ARG002  there are no windows
    ) -> Iterator[Turn]:
        """One turn for each decision that has an answer; see PromptFormat."""
        state, viewer = RegisterState(problem), self.make_viewer(problem)
        due = 0
        for index, register in enumerate(decision_order(problem)):
            name = answer.get(f"%{register}")
            if index >= due and name is not None:
                view = viewer(state, register, state.legal(register))
                if view.names is None or name in view.names:
                    due += every
                    yield Turn(_prompt(viewer, state, register, view), name)
            _follow(state, register, name)

    def pieces(self, completion: str) -> tuple[str, ...]:
        """See PromptFormat."""
        return (completion, END)

    def _examples(self, problem: AllocationProblem, answer: Mapping[str, str]) -> Iterator[Turn]:
        every = -(-len(problem.function.virtual_registers) // EXAMPLE_DECISIONS)
        yield from self.demonstrations(problem, answer, every=max(every, 1))


class _DecisionEpisode:
    """One episode: what its asks have in common."""

    def __init__(
        self,
        style: DecisionFormat,
        request: Request,
        settings: LanguageModelSettings,
        turns: Sequence[Turn],
    ) -> None:
        self.style, self.settings, self.turns = style, settings, turns
        self.problem = request.problem
        self.viewer = style.make_viewer(self.problem)
        self.order = decision_order(self.problem)
        self.attempt: Feedback | None = latest_attempt(request, settings)
        self.rejected = rejected_names(request, settings, self.order)
        self.backtracks = settings.backtracks or 0
        self.record = EpisodeRecord()
        if settings.few_shot:
            self.record.more["examples"] = len(turns)
        if self.backtracks:
            self.record.more["backtracks"] = 0

    def whole(self) -> Episode:
        """One word for every virtual register.

        A free word is taken as it is; a word that is not a base occupies
        nothing. A constrained word is legal. At a dead end room is made, as
        often as the settings allow. After that a dead end ends a constrained
        episode; it ends a free one if the format has nothing to offer.
        """
        constrained = self.settings.decoding is Decoding.CONSTRAINED
        search = Ejection(RegisterState(self.problem), self.order)
        answer: dict[int, str] = {}
        while (register := search.register) is not None:
            choices = search.choices()
            if not choices and search.steps < self.backtracks and search.eject():
                self.record.more["backtracks"] = search.steps
                answer[register] = self._name(register, search.state.placed[register])
                continue
            view = self.viewer(search.state, register, choices)
            if not choices and (constrained or view.names is not None):
                return self.record.dead_end(no_place(search.state, register, search.decided))
            names = self._repairs(register, view)
            if constrained:
                names = tuple(choices.values()) if view.names is None else view.names
            word = yield from self._ask(search.state, register, view, names)
            if isinstance(word, Response):
                return word
            answer[register] = word
            search.take(self._base(register, word))
        return self.record.answered({f"%{number}": answer[number] for number in sorted(answer)})

    def _ask(
        self, state: RegisterState, register: int, view: View, names: tuple[str, ...] | None
    ) -> Generator[Ask, Completion, str | Response]:
        """The word that the model says to a decision, one of the names if any are given."""
        told = feedback_text(self.attempt, FINDINGS_SHOWN, [f"%{register}"])
        prompt = _prompt(self.viewer, state, register, view) + told
        completion = yield Ask(
            messages(self.style.system, self.turns, prompt),
            self.settings.maximum_tokens or TOKENS,
            (END,) if names is None else (),
            None if names is None else _one_of(names),
        )
        self.record.add(completion)
        failed = self.record.failed(completion, None)
        if failed is not None:
            return failed
        word = read_word(completion)
        if not isinstance(word, Unparsable) and names is not None and word not in names:
            message = f"{word!r} is not among the {len(names)} registers offered"
            word = Unparsable(UnparsableReason.NOT_A_CHOICE, message)
        if isinstance(word, Unparsable):
            return self.record.unparsable(Unparsable(word.reason, f"%{register}: {word.message}"))
        return word

    def _repairs(self, register: int, view: View) -> tuple[str, ...] | None:
        """The names that may be said if some were rejected before; None if all may.

        They are those of the prompt's offers, or of the whole class if all
        offers were rejected, legal or not.
        """
        rejected = self.rejected.get(register)
        if not rejected:
            return None
        bases = {self._base(register, name) for name in rejected}
        in_class = self.problem.placements.legal[self._class(register)].values()
        for names in (view.names or (), in_class):
            left = tuple(name for name in names if self._base(register, name) not in bases)
            if left:
                return left
        return None

    def _name(self, register: int, base: int) -> str:
        return self.problem.placements.legal[self._class(register)][base]

    def _base(self, register: int, word: str) -> int | None:
        """The base of that name; None if the class has none."""
        return self.problem.placements.by_name[self._class(register)].get(word)

    def _class(self, register: int) -> RegisterClass:
        return self.problem.function.virtual_registers[register]


def _prompt(viewer: Viewer, state: RegisterState, register: int, view: View) -> str:
    return "\n".join([viewer.query(state, register), *view.lines, ""])


def _follow(state: RegisterState, register: int, name: str | None) -> None:
    """Places a register as answered, if the answer is a base of its class."""
    register_class = state.problem.function.virtual_registers[register]
    base = state.problem.placements.by_name[register_class].get(name or "")
    if base is not None:
        state.place(register, base)


def _one_of(names: tuple[str, ...]) -> Constraint:
    def constraint() -> Generator[Segment, str, None]:
        yield Choice(names, END)

    return constraint
