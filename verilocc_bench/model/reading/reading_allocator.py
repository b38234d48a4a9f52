"""The allocators of the format `reading`: the model, and beside it a rule and a copier.

The model is greedy and free: its own words count, and a word that no answer has ends the attempt.
The rule drafts what it may say next, which saves time (`talk.converse`).
Further samples differ by the words that stand for names, which are drawn anew for each, and by a
temperature where one is asked for. Guided, a name that got a wrong register may not have it again.
"""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from verilocc_bench.allocators import (
    Answer,
    Assistance,
    LabelUse,
    PromptIdentity,
    Request,
    Response,
    SingleAllocator,
    answer_from_assignment,
)
from verilocc_bench.errors import AllocationFailed, InputError, MissingExtraError
from verilocc_bench.files import revision_of
from verilocc_bench.ir import PhysicalRegister
from verilocc_bench.model.language_model import Ask, Completion, Finish, Message, TokenSampling
from verilocc_bench.model.reading.conversation import (
    INDEX,
    WORDS,
    Conversation,
    Forward,
    FreshNames,
    Places,
    Text,
    discuss,
    list_of,
    number_of,
)
from verilocc_bench.model.reading.cut import cut, units_of
from verilocc_bench.model.reading.reading_format import FORMAT
from verilocc_bench.model.reading.talk import NoRoom, Speaker, WrongWord, converse
from verilocc_bench.model.reading.teaching import taught
from verilocc_bench.model.transcripts import Transcripts
from verilocc_bench.settings.allocator import AllocatorSettings, Decoding, FeedbackKind
from verilocc_bench.settings.language_model import LocalModelSettings, SamplingStrategy
from verilocc_bench.verification import FastVerifier

if TYPE_CHECKING:
    from verilocc_bench.model.reading.reading_network import ReadingNetwork

CHANGE = "adapter.safetensors"


def registers_of(text: Text, places: dict[int, str]) -> dict[int, PhysicalRegister]:
    """An assignment of what was said of names. Raises WrongWord."""
    files = text["registers"]
    for register in places.values():
        if register[0] not in files:
            raise WrongWord(f"{register} of a file that the target lacks")
    return {
        name: PhysicalRegister(files[register[0]], int(register[1:]))
        for name, register in places.items()
    }


def _chance(request: Request) -> random.Random:
    digest = hashlib.sha256(f"reading {request.seed}".encode()).digest()
    return random.Random(int.from_bytes(digest[:8], "big"))  # noqa: S311


def first_conversation(name: str, request: Request, settings: LocalModelSettings) -> str:
    """What the model is shown first, a turn a line; behind each `=>` it answers.

    Raises InputError for settings that mean nothing to it, or a text that the format cannot show.
    """
    _check(name, settings)
    text = cut(request.problem.normalized)
    try:
        forward = Forward(text, FreshNames(_chance(request)).of(text))
    except ValueError as error:
        raise InputError(f"the format {FORMAT.name} cannot show it: {error}") from None
    turns = (" ".join((*turn.shown, "=>")) for turn in forward.turns)
    return "\n".join((" ".join(forward.opening), *turns))


def _answer(request: Request, place: Callable[[Text, random.Random], dict[int, str]]) -> Answer:
    """What comes of a text. Raises AllocationFailed."""
    try:
        text = cut(request.problem.normalized)
        places = place(text, _chance(request))
        assignment = registers_of(text, places)
    except WrongWord as error:
        raise AllocationFailed(str(error), "unparsable") from None
    except (InputError, NoRoom, ValueError) as error:
        raise AllocationFailed(str(error)) from None
    return Answer(answer_from_assignment(request.problem, assignment))


def banned_registers(
    request: Request, conversation: Conversation, names: Mapping[int, str]
) -> dict[str, list[str]]:
    """Registers that names had in earlier attempts and may not have again, by the name's word.

    Each attempt bans one register. A finding blames the name that is placed last of those that it
    names. Of all names that are blamed, the one placed first is banned from its register.
    """
    turns: dict[str, int] = {}
    for at, turn in enumerate(conversation.turns):
        if turn.ask == "place":
            turns.setdefault(turn.shown[-1], at)
    placed = {f"%{n}": (turns[word], word) for n, word in names.items() if word in turns}
    banned: dict[str, list[str]] = {}
    for attempt in request.feedback if placed else ():
        if not attempt.findings or attempt.answer is None:
            continue
        # What an allocator is told are the first findings in the order of the text: here count all.
        findings = FastVerifier(request.problem).verify(attempt.answer.assignment).findings
        named = [[r for r in finding.registers if r in placed] for finding in findings]
        blamed = [max(registers, key=placed.__getitem__) for registers in named if registers]
        if blamed:
            name = min(blamed, key=placed.__getitem__)
            units = units_of(attempt.answer.assignment.get(name, ""))[:1]
            known = [unit for unit in units if unit in INDEX]
            banned.setdefault(placed[name][1], []).extend(known)
    return banned


def _discussed(
    text: Text,
    draw: random.Random,
    speak: Callable[[Conversation, Mapping[int, str]], Sequence[Sequence[str]]],
) -> dict[int, str]:
    names = FreshNames(draw).of(text)
    places: Places = discuss(text, names, lambda conversation: speak(conversation, names))
    return {name: places[word] for name, word in names.items() if word in places}


def _written(conversation: Conversation, speaker: Speaker) -> tuple[str, str]:
    """The opening, and the turns as they stand: a line each, with the model's words behind `=>`."""
    unfinished = speaker.own - sum(map(len, speaker.answers))
    last = speaker.words[len(speaker.words) - unfinished :]
    answers = [*speaker.answers, [WORDS[n] if n < len(WORDS) else "<pad>" for n in last]]
    turns = zip(conversation.turns, answers, strict=False)
    lines = (" ".join((*turn.shown, "=>", *answer)) for turn, answer in turns)
    return " ".join(conversation.opening), "\n".join(lines)


class ReadingAllocator(SingleAllocator):
    """The reference model. Raises InputError for settings that mean nothing to it.

    With `jobs` processes each has a network of its own, and this one has none.
    """

    label_use: ClassVar[LabelUse] = LabelUse.NONE
    assistance: ClassVar[Assistance] = FORMAT.assistance
    tracks: ClassVar[tuple[str, ...]] = ("assign",)
    deterministic: ClassVar[bool] = False
    keeps_groups_whole: ClassVar[bool] = True

    def __init__(
        self, name: str, folder: Path, settings: LocalModelSettings, jobs: int = 1
    ) -> None:
        _check(name, settings)
        try:
            from verilocc_bench.model.reading.reading_network import load_network
        except ImportError:
            raise MissingExtraError("transformers", "smollm2", f"the model {name!r}") from None
        network = load_network(folder / CHANGE, settings)
        self.begin(name, network, replace(settings, dtype=network.dtype))
        self.revision = revision_of([folder / CHANGE])
        if jobs > 1:
            self._in_processes = True
            del self._network

    def begin(self, name: str, network: ReadingNetwork, settings: LocalModelSettings) -> None:
        """With a network at hand."""
        self.name, self._network, self.revision = name, network, "none"
        self._in_processes = False
        self.transcripts: Transcripts | None = None
        self._said: list[Completion] = []
        self.tell_tokens: Callable[[int], object] = lambda _: None
        self.settings = replace(
            settings,
            decoding=settings.decoding or Decoding.FREE,
            prompt_format=FORMAT.name,
            strategy=settings.strategy or SamplingStrategy.GREEDY,
        )

    @property
    def group_size(self) -> int | None:  # type: ignore[override]
        """See Allocator."""
        return None if self._in_processes else 1

    @property
    def prompt(self) -> PromptIdentity:  # type: ignore[override]
        """See Allocator."""
        return PromptIdentity(FORMAT.name, FORMAT.version, FORMAT.source_hash, 0)

    def respond(self, requests: Sequence[Request]) -> Iterator[tuple[int, Response]]:
        """See Allocator. Keeps what was said."""
        for request, (place, response) in zip(requests, super().respond(requests), strict=True):
            if self.transcripts is not None:
                for number, said in enumerate(self._said):
                    ask = Ask((Message("user", said.sent),), said.completion_tokens or 0)
                    self.transcripts.keep(request, number, ask, TokenSampling(request.seed), said)
            yield place, response

    def close(self) -> None:
        """Ends the transcripts; the model stays."""
        if self.transcripts is not None:
            self.transcripts.close()
            self.transcripts = None

    def allocate(self, request: Request) -> Answer:
        """See Allocator."""
        answer = self.respond_to(request).answer
        assert answer is not None
        return answer

    def respond_to(self, request: Request) -> Response:
        """The answer with its counts. Raises AllocationFailed."""
        counts = {"completion_tokens": 0, "prompt_tokens": 0, "asks": 0}
        self._said.clear()

        def speak(conversation: Conversation, names: Mapping[int, str]) -> list[list[str]]:
            speaker = Speaker(conversation, banned_registers(request, conversation, names))
            started, finish, message = time.perf_counter(), Finish.STOP, None
            try:
                self._converse(speaker, request.seed)
            except (NoRoom, WrongWord) as error:
                finish = Finish.LENGTH if isinstance(error, NoRoom) else Finish.STOP
                message = str(error)
                raise
            finally:
                shown = len(speaker.words) - speaker.own
                counts["asks"] += 1
                counts["completion_tokens"] += speaker.own
                counts["prompt_tokens"] += shown
                opening, turns = _written(conversation, speaker)
                seconds = time.perf_counter() - started
                said = Completion(turns, finish, shown, speaker.own, message=message, sent=opening)
                self._said.append(replace(said, seconds=seconds))
            return speaker.answers

        try:
            answer = _answer(request, lambda text, draw: _discussed(text, draw, speak))
        except AllocationFailed as error:
            error.details = counts
            raise
        return Response(answer, details=counts)

    def _converse(self, speaker: Speaker, seed: int) -> None:
        from verilocc_bench.model.reading.reading_network import LONGEST, chance

        draw: Any = None
        if self.settings.strategy is not SamplingStrategy.GREEDY and self.settings.temperature:
            draw = chance(self.settings.temperature, seed)
        self._network.begin()
        converse(
            speaker,
            lambda words, place, banned=(): self._network.read(words, place, draw, banned),
            min(LONGEST, self.settings.maximum_tokens or LONGEST),
            self.tell_tokens,
        )


def _check(name: str, settings: LocalModelSettings) -> None:
    """Raises InputError for settings that mean nothing to a model of this format."""
    if settings.prompt_format not in (None, FORMAT.name):
        raise InputError(f"this model knows the prompt format {FORMAT.name} alone", source=name)
    if settings.decoding is Decoding.CONSTRAINED:
        raise InputError(f"a model of the format {FORMAT.name} is free or guided", source=name)
    if settings.strategy is SamplingStrategy.PRIORITY:
        raise InputError(f"priority sampling is not for the format {FORMAT.name}", source=name)
    if settings.feedback is FeedbackKind.REPAIR:
        raise InputError(f"feedback 'repair' is not for the format {FORMAT.name}", source=name)
    plain = LocalModelSettings()
    for value, flag in (
        (settings.few_shot, "--few-shot"),
        (settings.engine, "--engine"),
        (settings.window_registers, "--window-registers"),
        (settings.model_revision, "--model-revision"),
        (settings.chat, "--chat"),
        (settings.thinking_tokens, "--thinking-tokens"),
        (settings.extract, "--extract"),
        (settings.system, "--system"),
        (settings.reasoning_effort, "--reasoning-effort"),
        (settings.chat_template_kwargs, "--chat-template-kwargs"),
        (settings.trust_remote_code, "--trust-remote-code"),
        (settings.top_p != plain.top_p, "--top-p"),
        (settings.batch_size != plain.batch_size, "--batch-size"),
        (settings.tensor_parallel != plain.tensor_parallel, "--tensor-parallel"),
    ):
        if value:
            raise InputError(f"{flag} means nothing to the format {FORMAT.name}", source=name)


@dataclass(frozen=True)
class BesideAllocator(SingleAllocator):
    """Allocates from what the model is shown, by other means."""

    name: str
    description: str
    place: Callable[[Text, random.Random], dict[int, str]]
    settings: AllocatorSettings = field(default_factory=AllocatorSettings)

    revision: ClassVar[None] = None
    assistance: ClassVar[Assistance] = FORMAT.assistance
    deterministic: ClassVar[bool] = True
    label_use: ClassVar[LabelUse] = LabelUse.NONE
    tracks: ClassVar[tuple[str, ...]] = ("assign",)

    def allocate(self, request: Request) -> Answer:
        """See Allocator. Raises AllocationFailed."""
        return _answer(request, self.place)


def by_rule(text: Text, draw: random.Random) -> dict[int, str]:
    """All that the teacher says. Raises AllocationFailed where it finds no place."""

    def speak(conversation: Conversation, _names: Mapping[int, str]) -> list[list[str]]:
        _, answers, ends = taught(conversation)
        if not ends:
            raise AllocationFailed("no list has a block that is wide enough")
        return [[WORDS[word] for word in answer] for answer in answers]

    return _discussed(text, draw, speak)


def copied(text: Text, _: random.Random) -> dict[int, str]:
    """A known name as before, a new one on the lowest registers never used.

    Raises AllocationFailed where these run out.
    """
    left = {
        file: {u for u in range(count) if f"{file}{u}" not in text["fixed"]}
        for file, count in text["budget"].items()
    }
    kinds: dict[int, str] = {}
    for item in (item for line in text["lines"] for item in line):
        name, kind = (item, text["default"]) if isinstance(item, int) else item
        kinds.setdefault(name, kind)
    places: dict[int, str] = {}
    backwards = (number_of(item) for line in reversed(text["lines"]) for item in line)
    for name in dict.fromkeys(backwards):
        file, step = list_of(kinds[name])
        width = int(kinds[name].split()[0])
        fitting = (s for s in sorted(left[file]) if s % step == 0)
        start = next((s for s in fitting if set(range(s, s + width)) <= left[file]), None)
        if start is None:
            raise AllocationFailed("no registers are left that were never used")
        left[file] -= set(range(start, start + width))
        places[name] = f"{file}{start}"
    return places


BESIDE = {
    allocator.name: allocator
    for allocator in (
        BesideAllocator(
            "reference-rule",
            "the rule that the reference model has learnt, without a network",
            by_rule,
        ),
        BesideAllocator(
            "reference-copier", "each virtual register on registers never used, in order", copied
        ),
    )
}
"""The allocators beside the model, by name."""
