"""Which format fits, what is said where none does, and what a user adds to every prompt."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.command_line import CommandLine
from tests.model.scripted import TINY, ScriptedModel
from verilocc_bench.allocators import Request
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.errors import InputError
from verilocc_bench.model.allocator import LanguageModelAllocator, first_format
from verilocc_bench.model.language_model import Ask, Completion, Finish
from verilocc_bench.settings.allocator import Decoding
from verilocc_bench.settings.language_model import LanguageModelSettings, LocalModelSettings
from verilocc_bench.settings.prompt_formats import AUTO

WIDE = TINY + "".join(f"bb{n}\n" + "%0=V_ADD_U32 %0,%3\n" * 47 for n in range(3, 9))
"""Long enough that `whole` has longer prompts than `window`; a token is a character here."""

SMALL, LARGE = AllocationProblem.from_text(TINY), AllocationProblem.from_text(WIDE)


def make(model: ScriptedModel, **settings: object) -> LanguageModelAllocator:
    chosen = replace(LocalModelSettings(), **settings)  # type: ignore[arg-type]
    return LanguageModelAllocator("m", model, first_format(chosen.prompt_format), chosen)


@pytest.mark.parametrize(("context", "expected"), [(9000, "whole"), (5000, "window")])
def test_the_widest_that_fits_all(context: int, expected: str) -> None:
    allocator = make(ScriptedModel(context=context), prompt_format=AUTO)
    assert allocator.choose_format([SMALL, LARGE]) == expected
    assert allocator.settings.prompt_format == allocator.prompt.format == expected
    assert (allocator.settings.window_registers == 16) is (expected == "window")
    assert make(ScriptedModel(context=5000)).choose_format([SMALL]) == "whole"
    alone = make(ScriptedModel(context=context), prompt_format=AUTO)
    list(alone.respond([Request(LARGE)]))  # as `allocate` does
    assert alone.settings.prompt_format == expected


@pytest.mark.parametrize(
    ("context", "few_shot", "message"),
    [(50, 0, "into 50 tokens"), (None, 0, "not known here"), (9000, 1, "counts no examples")],
)
def test_no_format(context: int | None, few_shot: int, message: str) -> None:
    allocator = make(ScriptedModel(context=context), prompt_format=AUTO, few_shot=few_shot)
    with pytest.raises(InputError, match=message):
        allocator.choose_format([LARGE])


@pytest.mark.parametrize(
    ("context", "name", "advice"),
    [
        (5000, "whole", "--prompt-format window fits"),
        (50, "whole", "no format fits"),
        (None, "whole", "prompts of window are shorter"),
        (50, "window", "--window-registers makes them shorter"),
    ],
)
def test_what_would_fit(context: int | None, name: str, advice: str) -> None:
    unfit = Completion("", Finish.CONTEXT, 7000, 0, message="it has 7,000, the context 5,000")
    allocator = make(ScriptedModel(lambda _: unfit, context=context), prompt_format=name)
    ((_, response),) = allocator.respond([Request(LARGE)])
    assert response.message is not None
    assert response.message.startswith("the prompt does not fit: it has 7,000, the context 5,000")
    assert response.message.endswith(advice)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, 100),
        ({"maximum_tokens": 50}, 0),
        ({"maximum_tokens": 50, "thinking_tokens": 7}, 7),
        ({"decoding": Decoding.CONSTRAINED}, 0),
    ],
)
def test_room_to_think_and_a_text_of_the_users(settings: dict[str, object], expected: int) -> None:
    model = ScriptedModel(thinking_tokens=100)
    allocator = make(model, system="Think briefly.", **settings)
    list(allocator.respond([Request(SMALL)]))
    (ask,) = model.asks
    assert isinstance(ask, Ask)
    assert ask.thinking_tokens == expected
    assert ask.messages[0].content.startswith("Think briefly.\n\nYou allocate registers")


def test_one_sample_is_greedy_and_attempts_differ() -> None:
    assert make(ScriptedModel()).deterministic
    assert not make(ScriptedModel(), decoding=Decoding.GUIDED).deterministic
    assert make(ScriptedModel()).settings.for_samples(2).strategy == "greedy"
    assert LanguageModelSettings().for_samples(2).strategy == "random"


def test_a_prompt_is_printed(run: CommandLine) -> None:
    shown = run("prompt", "283d953e61cef95c", "--prompt-format", "window", "--system", "Hm")
    assert shown.out.startswith("[system]\nHm\n\nYou allocate registers")
    assert "window 1 of" in shown.out
    assert "the first of its prompts" in shown.err
    assert "no tokenizer without --model" in shown.err
    run.refuses(["prompt", "283d953e61cef95c", "--model", "linear-scan"], "is not a language model")
    run.refuses(["prompt", "283d953e61cef95c", "--few-shot", "2"], "--few-shot is for evaluate")
