"""`text-notes-json`: notes in plain JSON, for models that have words of their own."""

from __future__ import annotations

import random
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from verilocc_bench.allocators import (
    Assistance,
    FailureKind,
    Request,
    Response,
    answer_from_assignment,
)
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.errors import InputError
from verilocc_bench.ir import parse_function
from verilocc_bench.model.language_model import Ask, Completion, Episode
from verilocc_bench.model.prompts.conversation import (
    Turn,
    check_settings,
    example_turns,
    messages,
)
from verilocc_bench.model.prompts.episode_record import EpisodeRecord
from verilocc_bench.model.prompts.feedback import feedback_text, latest_attempt
from verilocc_bench.model.prompts.notes.ledger import Contradiction, noted_assignment
from verilocc_bench.model.prompts.notes.window import DryWindow, WrongWord
from verilocc_bench.model.prompts.reading import Unparsable, UnparsableReason
from verilocc_bench.model.prompts.source_hash import source_hash
from verilocc_bench.model.prompts.text_notes.episode import read_text
from verilocc_bench.model.prompts.text_notes.ledger import empty_text_ledger
from verilocc_bench.model.prompts.text_notes.source_hash import text_notes_source_hash
from verilocc_bench.model.prompts.text_notes_json.lists import FreeLists
from verilocc_bench.model.prompts.text_notes_json.source_hash import hash_with_folder
from verilocc_bench.model.prompts.text_notes_json.told import by_rule, turns_until_wrong
from verilocc_bench.model.prompts.text_notes_json.window import JsonWindow
from verilocc_bench.model.prompts.text_notes_json.wording import (
    SYSTEM,
    dry_text,
    read_dry,
    read_registers,
    window_text,
)
from verilocc_bench.settings.allocator import Decoding, FeedbackKind
from verilocc_bench.settings.language_model import LanguageModelSettings

DESCRIPTION = (
    "`text-notes-json`: the function's text backwards, a few mentions of virtual registers a "
    "prompt, with the notes that the model's earlier answers make: what each has, and what is free."
)

EXAMPLE_WINDOWS = 3
"""An example shows so many windows that give registers, and one of a loop."""

ASKED_AGAIN = 8
"""Checked decoding asks for a window again at most so many times."""

FINDINGS_SHOWN = 8

TOKENS_BESIDES = 32
TOKENS_A_MENTION = {False: 128, True: 24}
"""By whether the window is dry; else a mention's object may have lists of free blocks in it."""


@dataclass(frozen=True, slots=True)
class TextNotesJsonFormat:
    """The model reads windows backwards and keeps notes of what it gave and of what is free."""

    name: str = "text-notes-json"
    version: int = 2
    assistance: Assistance = Assistance.TEXT
    shows: str = "mentions in the text, and its own notes"
    description: str = DESCRIPTION
    system: str = SYSTEM
    tracks: tuple[str, ...] = ("assign",)
    has_windows: bool = False

    @property
    def source_hash(self) -> str:
        """See PromptFormat."""
        return hash_with_folder(source_hash(), text_notes_source_hash())

    def check(self, settings: LanguageModelSettings) -> None:
        """See PromptFormat."""
        if settings.decoding is Decoding.CONSTRAINED:
            raise InputError(f"prompt format {self.name!r} is free, checked or guided")
        if settings.feedback is FeedbackKind.REPAIR:
            raise InputError(f"prompt format {self.name!r} cannot repair: notes go on from notes")
        check_settings(self.name, settings, can_check=True)

    def demonstrations(
        self,
        problem: AllocationProblem,
        answer: Mapping[str, str],
        *,
        new_registers: int | None = None,  # noqa: ARG002  windows are cut by mentions
    ) -> Iterator[Turn]:
        """One turn for each window, up to the one in which the answer contradicts the notes.

        Notes know less than a compiler of what lives together, so that its answer may.
        """

        def choose(register: int, shape: str, lists: FreeLists) -> str | None:
            del shape, lists
            return answer.get(f"%{register}")

        yield from turns_until_wrong(problem.function, choose)

    def pieces(self, completion: str) -> tuple[str, ...]:
        """See PromptFormat. Nothing is constrained, so that nothing is cut."""
        return (completion,)

    def episode(self, request: Request, settings: LanguageModelSettings) -> Episode:
        """See PromptFormat."""
        return (yield from _NotesEpisode(request, settings).whole())


class _NotesEpisode:
    """One sample: its notes, and what is told beside the windows."""

    def __init__(self, request: Request, settings: LanguageModelSettings) -> None:
        self.request, self.settings = request, settings
        self.record = EpisodeRecord()
        self.turns = example_turns(request, settings, _example)
        if settings.few_shot:
            self.record.more["examples"] = len(self.turns)
        if settings.decoding is Decoding.CHECKED:
            self.record.more["asked_again"] = 0
        self.attempt = latest_attempt(request, settings)

    def whole(self) -> Episode:
        function = self.request.problem.function
        ledger = empty_text_ledger(function)
        reading = read_text(function, ledger, random.Random(0), JsonWindow)  # noqa: S311
        again = False
        wrong: Unparsable | None = None
        left = ASKED_AGAIN
        while True:
            try:
                window = reading.send(True) if again else next(reading)
            except StopIteration:
                problem = self.request.problem
                answer = answer_from_assignment(problem, noted_assignment(ledger))
                return self.record.answered(answer)
            except InputError as error:
                details = self.record.details()
                return Response(None, FailureKind.NO_ANSWER, str(error), details=details)
            heard = yield from self._window(window, wrong)
            if isinstance(heard, Response):
                return heard
            wrong, again = heard, heard is not None
            if heard is None:
                left = ASKED_AGAIN
            elif self.settings.decoding is Decoding.CHECKED and left:
                left -= 1
                self.record.more["asked_again"] += 1
            else:
                return self.record.unparsable(heard)

    def _window(
        self, window: DryWindow | JsonWindow, wrong: Unparsable | None
    ) -> Generator[Ask, Completion, Unparsable | Response | None]:
        """Asks for a window; what is wrong with the answer, or a response that ends it all."""
        if isinstance(window, DryWindow):
            registers, prompt = [each.register for each in window.mentions], dry_text(window)
        else:
            registers, prompt = [item.register for _, item in window.asked()], window_text(window)
            if not registers:
                window.end()
                return None
        if wrong is not None:
            prompt += f"Your last answer to this was wrong: {wrong.message}. Answer again.\n"
        names = [f"%{register}" for register in registers]
        prompt += feedback_text(self.attempt, FINDINGS_SHOWN, names)
        conversation = messages(SYSTEM, self.turns, prompt)
        most = TOKENS_A_MENTION[isinstance(window, DryWindow)]
        limit = TOKENS_BESIDES + most * len(names)
        completion = yield Ask(conversation, self.settings.maximum_tokens or limit)
        self.record.add(completion)
        failed = self.record.failed(completion, None)
        if failed is not None:
            return failed
        try:
            if isinstance(window, DryWindow):
                return _hear_dry(window, completion, names)
            return _hear(window, completion, names)
        except (Contradiction, WrongWord) as error:
            return Unparsable(UnparsableReason.CONTRADICTION, str(error))


def _hear(window: JsonWindow, completion: Completion, names: list[str]) -> Unparsable | None:
    """Takes an answer into the notes. Raises Contradiction or WrongWord."""
    words = read_registers(completion, names)
    if isinstance(words, Unparsable):
        return words
    for (place, _), word in zip(list(window.asked()), words, strict=False):
        if not window.hear(place, word):
            return None
    window.end()
    return None


def _hear_dry(window: DryWindow, completion: Completion, names: list[str]) -> Unparsable | None:
    """Takes an answer into what lives around a loop. Raises Contradiction or WrongWord."""
    words = read_dry(completion, names)
    if isinstance(words, Unparsable):
        return words
    for mention, word in zip(window.mentions, words, strict=False):
        window.hear(mention, word)
    return None


def _example(problem: AllocationProblem, answer: Mapping[str, str]) -> Iterator[Turn]:
    """A few windows of an example, answered by the rule: the compiler's answer is not its."""
    del answer
    yield from _example_turns(problem.normalized)


@lru_cache(maxsize=16)
def _example_turns(normalized: str) -> list[Turn]:
    """The first window of a loop, and some that give registers, spread over the function."""
    turns = list(turns_until_wrong(parse_function(normalized), by_rule))
    dry = [turn for turn in turns if '"loop": ' in turn.prompt]
    giving = [turn for turn in turns if '"free": {"' in turn.completion]
    step = max(1, -(-len(giving) // EXAMPLE_WINDOWS))
    return [*giving[::step][:EXAMPLE_WINDOWS], *dry[:1]]


TEXT_NOTES_JSON = TextNotesJsonFormat()
