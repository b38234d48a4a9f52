from __future__ import annotations

import math
import resource
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.model.tiny_models import (
    PROMPTS,
    TEXTS,
    ask,
    check_scores,
    complete,
    draw,
    load,
    reference_logs,
    save_model,
)
from verilocc_bench.errors import InfrastructureError, InputError
from verilocc_bench.model.language_model import Ask, Finish, Message, TokenSampling
from verilocc_bench.model.transformers_model import token_codec

pytestmark = pytest.mark.slow

TEMPLATE = (
    "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}<answer>{% endif %}"
)
NO_SYSTEM = (
    "{% for m in messages %}{% if m['role'] == 'system' %}"
    "{{ raise_exception('no system role') }}{% endif %}"
    "<{{ m['role'] }}>{{ m['content'] }}{% endfor %}"
)


# Scores


def test_greedy_is_what_the_network_says(model: Any) -> None:
    asks = [ask(prompt) for prompt in PROMPTS]
    said = complete(model, asks, [TokenSampling(0, temperature=0.0)] * len(asks))
    for prompt, completion in zip(PROMPTS, said, strict=True):
        before = model._codec.prompt([Message("user", prompt)])
        logs = reference_logs(model, before + list(completion.tokens))
        for place, token in enumerate(completion.tokens):
            assert int(logs[len(before) - 1 + place].argmax()) == token
        check_scores(model, [Message("user", prompt)], completion)


def test_padding_and_chunks_do_not_change_scores(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from verilocc_bench.model.transformers_model import network

    prompts = [model._codec.prompt([Message("user", prompt)]) for prompt in PROMPTS]
    together = network.Stream(model._network).begin(prompts)
    monkeypatch.setattr(network, "CHUNK_TOKENS", 16)  # some rows are padding alone at first
    in_parts = network.Stream(model._network).begin(prompts)
    for row, prompt in enumerate(prompts):
        with torch.inference_mode():
            logits = model._network.module(torch.tensor([prompt])).logits[0, -1].double()
        assert float((together[row] - logits).abs().max()) < 1e-5 * float(logits.abs().max())
        assert float((in_parts[row] - logits).abs().max()) < 1e-5 * float(logits.abs().max())


@pytest.mark.parametrize("chat_template", [None, TEMPLATE])
def test_a_shared_beginning_does_not_change_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chat_template: str | None
) -> None:
    model = load(save_model(tmp_path / "model", chat_template=chat_template, begin=True))
    system = Message("system", TEXTS[2] * 2)
    asks = [Ask((system, Message("user", prompt)), 12) for prompt in PROMPTS]
    fed: list[tuple[int, int]] = []
    forward = model._network.module.forward

    def watched(input_ids: torch.Tensor, **others: Any) -> Any:
        fed.append(tuple(input_ids.shape))
        return forward(input_ids=input_ids, **others)

    monkeypatch.setattr(model._network.module, "forward", watched)
    said = complete(model, asks, [draw(n) for n in range(len(asks))])
    first = list(fed)
    assert first[0][0] == 1
    assert first[0][1] > 60  # the beginning, once
    assert said == complete(model, asks, [draw(n) for n in range(len(asks))])
    assert fed[len(first) :] == first[1:]  # and not again
    for question, completion in zip(asks, said, strict=True):
        check_scores(model, question.messages, completion)
    alone = [complete(model, [a], [draw(n)])[0] for n, a in enumerate(asks)]
    assert [c.tokens for c in alone] == [c.tokens for c in said]


@pytest.mark.parametrize(
    ("kind", "special"),
    [
        ("GPT2", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 512}),
        ("Mistral", {"sliding_window": 16, "num_key_value_heads": 2}),
        ("Bloom", {"n_layer": 2, "n_head": 4}),  # no positions at all
    ],
)
def test_other_architectures(copy: Path, kind: str, special: dict[str, Any]) -> None:
    import transformers

    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4}
    tokens = {"vocab_size": 320, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2}
    kinds = {"num_hidden_layers": 2, **sizes} if kind == "Mistral" else {"hidden_size": 32}
    configuration = getattr(transformers, f"{kind}Config")(
        **{**kinds, **tokens, **special, "initializer_range": 0.3}
    )
    torch.manual_seed(0)
    transformers.AutoModelForCausalLM.from_config(configuration).save_pretrained(copy)
    model = load(copy)
    for system in ((), (Message("system", TEXTS[2] * 2),)):
        asks = [Ask((*system, Message("user", prompt)), 20) for prompt in PROMPTS]
        for question, said in zip(asks, complete(model, asks, [draw(7)] * len(asks)), strict=True):
            check_scores(model, question.messages, said)


def test_an_architecture_without_a_cache(copy: Path) -> None:
    import transformers

    configuration = transformers.MambaConfig(hidden_size=32, num_hidden_layers=1, vocab_size=320)
    transformers.AutoModelForCausalLM.from_config(configuration).save_pretrained(copy)
    with pytest.raises(InputError, match="keeps no cache of keys and values"):
        load(copy)


def test_a_batch_gives_what_its_asks_give_alone(model: Any) -> None:
    asks = [ask(prompt) for prompt in PROMPTS]
    how = [draw(number) for number in range(len(asks))]
    together = complete(model, asks, how)
    assert together == complete(model, asks, how)
    alone = [complete(model, [a], [h])[0] for a, h in zip(asks, how, strict=True)]
    assert [(c.tokens, c.text) for c in together] == [(c.tokens, c.text) for c in alone]
    backwards = complete(model, asks[::-1], how[::-1])[::-1]
    assert [c.tokens for c in together] == [c.tokens for c in backwards]


def test_draws_follow_the_distribution(model: Any) -> None:
    """The shares of the first token over many seeds, against temperature and top-p by hand."""
    prompt = model._codec.prompt([Message("user", "hello")])
    logs = reference_logs(model, prompt)[-1]
    weights = torch.softmax(logs / 0.7, dim=0)
    ordered = sorted(range(len(weights)), key=lambda token: -float(weights[token]))
    nucleus: dict[int, float] = {}
    for token in ordered:
        if sum(nucleus.values()) >= 0.8:
            break
        nucleus[token] = float(weights[token])
    count = 2000
    how = [draw(seed, temperature=0.7, top_p=0.8) for seed in range(count)]
    found: dict[int, int] = {}
    for completion in complete(model, [ask("hello", 1)] * count, how):
        (token,) = completion.tokens
        assert completion.log_probabilities[0] == pytest.approx(float(logs[token]), abs=1e-5)
        found[token] = found.get(token, 0) + 1
    assert set(found) <= set(nucleus)
    total = sum(nucleus.values())
    for token, weight in nucleus.items():
        share = weight / total
        spread = 5 * math.sqrt(share * (1 - share) / count)
        assert abs(found.get(token, 0) / count - share) < spread


def test_the_nucleus_holds_the_token_that_reaches_top_p() -> None:
    from verilocc_bench.model.transformers_model.picking import _nucleus

    weights = torch.tensor([0.125, 0.5, 0.25, 0.125], dtype=torch.float64)
    for top_p, kept in ((0.4, [1]), (0.5, [1]), (0.6, [1, 2]), (0.8, [0, 1, 2])):
        assert _nucleus(weights, top_p).nonzero()[:, 0].tolist() == kept


# Where completions end


def test_a_completion_ends_at_its_limit(model: Any) -> None:
    (whole,) = complete(model, [ask("hello", 40)], [draw(3)])
    assert whole.finish is Finish.LENGTH
    assert whole.completion_tokens == 40


def test_the_model_ends_itself(model: Any) -> None:
    how = TokenSampling(0, forced=(*model._codec.piece("v4"), 2))
    (said,) = complete(model, [ask("hello")], [how])
    assert (said.text, said.finish) == ("v4", Finish.STOP)
    assert said.tokens == how.forced
    check_scores(model, [Message("user", "hello")], said)


def test_the_context_is_a_limit(tmp_path: Path) -> None:
    model = load(save_model(tmp_path / "model", context=32))
    lengths = {n: len(model._codec._encode("x " * n)) for n in range(40)}
    fits, full, too_long = (
        next("x " * n for n, length in lengths.items() if length >= wanted)
        for wanted in (20, 32, 33)
    )
    assert lengths[full.count("x")] == 32
    asks = [ask(fits, 100), ask(full, 100), ask(too_long, 100), ask("x", 0)]
    said = complete(model, asks, [draw(1)] * 4)
    assert [c.finish for c in said] == [Finish.LENGTH, Finish.LENGTH, Finish.CONTEXT, Finish.LENGTH]
    assert said[0].prompt_tokens + said[0].completion_tokens == 33  # the last is not fed again
    assert [c.completion_tokens for c in said[1:]] == [1, 0, 0]


def test_text_comes_whole(model: Any, metaspace: Any) -> None:
    text = "%0 é  寄存器 ü v4\n  bb0"
    for each in (model, metaspace):
        tokens = each._codec.piece(text)
        how = TokenSampling(0, forced=(*tokens, 2))
        (said,) = complete(each, [ask("hello", 100)], [how])
        assert said.text == text
        assert said.finish is Finish.STOP


# Prompts


def test_prompts_without_a_template(tmp_path: Path) -> None:
    model = load(save_model(tmp_path / "model", begin=True))
    messages = (Message("system", "Be brief."), Message("user", "bb0"))
    tokens = model._codec.prompt(messages)
    assert tokens[0] == 1
    assert model._codec.decode(tokens) == "Be brief.\n\nbb0"
    (said,) = complete(model, [Ask((), 2)], [draw(0)])
    assert said.prompt_tokens == 1


@pytest.mark.parametrize(
    ("template", "chat", "expected"),
    [
        (TEMPLATE, None, "<system>Be brief.<user>bb0<answer>"),
        (TEMPLATE, True, "<system>Be brief.<user>bb0<answer>"),
        (TEMPLATE, False, "Be brief.\n\nbb0"),
        (NO_SYSTEM, None, "<user>Be brief.\n\nbb0"),
    ],
)
def test_chat_templates(tmp_path: Path, template: str, chat: bool | None, expected: str) -> None:
    model = load(save_model(tmp_path / "model", chat_template=template), chat=chat)
    messages = (Message("system", "Be brief."), Message("user", "bb0"))
    assert model._codec.decode(model._codec.prompt(messages)) == expected


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{% for i in range(10**9) %}x{% endfor %}", "its chat template fails: Range too big"),
        (
            "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
            "its chat template fails: it took more than 0.5 s",
        ),
        ("{{ 'x' * 10**10 }}", "its chat template fails: MemoryError"),
        ("{{ messages[7].content.nothing.at.all }}", "refuses the prompt|its chat template fails"),
        ("{{ 1 // 0 }}", "its chat template fails"),
        ("{{ raise_exception('not today') }}", "refuses the prompt: not today"),
    ],
)
def test_a_template_that_never_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, template: str, said: str
) -> None:
    monkeypatch.setattr(token_codec, "TEMPLATE_SECONDS", 0.5)
    model = load(save_model(tmp_path / "model", chat_template=template))
    before = resource.getrlimit(resource.RLIMIT_AS), signal.getsignal(signal.SIGALRM)
    with pytest.raises(InputError, match=said):
        complete(model, [ask("hello")], [draw(0)])
    assert (resource.getrlimit(resource.RLIMIT_AS), signal.getsignal(signal.SIGALRM)) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


# Memory


def test_out_of_memory_halves_the_batch(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    model = load(folder)
    asks = [ask(prompt) for prompt in PROMPTS]
    how = [draw(number) for number in range(len(asks))]
    expected = complete(model, asks[:3], how[:3])
    forward = model._network.module.forward
    limit = 3

    def small(input_ids: torch.Tensor, **others: Any) -> Any:
        if len(input_ids) > limit and input_ids.shape[1] == 1:  # once it speaks
            raise torch.OutOfMemoryError("too much")
        return forward(input_ids=input_ids, **others)

    monkeypatch.setattr(model._network.module, "forward", small)
    found = complete(model, asks, how)
    assert [c.tokens for c in found[:3]] == [c.tokens for c in expected]
    assert model.largest_batch == 2
    assert "batch of 8: going on with 4" in caplog.text
    limit = 0
    with pytest.raises(InfrastructureError, match="out of memory for a single prompt"):
        complete(model, asks, how)


def test_scores_that_are_not_numbers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load(folder)
    embedding = model._network.module.get_input_embeddings()
    with torch.no_grad():
        embedding.weight.fill_(math.nan)
    with pytest.raises(InfrastructureError, match="not numbers"):
        complete(model, [ask("hello")], [draw(1)])
