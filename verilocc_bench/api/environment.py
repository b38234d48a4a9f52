"""Register allocation as an environment for reinforcement learning and agents.

    environment = vb.Environment("mini", arch="gfx942")
    messages = environment.reset(0)                    # what to say to the model
    step = environment.step(model(messages))           # step.reward, step.done, step.messages

An episode is one kernel, asked in a prompt format. Its reward comes with its last step: 0 unless
the answer is valid, then the score (evaluation.score): 0.5 at the compiler's registers, 1 at the
proved lower bound. With `calls` a wrong answer is sent back with its findings, that many times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from verilocc_bench.allocators import Feedback, Request, Response
from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.api.problems import Problem, load_problems
from verilocc_bench.dataset import EMBEDDED
from verilocc_bench.dataset.reader import split_name
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.judging import feedback_of, judge
from verilocc_bench.evaluation.records import Judged
from verilocc_bench.evaluation.score import certified_bound, register_score
from verilocc_bench.model.language_model import Ask, Completion, Episode, Finish, Message
from verilocc_bench.model.prompts import get_prompt_format
from verilocc_bench.model.prompts.finding import thinks_still
from verilocc_bench.settings.language_model import LanguageModelSettings
from verilocc_bench.settings.prompt_formats import DEFAULT_PROMPT_FORMAT
from verilocc_bench.verification import Verifier

ChatMessage = Mapping[str, str]
"""A turn of a conversation: `role` and `content`, as servers and TRL take them."""

WORDS = "expected the model's words as a text, not {}: take the last turn's content"


@dataclass(frozen=True, slots=True)
class Step:
    """What came of a model's words.

    `messages` is what to ask next; it is empty once the episode is `done`. `details` then has
    `valid`, `failure` (why there is no answer), `findings` (their kinds) and `registers`.
    """

    messages: tuple[ChatMessage, ...]
    reward: float
    done: bool
    details: dict[str, Any] = field(default_factory=dict)


class Environment:
    """Episodes over the kernels of a dataset, one at a time; `spread` makes several at once.

    `dataset` and `where` are as for `load_problems`. Without a `split` among them it is `train`,
    or `test` of `mini`, which has no other. `prompt_format` is `whole` (one step an attempt) or
    `window` (a step a window). Raises InputError for an unknown format or dataset, and for kernels
    of the split track.
    """

    def __init__(
        self,
        dataset: str | Path | Sequence[Problem] = "mini",
        *,
        prompt_format: str = DEFAULT_PROMPT_FORMAT,
        calls: int = 1,
        **where: Any,
    ) -> None:
        if calls < 1:
            raise InputError(f"calls: expected a number from 1, not {calls}")
        if isinstance(dataset, str | Path):
            own = "test" if split_name(str(dataset))[0] == EMBEDDED else "train"
            problems: Sequence[Problem] = load_problems(dataset, **{"split": own, **where})
        else:
            problems = dataset
            if where:
                chosen = ", ".join(where)
                raise InputError(f"{chosen}: these choose kernels of a dataset by its name")
            if not isinstance(problems, Sequence):
                raise InputError(f"expected a dataset's name or problems, not {problems!r}")
        if any(problem.row is not None and problem.row.track == "split" for problem in problems):
            raise InputError("kernels of the split track need edits, which no words can say here")
        self.problems = problems
        self.format = get_prompt_format(prompt_format)
        self.settings = LanguageModelSettings()
        self.calls = calls
        self._places = {problem.id: place for place, problem in enumerate(self.problems)}
        self._problem: Problem | None = None
        self._episode: Episode | None = None
        self._attempts: tuple[Feedback, ...] = ()

    def __len__(self) -> int:
        """The number of kernels."""
        return len(self.problems)

    def spread(self, count: int) -> list[Environment]:
        """`count` environments over the same problems, which are prepared once."""
        made = [Environment(self.problems, prompt_format=self.format.name) for _ in range(count)]
        for each in made:
            each.calls = self.calls
        return made

    def reset(self, kernel: int | str = 0) -> tuple[ChatMessage, ...]:
        """Begins an episode about a kernel, by its place or its id; the messages to answer."""
        place = self._places.get(kernel, -1) if isinstance(kernel, str) else kernel
        if place not in range(len(self.problems)):
            raise InputError(f"no kernel {kernel!r} among these {len(self.problems)}")
        self._problem, self._attempts = self.problems[place], ()
        return self._begin()

    def step(self, words: str) -> Step:
        """Takes the model's words; those that end within a thought count as cut off there.

        Raises InputError after the end, and unless they are a text.
        """
        if self._episode is None or self._problem is None:
            raise InputError("the episode is over, or none has begun: reset first")
        if not isinstance(words, str):
            raise InputError(WORDS.format(type(words).__name__))
        finish = Finish.LENGTH if thinks_still(words) else Finish.STOP
        try:
            ask = self._episode.send(Completion(words, finish, 0, 0))
        except StopIteration as end:
            return self._judged(self._problem, end.value)
        return Step(_chat(ask.messages), 0.0, False)

    def _begin(self) -> tuple[ChatMessage, ...]:
        assert self._problem is not None
        request = Request(self._problem, feedback=self._attempts)
        self._episode = self.format.episode(request, self.settings)
        ask: Ask | None = next(self._episode, None)
        if ask is None:
            raise InputError(f"the format {self.format.name} asks nothing about {self._problem.id}")
        return _chat(ask.messages)

    def _judged(self, problem: Problem, response: Response) -> Step:
        judged = judge(problem.prepared(assign_verifier), response, 0)
        details = {
            "valid": judged.valid,
            "failure": judged.sample.kind,
            "message": judged.sample.message,
            "findings": list(judged.sample.finding_kinds),
            "registers": _registers(judged),
        }
        self._attempts = (*self._attempts, feedback_of(judged))
        if not judged.valid and len(self._attempts) < self.calls:
            return Step(self._begin(), 0.0, False, details)
        self._episode = None
        return Step((), reward_of(problem, judged), True, details)


def assign_verifier(problem: AllocationProblem) -> Verifier:
    """The verifier of the assign track, where an answer has no edits."""
    return Verifier(problem, edits=False)


def reward_of(problem: Problem, judged: Judged) -> float:
    """0 unless the answer is valid, then its score."""
    registers = _registers(judged)
    if registers is None:
        return 0.0
    return register_score(registers, *problem.prepared(_anchors))


def _anchors(problem: AllocationProblem) -> tuple[int, int | None]:
    """The highest bound that is known, and the compiler's registers."""
    row = problem.row if isinstance(problem, Problem) else None
    claims = (problem.pressure.maximum[VECTOR], None if row is None else row.best_lower_bound)
    label = problem.label if isinstance(problem, Problem) else None
    used = None if label is None else problem.prepared(assign_verifier).verify(label).registers_used
    return certified_bound(problem.id, *claims), None if used is None else used[VECTOR]


def reward_function(
    dataset: str | Sequence[Problem] = "mini", *, prompt_format: str = "whole", **where: Any
) -> Callable[..., list[float]]:
    """A reward function for TRL's GRPOTrainer: `reward(completions, kernel=ids)`.

    Completions are texts, or conversations whose last turn counts; without words it earns 0.
    The dataset of the trainer has a column `kernel` with ids, as `prompts` makes it. Only a
    format of one step will do.
    """
    environment = _of_one_step(dataset, prompt_format, where)

    def reward(completions: Sequence[Any], kernel: Sequence[str], **_: Any) -> list[float]:
        found = []
        for completion, identifier in zip(completions, kernel, strict=True):
            environment.reset(identifier)
            found.append(environment.step(_last_words(completion)).reward)
        return found

    return reward


def prompts(
    dataset: str | Sequence[Problem] = "mini", *, prompt_format: str = "whole", **where: Any
) -> list[dict[str, Any]]:
    """A row a kernel for a trainer: `prompt` (messages) and `kernel` (its id)."""
    environment = _of_one_step(dataset, prompt_format, where)
    return [
        {"prompt": [dict(each) for each in environment.reset(place)], "kernel": problem.id}
        for place, problem in enumerate(environment.problems)
    ]


def _of_one_step(
    dataset: str | Sequence[Problem], prompt_format: str, where: Mapping[str, Any]
) -> Environment:
    environment = Environment(dataset, prompt_format=prompt_format, **where)
    if environment.format.has_windows:
        raise InputError(f"prompt format {prompt_format!r} takes several steps: use Environment")
    return environment


def _last_words(completion: object) -> str:
    """The last turn of a conversation, or the text itself."""
    if isinstance(completion, str):
        return completion
    turns = completion if isinstance(completion, Sequence) else [None]
    last = turns[-1] if turns else {}
    if not isinstance(last, Mapping):
        raise InputError(f"expected a text or a list of messages, not {completion!r:.60}")
    said = last.get("content", "")
    if not isinstance(said, str):  # parts of a message, or None for a call of a tool
        parts = [each for each in said or () if isinstance(each, Mapping)]
        said = "".join(part.get("text") or "" for part in parts)
    return said


def _registers(judged: Judged) -> int | None:
    verdict = judged.verdict
    if verdict is None or not verdict.valid or verdict.registers_used is None:
        return None
    return verdict.registers_used[VECTOR]


def _chat(messages: Sequence[Message]) -> tuple[ChatMessage, ...]:
    return tuple({"role": each.role, "content": each.content} for each in messages)
