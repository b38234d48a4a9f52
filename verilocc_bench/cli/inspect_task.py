"""The benchmark as a task of Inspect (the package inspect-ai), for any model it can reach.

    inspect eval verilocc_bench/register_allocation --model … -T arch=gfx942

A prompt format makes the prompts and reads the answers, and the verifier judges
them. Mean accuracy is pass@1, as in `evaluate`, and `epochs` are samples.
Constrained and guided decoding are not possible here. If a model cannot be
reached, Inspect's own rules on errors hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from verilocc_bench.allocators import FailureKind, Request, Response
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import load_rows
from verilocc_bench.edits.answer_files import answer_to_json, parse_answer
from verilocc_bench.errors import InputError, MissingExtraError
from verilocc_bench.evaluation.asking import sample_seed
from verilocc_bench.evaluation.judging import judge
from verilocc_bench.evaluation.records import Judged
from verilocc_bench.model.endpoint import THINKING_TOKENS
from verilocc_bench.model.language_model import Ask, Completion, Finish
from verilocc_bench.model.prompts import PromptFormat, get_prompt_format
from verilocc_bench.settings.language_model import LanguageModelSettings
from verilocc_bench.settings.prompt_formats import DEFAULT_PROMPT_FORMAT
from verilocc_bench.verification import Verifier

try:
    from inspect_ai import Epochs, Task, task
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import (
        ChatMessageAssistant,
        ChatMessageSystem,
        ChatMessageUser,
        GenerateConfig,
        ModelOutput,
        get_model,
    )
    from inspect_ai.scorer import (
        CORRECT,
        INCORRECT,
        Score,
        Scorer,
        Target,
        accuracy,
        grouped,
        scorer,
        stderr,
    )
    from inspect_ai.solver import Generate, Solver, TaskState, solver
except ImportError:
    raise MissingExtraError("inspect-ai", "inspect", "the Inspect task") from None


SEEDS = 2**31
"""Seeds are below this: providers take no larger ones."""

_ROLES = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}
_FINISH = {"max_tokens": Finish.LENGTH, "model_length": Finish.CONTEXT}


@task  # type: ignore[untyped-decorator, unused-ignore]
def register_allocation(  # noqa: PLR0917  Inspect hands parameters over by name
    dataset: str = "mini",
    split: str = "test",
    revision: str | None = None,
    arch: str | Sequence[str] | None = None,
    family: str | Sequence[str] | None = None,
    samples: int = 1,
    k: int | Sequence[int] = 1,
    seed: int = 0,
    prompt_format: str = DEFAULT_PROMPT_FORMAT,
    maximum_tokens: int | None = None,
) -> Task:
    """Functions of the assign track, each asked about `samples` times.

    `arch` and `family` keep some; several have commas between them. For each
    further `k` there is pass@k. Raises InputError for what `evaluate` refuses.
    """
    settings = LanguageModelSettings(
        maximum_tokens=maximum_tokens,
        prompt_format=prompt_format,
        thinking_tokens=THINKING_TOKENS if maximum_tokens is None else 0,
    )
    words = get_prompt_format(prompt_format)
    words.check(settings)
    ks = [k] if isinstance(k, int) else sorted(set(k))
    if samples < 1 or not ks or min(ks) < 1 or max(ks) > samples:
        raise InputError(
            f"k {ks} and samples {samples}: expected 1 or more, and no k above samples"
        )
    found = load_rows(dataset, split=split, revision=revision)
    rows = [row for row in found.rows if _wanted(row.arch, arch) and _wanted(row.family, family)]
    if not rows:
        raise InputError(f"no row of {dataset!r} is of these architectures and families")
    return Task(
        dataset=MemoryDataset(
            [
                Sample(
                    id=row.id,
                    input=row.normalized,
                    metadata={
                        "task": f"{row.arch}/{row.family}",
                        "arch": row.arch,
                        "family": row.family,
                        "n_virtual_registers": row.n_virtual_registers,
                    },
                )
                for row in rows
            ],
            name=found.name,
        ),
        solver=allocate(settings, seed),
        scorer=verdict(),
        epochs=Epochs(samples, ["mean", *(f"pass_at_{each}" for each in ks if each > 1)]),
        config=GenerateConfig(temperature=settings.temperature),
        metadata={
            "dataset_hash": found.hash,
            "dataset_revision": found.revision,
            "assistance": words.assistance.value,
            "prompt_format": words.name,
            "prompt_version": words.version,
            "prompt_hash": words.source_hash,
            "seed": seed,
        },
    )


def _wanted(value: str, chosen: str | Sequence[str] | None) -> bool:
    if chosen is None:
        return True
    return value in (chosen.split(",") if isinstance(chosen, str) else chosen)


@solver  # type: ignore[untyped-decorator, unused-ignore]
def allocate(settings: LanguageModelSettings, seed: int) -> Solver:
    """Asks the model as the prompt format of `settings` does, and keeps what it read.

    In the sample's store: `answer` (as answers are written, or None),
    `failure`, `message` and `details`.
    """
    words = get_prompt_format(settings.prompt_format or DEFAULT_PROMPT_FORMAT)

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001
        problem = AllocationProblem.from_text(state.input_text, f"sample {state.sample_id}")
        index = state.epoch - 1
        request = Request(problem, index, sample_seed(seed, problem.id, index))
        response = await _converse(state, words, request, settings)
        answer = None if response.answer is None else answer_to_json(problem.id, response.answer)
        state.store.set("answer", answer)
        state.store.set("failure", None if response.failure is None else response.failure.value)
        state.store.set("message", response.message)
        state.store.set("details", dict(response.details))
        return state

    return solve


async def _converse(
    state: TaskState, words: PromptFormat, request: Request, settings: LanguageModelSettings
) -> Response:
    """Carries an episode through; the state shows the last conversation of it."""
    episode, model = words.episode(request, settings), get_model()
    ask = _next(episode, None)
    number = 0
    while isinstance(ask, Ask):
        state.messages = [_ROLES[message.role](content=message.content) for message in ask.messages]
        config = GenerateConfig(
            max_tokens=ask.maximum_tokens + ask.thinking_tokens,
            seed=(request.seed + number) % SEEDS,
        )
        state.output = await model.generate(state.messages, config=config)
        state.messages.append(state.output.message)
        ask = _next(episode, _completion(state.output))
        number += 1
    return ask


def _next(episode: Any, completion: Completion | None) -> Ask | Response:
    """What an episode asks next, or its response at the end."""
    try:
        ask: Ask = episode.send(completion)
    except StopIteration as end:
        response: Response = end.value
        return response
    return ask


def _completion(output: ModelOutput) -> Completion:
    text = output.completion
    finish = _FINISH.get(output.stop_reason, Finish.STOP)
    if finish is Finish.CONTEXT and text:
        finish = Finish.LENGTH
    usage = output.usage
    return Completion(
        text,
        finish,
        usage.input_tokens if usage is not None else None,
        usage.output_tokens if usage is not None else None,
    )


@scorer(metrics=[accuracy(), stderr(), grouped(accuracy(), "task", all=False)])  # type: ignore[untyped-decorator, unused-ignore]
def verdict() -> Scorer:
    """Correct if the verifier accepts the answer; the score's metadata says what is wrong."""

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001
        problem = AllocationProblem.from_text(state.input_text, f"sample {state.sample_id}")
        judged = judge(Verifier(problem, edits=False), _response(state), state.epoch - 1)
        sample = judged.sample
        return Score(
            value=CORRECT if judged.valid else INCORRECT,
            answer=state.output.completion,
            explanation=_explanation(judged),
            metadata={
                "failure": sample.kind,
                "findings": list(sample.finding_kinds),
                "findings_count": sample.findings_count,
                "verdict": None if judged.verdict is None else judged.verdict.to_json(),
            },
        )

    return score


def _response(state: TaskState) -> Response:
    store = state.store
    answer, failure = store.get("answer"), store.get("failure")
    found = None if answer is None else parse_answer(answer, f"sample {state.sample_id}")[1]
    return Response(
        found,
        None if failure is None else FailureKind(failure),
        store.get("message"),
        details=store.get("details") or {},
    )


def _explanation(judged: Judged) -> str:
    if judged.valid:
        return "valid"
    if judged.verdict is not None and judged.verdict.findings:
        first = judged.verdict.findings[0]
        return f"{judged.sample.findings_count} findings, first: {first.message}"
    return judged.sample.message or "no answer"
