"""Makes an allocator of a prompt format and a language model.

Each request is a conversation: its episode's asks, each with how the tokens
of its completion are picked. Conversations run side by side. In each round
what all of them ask is completed together, and each goes on with its
completion; a response is given as soon as its conversation ends, and those
that need more rounds go on without it. In priority sampling the samples of
one function follow one another, for each needs those before it.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar

from verilocc_bench.allocators import (
    Answer,
    Assistance,
    FailureKind,
    LabelUse,
    PromptIdentity,
    Request,
    Response,
)
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.errors import AllocationFailed, InfrastructureError, InputError
from verilocc_bench.model.advice import Advice
from verilocc_bench.model.conversation import Conversation, Lane, converse
from verilocc_bench.model.fitting import Fitting
from verilocc_bench.model.language_model import (
    Ask,
    Completion,
    LanguageModel,
    RemoteModel,
    TokenSampling,
)
from verilocc_bench.model.priority import PrioritySearch
from verilocc_bench.model.prompts import PromptFormat, get_prompt_format
from verilocc_bench.model.transcripts import Transcripts
from verilocc_bench.settings.allocator import Decoding
from verilocc_bench.settings.language_model import (
    WINDOW_REGISTERS,
    Extraction,
    LanguageModelSettings,
    LocalModelSettings,
    SamplingStrategy,
)
from verilocc_bench.settings.prompt_formats import AUTO, DEFAULT_PROMPT_FORMAT

ROUNDS = 4
"""How many rounds a slow answer of a server can hold up at most."""

KEPT_SEARCHES = 64
"""Of how many functions the priority search is kept; others begin anew when asked for more."""

FAILURES_ALONE = 2
"""The model is out of reach after this number of asks in a row that failed alone."""


def language_model_allocator(name: str, settings: LocalModelSettings) -> LanguageModelAllocator:
    """The allocator of a language model in a folder or on the Hub.

    The model's configuration decides what the settings leave open: the prompt
    format, sampling, and the width of windows. Attempts at a guided answer must differ, so they are
    drawn. Raises InputError if the model, the prompt format or the settings
    cannot be used, alone or together.
    """
    prompt_format = first_format(settings.prompt_format)
    if settings.prompt_format is not None:
        check_language_model_settings(prompt_format, settings)  # before the model is fetched
    from verilocc_bench.model.transformers_model import load_transformers_model

    model = load_transformers_model(name, settings)
    prompt_format, settings = advised(settings, model.advice)
    return LanguageModelAllocator(name, model, prompt_format, settings)


def advised(
    settings: LocalModelSettings, advice: Advice
) -> tuple[PromptFormat, LocalModelSettings]:
    """The format that a model is asked in, and the settings with its advice where they are open."""
    prompt_format = first_format(settings.prompt_format or advice.prompt_format)
    if settings.strategy is None and not settings.guided:
        settings = replace(settings, strategy=advice.sampling)
    if settings.window_registers is None and prompt_format.has_windows:
        settings = replace(settings, window_registers=advice.window_registers)
    return prompt_format, settings


def first_format(name: str | None) -> PromptFormat:
    """The format of that name; the default one without a name, and before one is chosen."""
    return get_prompt_format(DEFAULT_PROMPT_FORMAT if name in (None, AUTO) else name)


def check_language_model_settings(
    prompt_format: PromptFormat, settings: LanguageModelSettings
) -> None:
    """Raises InputError for settings that no language model can meet, or this format cannot."""
    if settings.strategy is SamplingStrategy.PRIORITY and settings.guided:
        raise InputError("priority sampling ranks first attempts: it cannot be guided")
    prompt_format.check(settings)


class LanguageModelAllocator:
    """A language model, asked in a prompt format (an Allocator that answers in groups).

    `undecided`: the prompt format is still to be chosen, by `choose_format` or with the first
    requests. Raises InputError if the settings ask of the model what it cannot do.
    """

    foreign: ClassVar[bool] = False
    label_use: ClassVar[LabelUse] = LabelUse.NONE
    keeps_groups_whole: ClassVar[bool] = False
    tracks: ClassVar[tuple[str, ...]] = ("assign", "split")

    def __init__(
        self,
        name: str,
        model: LanguageModel,
        prompt_format: PromptFormat,
        settings: LanguageModelSettings,
    ) -> None:
        check_language_model_settings(prompt_format, settings)
        if not model.can_constrain and settings.decoding is Decoding.CONSTRAINED:
            raise InputError("this model cannot be constrained", source=name)
        if not model.can_constrain and settings.strategy is SamplingStrategy.PRIORITY:
            raise InputError("priority sampling needs a model that runs here", source=name)
        self._name = name
        self._model = model
        self._format = prompt_format
        # Attempts must differ.
        usual = SamplingStrategy.RANDOM if settings.guided else SamplingStrategy.GREEDY
        self._strategy = settings.strategy or usual
        self._settings = replace(
            settings,
            decoding=settings.decoding or Decoding.FREE,
            prompt_format=prompt_format.name,
            strategy=self._strategy,
        )
        if prompt_format.has_windows and settings.window_registers is None:
            self._settings = replace(self._settings, window_registers=WINDOW_REGISTERS)
        if settings.extract is None:
            self._settings = replace(self._settings, extract=Extraction.LAST)
        if settings.thinking_tokens is None:
            free = settings.maximum_tokens is None and settings.decoding is not Decoding.CONSTRAINED
            room = model.thinking_tokens if free else 0
            self._settings = replace(self._settings, thinking_tokens=room)
        self._width = 1
        if isinstance(model, RemoteModel):
            self._width = ROUNDS * model.concurrency
        elif isinstance(self._settings, LocalModelSettings):
            self._width = self._settings.batch_size or model.widest_batch
        self._searches: OrderedDict[str, PrioritySearch] = OrderedDict()
        self._fitting = Fitting(model, self._settings)
        self.undecided = settings.prompt_format == AUTO
        self.tell_tokens: Callable[[int], object] = lambda _: None
        self.transcripts: Transcripts | None = None

    @property
    def name(self) -> str:
        """See Allocator."""
        return self._name

    @property
    def revision(self) -> str:
        """What identifies the model's weights."""
        return self._model.revision

    @property
    def settings(self) -> LanguageModelSettings:
        """The settings, with what the model's configuration or this class chose."""
        return self._settings

    @property
    def assistance(self) -> Assistance:
        """What the prompt format shows."""
        return self._format.assistance

    @property
    def prompt(self) -> PromptIdentity:
        """See Allocator."""
        return PromptIdentity(
            self._format.name,
            self._format.version,
            self._format.source_hash,
            self._settings.few_shot,
        )

    @property
    def deterministic(self) -> bool:
        """True if every sample would be the same: greedy, and not told of its errors."""
        return self._greedy and not self._settings.guided

    @property
    def group_size(self) -> int:
        """The batch size; of a model elsewhere, several times what it takes at once."""
        return self._width

    def allocate(self, request: Request) -> Answer:
        """One answer. Raises AllocationFailed if there is none."""
        ((_, response),) = self.respond([request])
        if response.failure is FailureKind.INFRASTRUCTURE:
            raise InfrastructureError(response.message or "the model cannot be reached")
        if response.answer is None:
            raise AllocationFailed(f"{response.failure}: {response.message or 'no answer'}")
        return response.answer

    def check_ids(self, known: Callable[[], Container[str]]) -> None:
        """Does nothing: a model can be asked about any function."""

    def close(self) -> None:
        """Forgets searches and connections, and ends the transcripts; the model stays."""
        self._searches.clear()
        if self.transcripts is not None:
            self.transcripts.close()
            self.transcripts = None
        if isinstance(self._model, RemoteModel):
            self._model.close()

    def respond(self, requests: Sequence[Request]) -> Iterator[tuple[int, Response]]:
        """(place, response) of every request, each as soon as it is there.

        At most `group_size` conversations run at a time; a request beyond
        that waits until one has ended. Whoever stops listening leaves
        nothing half done behind.
        """
        if self.undecided:
            self.choose_format(request.problem for request in requests)
        waiting = deque(self._lanes(requests))
        running: list[Lane] = []
        try:
            while waiting or running:
                while waiting and len(running) < self._width:
                    running.append(waiting.popleft())
                    yield from running[-1].begin()
                running = [lane for lane in running if lane.question is not None]
                for lane, outcome in self._answers(running):
                    yield from lane.go_on(outcome)
                running = [lane for lane in running if lane.question is not None]
        finally:
            for lane in running:
                lane.close()

    def choose_format(self, problems: Iterable[AllocationProblem]) -> str:
        """Takes the widest format whose prompts and answers fit the model for all problems.

        Returns its name. Raises InputError where none fits, and for a model whose tokens
        cannot be counted.
        """
        name = self._fitting.widest(list(problems))
        self.undecided = False
        self._format = get_prompt_format(name)
        width = self._settings.window_registers or WINDOW_REGISTERS
        self._settings = replace(
            self._settings,
            prompt_format=name,
            window_registers=width if self._format.has_windows else None,
        )
        return name

    @property
    def _greedy(self) -> bool:
        drawn = self._strategy is SamplingStrategy.RANDOM
        return self._strategy is SamplingStrategy.GREEDY or (
            drawn and self._settings.temperature == 0
        )

    def _lanes(self, requests: Sequence[Request]) -> list[Lane]:
        """A lane for every request; or for every function, its samples in their order."""
        if self._strategy is not SamplingStrategy.PRIORITY:
            return [
                Lane([(place, partial(self._conversation, request))])
                for place, request in enumerate(requests)
            ]
        samples: dict[str, list[tuple[int, int]]] = {}
        for place, request in enumerate(requests):
            samples.setdefault(_search_key(request), []).append((request.sample, place))
        return [
            Lane(
                [
                    (place, partial(self._search(key, requests[place]).sample, sample))
                    for sample, place in sorted(places)
                ]
            )
            for key, places in samples.items()
        ]

    def _conversation(self, request: Request) -> Conversation:
        episode = self._format.episode(request, self._settings)
        keep = partial(self._keep, request)
        response = yield from converse(episode, partial(self._reply, request), [], keep)
        if "unfit_prompt_tokens" in response.details:
            advice = self._fitting.advice(self._format.name, request.problem)
            return replace(response, message=f"{response.message}; {advice}")
        return response

    def _reply(self, request: Request, number: int, ask: Ask) -> TokenSampling | Completion:
        """What an interrupted run was told already, else how to pick the tokens."""
        if self.transcripts is not None:
            known = self.transcripts.recall(request, number, ask)
            if known is not None:
                return known
        digest = hashlib.sha256(f"{request.seed} {number}".encode()).digest()
        return TokenSampling(
            seed=int.from_bytes(digest[:8], "big"),
            temperature=0.0 if self._greedy else self._settings.temperature,
            top_p=self._settings.top_p,
        )

    def _keep(
        self, request: Request, number: int, ask: Ask, how: TokenSampling, said: Completion
    ) -> None:
        if self.transcripts is not None:
            self.transcripts.keep(request, number, ask, how, said)

    def _search(self, key: str, request: Request) -> PrioritySearch:
        """The priority search of a request's function; a new one where there is none yet."""
        search = self._searches.get(key)
        if search is None:
            search = PrioritySearch(
                partial(self._format.episode, request, self._settings),
                lambda rank, *exchange: self._keep(
                    replace(request, sample=rank, seed=rank), *exchange
                ),
            )
            self._searches[key] = search
            if len(self._searches) > max(KEPT_SEARCHES, 2 * self._width):
                self._searches.popitem(last=False)
        self._searches.move_to_end(key)
        return search

    def _answers(
        self, lanes: Sequence[Lane]
    ) -> Iterator[tuple[Lane, Completion | InfrastructureError]]:
        """What comes of each lane's question, as soon as it is there.

        The time is shared equally among those that wait.
        """
        waiting, since = list(lanes), time.perf_counter()
        for place, outcome in self._outcomes(lanes):
            seconds = time.perf_counter() - since
            for lane in waiting:
                lane.seconds += seconds / len(waiting)
            waiting.remove(lanes[place])
            yield lanes[place], outcome
            since = time.perf_counter()

    def _outcomes(
        self, lanes: Sequence[Lane]
    ) -> Iterator[tuple[int, Completion | InfrastructureError]]:
        """All together; where that fails, one by one, to find out whom it concerns."""
        waiting = list(range(len(lanes)))
        try:
            for place, outcome in self._ask(lanes):
                waiting.remove(place)
                yield place, outcome
            return
        except InfrastructureError as error:
            failures = [error] if len(lanes) == 1 else []
        for place in waiting:
            if len(failures) >= min(FAILURES_ALONE, len(lanes)):
                yield place, failures[-1]
                continue
            try:
                ((_, outcome),) = self._ask([lanes[place]])
                failures.clear()
                yield place, outcome
            except InfrastructureError as error:
                failures.append(error)
                yield place, error

    def _ask(self, lanes: Sequence[Lane]) -> Iterator[tuple[int, Completion | InfrastructureError]]:
        questions = [lane.question for lane in lanes if lane.question is not None]
        if not questions:
            return iter(())
        asks, sampling, _ = zip(*questions, strict=True)
        return self._model.completions(
            asks, sampling, self.tell_tokens, lambda place, said: questions[place].keep(said)
        )


def _search_key(request: Request) -> str:
    """What a search depends on: the function, and the examples in its prompt."""
    texts = [request.problem.normalized]
    for example in request.examples:
        texts += [example.normalized, repr(sorted(example.answer.items()))]
    return hashlib.sha256(repr(texts).encode()).hexdigest()
