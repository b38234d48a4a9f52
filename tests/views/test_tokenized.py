"""Examples are what the harness would ask, and what a model may say to it."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.model.scripted import ScriptedModel, run_episode
from tests.model.tiny_models import load, metaspace_tokenizer, save_model
from verilocc_bench.allocators import Request
from verilocc_bench.dataset import Row, load_rows
from verilocc_bench.edits import Answer
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation import resolve_model
from verilocc_bench.model.language_model import Ask, Completion, TokenSampling
from verilocc_bench.model.prompts import get_prompt_format
from verilocc_bench.model.transformers_model.constraint_walker import ConstraintWalker
from verilocc_bench.model.transformers_model.utterance import Utterance
from verilocc_bench.settings.allocator import Decoding
from verilocc_bench.settings.language_model import LanguageModelSettings
from verilocc_bench.views import (
    IGNORED,
    ExampleOutcome,
    PackedBlock,
    TokenizedExample,
    TokenizedOptions,
    TokenizedView,
    pack,
    parse_label,
    problem_of,
    training_turns,
)

pytestmark = pytest.mark.slow

FORMATS = ("whole", "window")
TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
NO_SYSTEM = (
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}"
    "{% endif %}<{{ m.role }}>{{ m.content }}{% endfor %}"
)
KINDS = ("plain", "begin", "metaspace", "template", "no_system")
CASES = [
    *((style, kind) for style in FORMATS for kind in ("plain", "template")),
    *(("window", kind) for kind in KINDS[1:3]),
    ("window", "no_system"),
]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of models, by the kind of their tokenizers."""
    root = tmp_path_factory.mktemp("models")
    return {
        "plain": save_model(root / "plain"),
        "begin": save_model(root / "begin", begin=True),
        "metaspace": save_model(root / "metaspace", metaspace_tokenizer()),
        "template": save_model(root / "template", chat_template=TEMPLATE, begin=True),
        "no_system": save_model(root / "no_system", chat_template=NO_SYSTEM),
    }


def tokenizer_in(folder: Path) -> Any:
    """As whoever trains a model loads its tokenizer."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder)


@pytest.fixture(scope="module")
def tokenizer(models: dict[str, Path]) -> Any:
    return tokenizer_in(models["plain"])


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    found = load_rows("mini").rows
    return [min((r for r in found if r.arch == a), key=lambda r: r.n_instructions) for a in ARCHS]


ARCHS = ("gfx90a", "sm_80")


@dataclass
class Listener(ScriptedModel):
    """Follows each constraint in tokens, from the moment that it is asked under it."""

    codec: Any = None
    walkers: list[ConstraintWalker] = field(default_factory=list)

    def answer(self, ask: Ask) -> Completion:
        if self.codec is not None:
            assert ask.constraint is not None
            self.walkers.append(ConstraintWalker(ask.constraint, self.codec))
        return super().answer(ask)


def asked(row: Row, style: str, codec: Any = None) -> tuple[Listener, dict[str, str]]:
    """What the harness asks for a function under constraint, and an answer that it accepts."""
    generator = random.Random(0)

    def choose(_ask: Ask, _text: str, names: Sequence[str]) -> str:
        # Now and then another than the lowest, but where registers are scarce.
        other = row.arch != "sm_80" and len(names) > 1 and generator.random() < 0.25
        return names[1 if other else 0]

    model = Listener(choose=choose, codec=codec)
    options = LanguageModelSettings(prompt_format=style, decoding=Decoding.CONSTRAINED)
    response = run_episode(get_prompt_format(style), Request(problem_of(row)), options, model)
    assert response.answer is not None, response.message
    return model, dict(response.answer.assignment)


@pytest.mark.parametrize(("style", "kind"), CASES)
def test_prompts_are_the_harness_own_and_completions_what_it_lets_a_model_say(
    models: dict[str, Path], rows: list[Row], kind: str, style: str
) -> None:
    codec = load(models[kind])._codec
    view = TokenizedView(tokenizer_in(models[kind]), TokenizedOptions(prompt_format=style))
    model, answer = asked(rows[0], style, codec)
    examples = list(view.examples([labelled(rows[0], answer)]))
    assert len(examples) == len(model.asks) == view.report.counts[ExampleOutcome.WHOLE]
    for ask, walker, example in zip(model.asks, model.walkers, examples, strict=True):
        assert isinstance(example, TokenizedExample)
        fed = Utterance(replace(ask, constraint=None), TokenSampling(0), codec, None).pending
        prompt, completion = parts(example)
        assert prompt == fed
        assert example.attention_mask == [1] * len(example.input_ids)
        assert completion.pop() == 2  # </s>, with which a model ends by itself
        assert all(walker.take(token) for token in completion)
        assert walker.finished
        assert walker.dead_end is None


def labelled(row: Row, answer: dict[str, str]) -> dict[str, Any]:
    """The row of a stream that carries no more than it must."""
    return {"id": row.id, "normalized": row.normalized, "assignment": json.dumps(answer)}


def parts(example: Any) -> tuple[list[int], list[int]]:
    """The tokens that are not learnt, and those that are."""
    count = sum(label == IGNORED for label in example.labels)
    assert example.labels == [IGNORED] * count + example.input_ids[count:]
    return example.input_ids[:count], example.input_ids[count:]


@pytest.mark.parametrize("style", FORMATS)
def test_prompts_are_the_same_in_free_decoding(rows: list[Row], style: str) -> None:
    for row in rows:
        constrained, answer = asked(row, style)
        turns = list(training_turns(get_prompt_format(style), problem_of(row), answer))
        said = iter(turn.completion for turn in turns)
        model = ScriptedModel(say=lambda _, said=said: next(said))
        request = Request(problem_of(row))
        response = run_episode(get_prompt_format(style), request, LanguageModelSettings(), model)
        assert response.answer == Answer(answer)
        assert [ask.messages for ask in model.asks] == [turn.messages for turn in turns]
        assert [ask.messages for ask in constrained.asks] == [turn.messages for turn in turns]


def test_the_text_of_an_example_is_the_conversation(tokenizer: Any, rows: list[Row]) -> None:
    problem, label = problem_of(rows[0]), rows[0].label
    assert label is not None
    for style in FORMATS:
        view = TokenizedView(tokenizer, TokenizedOptions(prompt_format=style))
        turns = list(training_turns(get_prompt_format(style), problem, label))
        found = list(view.examples([rows[0]]))
        assert len(found) == len(turns)
        for turn, example in zip(turns, found, strict=True):
            prompt, completion = parts(example)
            assert tokenizer.decode(prompt) == "\n\n".join(m.content for m in turn.messages)
            assert tokenizer.decode(completion) == turn.completion + "</s>"
        merged: dict[str, str] = {}
        for turn in turns:
            merged |= json.loads(turn.completion)
        assert merged == label


def test_labels(tokenizer: Any, rows: list[Row]) -> None:
    row = rows[0]
    label = row.label
    assert label is not None
    best = dict(label)
    best["%0"], other = "v200", {**label, "%0": "v201"}
    mapping = {
        **labelled(row, label),
        "best_assignment": json.dumps(best),
        "alternatives": json.dumps({"llvm-basic 22.1.0": other}),
    }
    scanned = resolve_model("linear-scan").allocate(Request(problem_of(row)))
    for name, expected in (
        ("compiler", label),
        ("best", best),
        ("alternative:llvm-basic 22.1.0", other),
        ("allocator:linear-scan", scanned.assignment),
    ):
        view = TokenizedView(tokenizer, TokenizedOptions("whole", label=name))
        (example,) = view.examples([mapping])
        assert json.loads(tokenizer.decode(parts(example)[1][:-1])) == expected
        assert len(view.columns) == len(set(view.columns))
    for proved, expected in ((True, [best]), (False, []), (None, [])):
        view = TokenizedView(tokenizer, TokenizedOptions("whole", label="optimal"))
        found = list(view.examples([{**mapping, "best_is_optimal": proved}]))
        answers = [json.loads(tokenizer.decode(parts(example)[1][:-1])) for example in found]
        assert answers == expected
        assert view.report.counts[ExampleOutcome.NO_LABEL] == (not proved)
    with pytest.raises(InputError, match="the column 'best_is_optimal' is missing"):
        list(view.examples([mapping]))
    mapping["best_assignment"] = None
    (example,) = TokenizedView(tokenizer, TokenizedOptions("whole", "best")).examples([mapping])
    assert json.loads(tokenizer.decode(parts(example)[1][:-1])) == label


def test_what_is_lost_is_counted_and_told(
    tokenizer: Any, rows: list[Row], caplog: pytest.LogCaptureFixture
) -> None:
    label = rows[0].label
    assert label is not None
    row = labelled(rows[0], label)
    lengths = [len(e.input_ids) for e in TokenizedView(tokenizer).examples([row] * 4)]
    limit = sorted(lengths)[len(lengths) // 2]
    too_long = sum(length > limit for length in lengths)
    unlabelled = {"id": "x", "normalized": rows[0].normalized, "assignment": None}
    assert too_long > 10
    with caplog.at_level(logging.WARNING):
        view = TokenizedView(tokenizer, TokenizedOptions(maximum_tokens=limit))
        kept = list(view.examples([*[row] * 4, unlabelled]))
    assert [len(e.input_ids) for e in kept] == [length for length in lengths if length <= limit]
    assert view.report.counts == {
        ExampleOutcome.WHOLE: len(kept),
        ExampleOutcome.TOO_LONG: too_long,
        ExampleOutcome.NO_LABEL: 1,
    }
    assert "1 too_long" in caplog.text
    assert "10 too_long" in caplog.text
    assert len(caplog.records) <= 1 + len(str(too_long + 1))


def test_prompts_can_be_learnt_too(tokenizer: Any, rows: list[Row]) -> None:
    view = TokenizedView(tokenizer, TokenizedOptions(mask_prompt=False))
    for example in view.examples(rows):
        assert example.labels == example.input_ids


def test_packed_blocks_hold_every_example_once(tokenizer: Any, rows: list[Row]) -> None:
    options = TokenizedOptions("window")
    examples = list(TokenizedView(tokenizer, options).examples(rows[:1]))
    size = 16_384
    view = TokenizedView(tokenizer, replace(options, block_tokens=size))
    blocks = list(view.examples(rows[:1]))
    assert len(blocks) < len(examples) / 3
    unpacked = [example for block in blocks for example in unpack(block, size)]
    wanted = [e for e in examples if len(e.input_ids) <= size]
    assert [tokens for tokens, _ in unpacked] == [e.input_ids for e in wanted]
    assert [labels for _, labels in unpacked] == [e.labels for e in wanted]
    learnt = TokenizedView(tokenizer, replace(view.options, mask_prompt=False))
    for block in learnt.examples(rows[:1]):
        starts = [n for n, place in enumerate(block.position_ids) if place == 0]
        assert all(block.labels[n] == IGNORED for n in starts)


def unpack(block: Any, size: int) -> Iterator[tuple[list[int], list[int]]]:
    assert isinstance(block, PackedBlock)
    for column in (block.input_ids, block.attention_mask, block.labels):
        assert len(column) == size
    assert len(block.position_ids) == len(block.sequence_ids) == size
    for number in range(1, max(block.sequence_ids) + 1):
        places = [n for n, sequence in enumerate(block.sequence_ids) if sequence == number]
        assert places == list(range(places[0], places[-1] + 1))
        assert [block.position_ids[n] for n in places] == list(range(len(places)))
        assert all(block.attention_mask[n] for n in places)
        yield [block.input_ids[n] for n in places], [block.labels[n] for n in places]
    rest = [n for n, sequence in enumerate(block.sequence_ids) if not sequence]
    assert rest == list(range(size - len(rest), size))
    assert all(block.labels[n] == IGNORED and not block.attention_mask[n] for n in rest)


def test_transformers_keeps_attention_within_an_example(models: dict[str, Path]) -> None:
    import torch

    module = load(models["plain"])._network.module
    generator = random.Random(0)
    texts = [[generator.randrange(3, 300) for _ in range(length)] for length in (10, 7, 12)]
    examples = [TokenizedExample(text, [1] * len(text), text) for text in texts]
    (block,) = pack(examples, 36, 0)
    with torch.inference_mode():
        packed = module(
            input_ids=torch.tensor([block.input_ids]),
            position_ids=torch.tensor([block.position_ids]),
            use_cache=False,
        ).logits[0]
        alone = [module(input_ids=torch.tensor([text])).logits[0] for text in texts]
    assert torch.allclose(packed[: sum(map(len, texts))], torch.cat(alone), atol=1e-4)


def test_labels_of_an_allocator_that_has_no_answer_or_edits(rows: list[Row]) -> None:
    tight = "\n".join(
        [
            "verilocc-bench 1",
            "target gfx942",
            "registers v:2 a:0 s:102 vcc:2=vcc_lo,vcc_hi",
            "class V 1 v",
            "bb0",
            *(f"%{number}=V_MOV_B32" for number in range(3)),
            "V_NOP %0,%1,%2",
            "",
        ]
    )
    assert parse_label("allocator:linear-scan").answer({"normalized": tight}) is None
    assert parse_label("allocator:spill-everywhere").answer({"normalized": tight}) is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prompt_format": "haiku"}, "unknown prompt format 'haiku'; known: whole"),
        ({"label": "worst"}, "unknown label 'worst'"),
        ({"label": "best:x"}, "unknown label 'best:x'"),
        ({"label": "alternative:"}, "unknown label"),
        ({"label": "allocator:"}, "unknown label"),
        ({"label": "allocator:compiler"}, "no allocator 'compiler' makes labels; known: linear-"),
        ({"maximum_tokens": 0}, "maximum_tokens 0: expected at least 1"),
    ],
)
def test_options_that_cannot_be_met(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TokenizedOptions(**options)


def test_tokenizers_that_cannot_do_it(models: dict[str, Path], rows: list[Row]) -> None:
    tokenizer = tokenizer_in(models["plain"])
    with pytest.raises(InputError, match="no chat template"):
        TokenizedView(tokenizer, TokenizedOptions(chat=True))
    tokenizer.eos_token = None
    with pytest.raises(InputError, match="no end token"):
        list(TokenizedView(tokenizer, TokenizedOptions("whole")).examples(rows))
