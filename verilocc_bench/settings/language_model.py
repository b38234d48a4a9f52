"""Settings of language models: those that run here, and those behind an endpoint."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, ClassVar

from verilocc_bench.settings.allocator import AllocatorSettings
from verilocc_bench.settings.flags import at_least, setting, time_limit
from verilocc_bench.settings.prompt_formats import AUTO, DEFAULT_PROMPT_FORMAT, PROMPT_FORMATS

WINDOW_REGISTERS = 16
"""How many new virtual registers a prompt of `window` places at most, unless settings say more."""

AUTOMATIC = 0
"""A batch size: what memory holds. Results say 0, so that the same command goes on anywhere."""

_SELDOM = (
    "thinking_tokens",
    "extract",
    "system",
    "reasoning_effort",
    "chat_template_kwargs",
    "extra_body",
    "window_registers",
    "engine",
    "tensor_parallel",
)
"""What results name only where it has a value."""


class SamplingStrategy(StrEnum):
    """How a language model picks tokens.

    `greedy` takes the likeliest. `random` draws with temperature and top-p.
    `priority` gives unique samples in order of the model's confidence
    (Grubisic et al., "Priority Sampling of Large Language Models for
    Compilers", EuroMLSys 2024).
    """

    GREEDY = "greedy"
    RANDOM = "random"
    PRIORITY = "priority"


class Extraction(StrEnum):
    """How an answer is found in a model's words.

    `last`: after the model's thoughts, the last complete JSON object of registers.
    `strict`: the words are one JSON object and nothing else, but for one code fence.
    """

    LAST = "last"
    STRICT = "strict"


class Engine(StrEnum):
    """What runs a model here: `transformers`, with all decodings, or `vllm`, for free words."""

    TRANSFORMERS = "transformers"
    VLLM = "vllm"


def _json_object(text: str) -> str:
    """The text of a JSON object, printed in one way."""
    try:
        found = json.loads(text)
        json.dumps(found, allow_nan=False)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise argparse.ArgumentTypeError(f"expected a JSON object, not {text[:40]!r}")
    return json.dumps(found, sort_keys=True)


def _more_of_a_request(text: str) -> str:
    """A JSON object that does not change which model is asked, or what form its answer has."""
    found = _json_object(text)
    if own := sorted(json.loads(found).keys() & {"model", "n", "stream"}):
        raise argparse.ArgumentTypeError(f"{own[0]!r} cannot be set so")
    return found


def _batch_size(text: str) -> int:
    """A number from 1, or AUTOMATIC."""
    number: int = AUTOMATIC if text == AUTO else at_least(int, 1)(text)
    return number


def _price(text: str) -> tuple[float, float]:
    """Two prices with a comma between them."""
    parts = text.split(",")
    if len(parts) != 2:
        raise argparse.ArgumentTypeError(f"expected two prices, such as 0.5,2, not {text[:40]!r}")
    read = at_least(float, 0)
    return read(parts[0]), read(parts[1])


@dataclass(frozen=True, slots=True)
class LanguageModelSettings(AllocatorSettings):
    """Prompts and sampling. None leaves the choice to the model; lengths are in tokens."""

    FLAG_GROUP: ClassVar[str] = "language models"

    prompt_format: str | None = setting(
        None,
        "--prompt-format",
        "what the model is shown; `auto` is the first that fits all kernels (default: what it "
        f"was trained on, else {DEFAULT_PROMPT_FORMAT})",
        metavar="|".join((*PROMPT_FORMATS, AUTO)),
    )
    few_shot: int = setting(
        0,
        "--few-shot",
        "solved functions in the prompt (default: {})",
        metavar="N",
        read=at_least(int, 0),
    )
    strategy: SamplingStrategy | None = setting(
        None,
        "--sampling",
        "take the likeliest tokens, draw them, or leave earlier answers at the likeliest places "
        "(default: for a single answer what the model was trained for, else greedy; else random)",
        read=SamplingStrategy,
    )
    temperature: float = setting(
        1.0,
        "--temperature",
        "of random sampling (default: {})",
        metavar="T",
        read=at_least(float, 0, 100),
    )
    top_p: float = setting(
        1.0,
        "--top-p",
        "draw from the likeliest tokens that have this probability together (default: {})",
        metavar="P",
        read=at_least(float, 0.0001, 1),
    )
    maximum_tokens: int | None = setting(
        None,
        "--max-tokens",
        "the longest completion of a prompt (default: by the number of registers asked for)",
        metavar="N",
        read=at_least(int, 1),
    )
    thinking_tokens: int | None = setting(
        None,
        "--thinking-tokens",
        "more tokens for a completion, to think in (default: 8192 for endpoints, 1024 for chat "
        "models here; 0 for others, and with --max-tokens)",
        metavar="N",
        read=at_least(int, 0),
    )
    extract: Extraction | None = setting(
        None,
        "--extract",
        "take the last JSON object of registers in the model's words, or read words that are one "
        "object and nothing else (default: last)",
        read=Extraction,
    )
    system: str | None = setting(
        None, "--system", "a text in front of the format's system message", metavar="TEXT"
    )
    reasoning_effort: str | None = setting(
        None,
        "--reasoning-effort",
        "how long the model is to think: what a server, or a chat template, calls reasoning_effort",
        metavar="low|medium|high|…",
    )
    chat_template_kwargs: str | None = setting(
        None,
        "--chat-template-kwargs",
        "for the chat template, such as '{\"enable_thinking\": false}'",
        metavar="JSON",
        read=_json_object,
    )
    log_samples: bool = setting(
        True,
        "--log-samples",
        "keep prompts and completions in --output-path (default: yes)",
        read=bool,
        in_results=False,
    )
    price: tuple[float, float] | None = setting(
        None,
        "--price",
        "what a million tokens cost, of prompts and of completions; results have the sum",
        metavar="IN,OUT",
        read=_price,
        in_results=False,
    )
    window_registers: int | None = setting(
        None,
        "--window-registers",
        "new virtual registers that a prompt of `window` is about, at most "
        f"(default: what the model says of itself, else {WINDOW_REGISTERS})",
        metavar="N",
        read=at_least(int, 1),
    )
    chat: bool | None = setting(
        None,
        "--chat",
        "ask by chat messages (default: where the model has a chat template)",
        read=bool,
    )

    def for_samples(self, samples: int) -> LanguageModelSettings:
        """Several samples are drawn, unless the settings say how."""
        if samples == 1 or self.strategy is not None:
            return self
        return replace(self, strategy=SamplingStrategy.RANDOM)

    def described(self) -> dict[str, Any]:
        """As in AllocatorSettings; what has no value in most runs is there if it has one."""
        # Written out: super() without arguments does not work in a class with slots.
        found = AllocatorSettings.described(self)
        seldom = {name: found.pop(name) for name in _SELDOM if name in found}
        return found | {name: value for name, value in seldom.items() if value is not None}


@dataclass(frozen=True, slots=True)
class LocalModelSettings(LanguageModelSettings):
    """Where a model's files come from, and how it runs on this machine."""

    batch_size: int = setting(
        16,
        "--batch-size",
        "prompts at once, for a model that runs here; `auto` is what a GPU's memory holds "
        "(default: {})",
        metavar="N|auto",
        read=_batch_size,
    )
    device: str | None = setting(
        None, "--device", "cpu, cuda, … (default: cuda where there is one)", metavar="D"
    )
    dtype: str = setting(
        "auto", "--dtype", "float32, bfloat16, float16 or auto (default: auto)", metavar="T"
    )
    model_revision: str | None = setting(
        None, "--model-revision", "revision of a model on the Hub (default: newest)", metavar="R"
    )
    trust_remote_code: bool = setting(
        False,
        "--trust-remote-code",
        "run the Python code that a model brings along (default: never)",
    )
    engine: Engine | None = setting(
        None,
        "--engine",
        "what runs a model here; vllm makes its batches itself (default: transformers)",
        read=Engine,
    )
    tensor_parallel: int | None = setting(
        None,
        "--tensor-parallel",
        "GPUs that vllm cuts the model's matrices for (default: 1)",
        metavar="N",
        read=at_least(int, 1),
    )


@dataclass(frozen=True, slots=True)
class EndpointSettings(LanguageModelSettings):
    """Which model of an endpoint, and how its server is asked.

    The limits are not in results: where a server fails, the model did not.
    """

    model_name: str | None = setting(
        None, "--model-name", "which model of an endpoint (default: its only one)", metavar="NAME"
    )
    extra_body: str | None = setting(
        None,
        "--extra-body",
        "more of each request to an endpoint, such as '{\"top_k\": 20}'",
        metavar="JSON",
        read=_more_of_a_request,
    )
    time_limit_seconds: float = time_limit(in_results=False)
    concurrency: int = setting(
        8,
        "--concurrency",
        "requests to an endpoint at once (default: {})",
        metavar="N",
        read=at_least(int, 1, 1024),
        in_results=False,
    )
    retries: int = setting(
        5,
        "--retries",
        "of a request that failed (default: {})",
        metavar="N",
        read=at_least(int, 0, 100),
        in_results=False,
    )
