from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.model.scripted import Batched, ScriptedModel
from verilocc_bench.allocators import (
    Assistance,
    Example,
    FailureKind,
    PromptIdentity,
    Request,
    Response,
    SpeaksInTokens,
)
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.errors import AllocationFailed, InfrastructureError, InputError
from verilocc_bench.model import allocator as allocator_module
from verilocc_bench.model.allocator import LanguageModelAllocator
from verilocc_bench.model.language_model import (
    Ask,
    Choice,
    Completion,
    Episode,
    Finish,
    Literal,
    Message,
    Segment,
    TokenSampling,
)
from verilocc_bench.model.prompts import get_prompt_format
from verilocc_bench.settings.allocator import Decoding, FeedbackKind
from verilocc_bench.settings.language_model import LocalModelSettings, SamplingStrategy

pytestmark = pytest.mark.slow

GREEDY = LocalModelSettings(strategy=SamplingStrategy.GREEDY, batch_size=4)
RANDOM = replace(GREEDY, strategy=SamplingStrategy.RANDOM)
PRIORITY = replace(GREEDY, strategy=SamplingStrategy.PRIORITY)


def problem(registers: int = 1) -> AllocationProblem:
    lines = ["verilocc-bench 1", "target gfx942", "registers v:8 a:8 s:16 vcc:2=vcc_lo,vcc_hi"]
    lines += ["class V 1 v", "bb0(v0)"]
    lines += [f"%{number}=COPY v0" for number in range(registers)]
    return AllocationProblem.from_text("\n".join(lines) + "\n")


PROBLEMS = [problem(count) for count in range(1, 7)]


@dataclass
class Echo(Batched):
    """Says the prompt's last word and the seed; keeps what it was asked."""

    can_constrain: bool = True
    revision: str = "r1"
    batches: list[list[str]] = field(default_factory=list)
    sampling: list[TokenSampling] = field(default_factory=list)
    fails: frozenset[str] = frozenset()

    def complete(self, asks: Sequence[Ask], sampling: Sequence[TokenSampling]) -> list[Completion]:
        contents = [ask.messages[0].content for ask in asks]
        self.batches.append(contents)
        if self.fails & set(contents):
            raise InfrastructureError("the line is dead")
        self.sampling += sampling
        texts = [f"{c} {h.seed}" for c, h in zip(contents, sampling, strict=True)]
        return [Completion(text, Finish.STOP, 3, 2) for text in texts]


@dataclass
class Words:
    """Asks as often as the problem has registers; crashes at a problem of `crash` registers."""

    crash: int = 0
    closed: list[int] = field(default_factory=list)
    name: str = "words"
    version: int = 3
    assistance: Assistance = Assistance.STATE
    source_hash: str = "abc"
    has_windows: bool = False

    def check(self, options: LocalModelSettings) -> None:
        if options.few_shot > 5:
            raise InputError("at most 5 examples")

    def episode(self, request: Request, options: LocalModelSettings) -> Episode:
        count = len(request.problem.function.virtual_registers)
        said = []
        try:
            for number in range(count):
                completion = yield Ask((Message("user", f"{count}.{number}"),), 9)
                said.append(completion.text)
                if count == self.crash:
                    raise ValueError("too many")
            return Response({"said": "|".join(said)}, details={"kept": count, "asks": count})
        finally:
            self.closed.append(count)


def make(options: LocalModelSettings, **others: Any) -> tuple[LanguageModelAllocator, Echo, Words]:
    words = Words(crash=others.pop("crash", 0))
    echo = Echo(**others)
    return LanguageModelAllocator("folder", echo, words, options), echo, words


def test_what_it_is() -> None:
    allocator, _, _ = make(replace(GREEDY, few_shot=2))
    assert (allocator.name, allocator.revision, allocator.group_size) == ("folder", "r1", 4)
    assert allocator.assistance is Assistance.STATE
    assert allocator.prompt == PromptIdentity("words", 3, "abc", 2)
    allocator, echo, _ = make(GREEDY)
    allocator.allocate(Request(PROBLEMS[0]))
    assert echo.sampling[0].temperature == 0


def test_it_counts_aloud_before_a_response_is_there() -> None:
    allocator, _, _ = make(GREEDY)
    told: list[int] = []
    assert isinstance(allocator, SpeaksInTokens)
    allocator.tell_tokens = told.append
    responses = allocator.respond([Request(PROBLEMS[3])])  # four asks of two tokens each
    _, response = next(responses)
    assert told == [2, 2, 2, 2]
    assert response.details["completion_tokens"] == 8


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (GREEDY, True),
        (replace(GREEDY, decoding=Decoding.CONSTRAINED), True),
        (replace(GREEDY, decoding=Decoding.GUIDED), False),
        (RANDOM, False),
        (replace(RANDOM, temperature=0.0), True),
        (PRIORITY, False),
    ],
)
def test_deterministic(options: LocalModelSettings, expected: bool) -> None:
    assert make(options)[0].deterministic is expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"few_shot": 6}, "at most 5 examples"),
        ({"strategy": SamplingStrategy.PRIORITY, "decoding": Decoding.GUIDED}, "cannot be guided"),
    ],
)
def test_options_that_do_not_fit(changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        make(replace(GREEDY, **changes))


def test_a_model_that_cannot_be_constrained() -> None:
    with pytest.raises(InputError, match="cannot be constrained"):
        make(replace(GREEDY, decoding=Decoding.CONSTRAINED), can_constrain=False)
    repairing = replace(GREEDY, decoding=Decoding.GUIDED, feedback=FeedbackKind.REPAIR)
    cannot = ScriptedModel(can_constrain=False)
    assert LanguageModelAllocator("name", cannot, get_prompt_format("window"), repairing)
    with pytest.raises(InputError, match="priority sampling needs"):
        make(PRIORITY, can_constrain=False)


def test_all_are_answered_and_the_short_do_not_wait() -> None:
    allocator, echo, words = make(RANDOM)
    requests = [Request(PROBLEMS[count - 1], seed=count) for count in (6, 1, 3, 2, 1, 4)]
    found = list(allocator.respond(requests))
    assert [place for place, _ in found] == [1, 3, 4, 2, 0, 5]
    assert [len(batch) for batch in echo.batches] == [4, 4, 3, 2, 2, 2]
    for place, response in found:
        count = len(requests[place].problem.function.virtual_registers)
        assert isinstance(response.answer, dict)
        assert [w.split()[0] for w in response.answer["said"].split("|")] == [
            f"{count}.{n}" for n in range(count)
        ]
        assert response.details == {
            "asks": count,
            "prompt_tokens": 3 * count,
            "completion_tokens": 2 * count,
            "kept": count,
        }
        assert response.seconds > 0
    assert sorted(words.closed) == [1, 1, 2, 3, 4, 6]


def test_every_ask_has_its_own_seed_whoever_is_beside_it() -> None:
    allocator, echo, _ = make(replace(RANDOM, temperature=0.5, top_p=0.9))
    requests = [Request(PROBLEMS[count - 1], seed=count) for count in (3, 2, 4)]
    together = {place: response.answer for place, response in allocator.respond(requests)}
    seeds = [how.seed for how in echo.sampling]
    assert len(set(seeds)) == len(seeds) == 9
    assert {(how.temperature, how.top_p) for how in echo.sampling} == {(0.5, 0.9)}
    for place, request in enumerate(requests):
        assert allocator.allocate(request) == together[place]
    backwards = dict(allocator.respond(requests[::-1]))
    assert [backwards[2 - place].answer for place in range(3)] == [together[p] for p in range(3)]
    other = replace(requests[0], seed=17)
    assert allocator.allocate(other) != together[0]


def test_a_crash_concerns_one() -> None:
    allocator, _, _ = make(GREEDY, crash=2)
    found = dict(allocator.respond([Request(PROBLEMS[n]) for n in (0, 1, 2)]))
    assert found[1].failure is FailureKind.CRASHED
    assert found[1].message == "ValueError: too many"
    assert found[0].failure is found[2].failure is None
    with pytest.raises(AllocationFailed, match="crashed: ValueError: too many"):
        allocator.allocate(Request(PROBLEMS[1]))


def test_a_failure_of_the_machine_concerns_who_asked() -> None:
    allocator, echo, words = make(GREEDY, fails=frozenset({"3.1"}))
    found = dict(allocator.respond([Request(PROBLEMS[n]) for n in (1, 2, 3)]))
    assert found[1].failure is FailureKind.INFRASTRUCTURE
    assert found[1].message == "the line is dead"
    assert found[0].failure is found[2].failure is None
    assert sorted(words.closed) == [2, 3, 4]
    with pytest.raises(InfrastructureError, match="the line is dead"):
        allocator.allocate(Request(PROBLEMS[2]))
    assert ["3.2"] not in echo.batches


def test_a_dead_server_is_found_out_soon() -> None:
    allocator, echo, _ = make(GREEDY, fails=frozenset(f"{n}.0" for n in range(9)))
    found = dict(allocator.respond([Request(p) for p in PROBLEMS[:4]]))
    assert {r.failure for r in found.values()} == {FailureKind.INFRASTRUCTURE}
    assert len(echo.batches) == 3  # all, and two alone


def test_whoever_stops_listening_ends_all() -> None:
    allocator, _, words = make(GREEDY)
    answers = allocator.respond([Request(p) for p in PROBLEMS[:4]])
    assert next(answers)[0] == 0
    answers.close()  # type: ignore[attr-defined]
    assert sorted(words.closed) == [1, 2, 3, 4]
    assert len(list(allocator.respond([Request(p) for p in PROBLEMS[:4]]))) == 4
    assert list(allocator.respond([])) == []


# With a model that runs


@dataclass
class Registers(Words):
    """Asks for one register of each virtual register, or for any text."""

    def episode(self, request: Request, options: LocalModelSettings) -> Episode:
        answer: dict[str, str] = {}
        constrained = options.decoding is Decoding.CONSTRAINED

        def constraint() -> Generator[Segment, str, None]:
            yield Literal('"')
            yield Choice(tuple(f"v{n}" for n in range(3)), '"')

        for number in range(len(request.problem.function.virtual_registers)):
            prompt = f"%{number} after {json.dumps(answer)}:"
            asked = Message("user", prompt)
            completion = yield Ask((asked,), 8, constraint if constrained else None)
            answer[f"%{number}"] = completion.text.strip('"')
        return Response(answer)


def with_tiny(folder: Path, options: LocalModelSettings) -> LanguageModelAllocator:
    from tests.model.tiny_models import load

    return LanguageModelAllocator("tiny", load(folder), Registers(), options)


def outcome(responses: Any) -> list[tuple[Any, ...]]:
    found = dict(responses)
    return [(found[n].answer, found[n].failure, found[n].details) for n in sorted(found)]


@pytest.mark.parametrize("decoding", [Decoding.FREE, Decoding.CONSTRAINED])
def test_one_seed_one_answer(folder: Path, decoding: Decoding) -> None:
    options = replace(RANDOM, decoding=decoding)
    allocator = with_tiny(folder, options)
    requests = [Request(PROBLEMS[n % 3], sample=n, seed=n) for n in range(6)]
    first = outcome(allocator.respond(requests))
    assert first == outcome(with_tiny(folder, options).respond(requests))
    assert first == outcome(with_tiny(folder, replace(options, batch_size=1)).respond(requests))
    assert len({json.dumps(answer) for answer, _, _ in first}) > 3


def test_priority_gives_every_answer_once_and_the_likeliest_first(folder: Path) -> None:
    options = replace(PRIORITY, decoding=Decoding.CONSTRAINED)
    allocator = with_tiny(folder, options)
    assert allocator.group_size == 4
    found: list[Response] = []
    for start in range(0, 28, 4):  # in groups, as the harness asks
        requests = [Request(PROBLEMS[2], sample=n, seed=99 * n) for n in range(start, start + 4)]
        group = dict(allocator.respond(requests))
        found += [group[n] for n in range(4)]
    *samples, last = found
    assert len({json.dumps(r.answer) for r in samples}) == 27
    assert (last.failure, last.message) == (FailureKind.NO_ANSWER, "no further unique sample")
    likeliest = [response.details["log_probability"] for response in samples]
    assert likeliest[0] > likeliest[-1]
    greedy = with_tiny(folder, replace(GREEDY, decoding=Decoding.CONSTRAINED))
    assert samples[0].answer == greedy.allocate(Request(PROBLEMS[2]))
    # Resumed: in a new process only the last group is asked for.
    again = with_tiny(folder, options)
    resumed = dict(again.respond([Request(PROBLEMS[2], sample=n) for n in (25, 26, 27)]))
    assert [replace(resumed[n], seconds=0.0) for n in range(3)] == [
        replace(response, seconds=0.0) for response in found[25:]
    ]


def test_priority_searches_several_functions_side_by_side(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = replace(PRIORITY, decoding=Decoding.CONSTRAINED, batch_size=8)
    requests = [Request(PROBLEMS[p], sample=n) for n in (2, 0, 1) for p in (2, 1)]
    example = Example(PROBLEMS[0].normalized, {"%0": "v1"})
    requests += [Request(PROBLEMS[2], sample=0, examples=(example,))]
    allocator = with_tiny(folder, options)
    together = outcome(allocator.respond(requests))
    alone = [outcome([(0, dict(allocator.respond([r]))[0])])[0] for r in requests]
    assert together == alone
    assert together[2] == together[6]  # the same sample, of a search of its own
    assert len(allocator._searches) == 3
    allocator.close()
    monkeypatch.setattr(allocator_module, "KEPT_SEARCHES", 0)
    assert outcome(allocator.respond(requests)) == together
