"""The options of commands that ask allocators, and what they mean."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import fields

from verilocc_bench.allocator_options import (
    AllocatorOptions,
    Decoding,
    FeedbackKind,
    SamplingStrategy,
)
from verilocc_bench.errors import InputError

__all__ = ["add_model_options", "allocator_options"]

_NO_LIMIT = 1e12


def _at_least(
    kind: type[int | float], least: float, most: float = _NO_LIMIT
) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = kind(least - 1)
        if not least <= value <= most:
            expected = "a whole number" if kind is int else "a number"
            upper = f" to {most:g}" if most < _NO_LIMIT else " or more"
            raise argparse.ArgumentTypeError(
                f"expected {expected} of {least:g}{upper}, not {text[:40]!r}"
            )
        return value

    return read


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Adds what `--model` may be asked with: one option for each field of AllocatorOptions."""
    group = parser.add_argument_group("how allocators are asked")
    group.add_argument(
        "--decoding",
        type=Decoding,
        choices=list(Decoding),
        metavar="free|constrained|guided",
        help="own words; only legal registers (language models); or with the verifier's help",
    )
    group.add_argument(
        "--verifier-calls", type=_at_least(int, 1), metavar="N", help="attempts, where guided"
    )
    group.add_argument(
        "--feedback",
        type=FeedbackKind,
        choices=list(FeedbackKind),
        metavar="findings|resample",
        help="what a guided allocator is told between attempts",
    )
    group.add_argument(
        "--time-limit",
        dest="time_limit_seconds",
        type=_at_least(float, 0.001),
        metavar="SECONDS",
        help="for one answer of a program or an endpoint",
    )
    group.add_argument(
        "--memory-limit",
        dest="memory_limit_mib",
        type=_at_least(int, 1),
        metavar="MIB",
        help="address space of a program",
    )
    _add_language_models(parser.add_argument_group("language models"))


def _add_language_models(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--prompt-format", metavar="F", help="whole, window, state or candidates")
    group.add_argument(
        "--few-shot", type=_at_least(int, 0), metavar="N", help="solved functions in the prompt"
    )
    group.add_argument(
        "--sampling",
        dest="strategy",
        type=SamplingStrategy,
        choices=list(SamplingStrategy),
        metavar="greedy|random|priority",
        help="how tokens are picked",
    )
    group.add_argument(
        "--temperature", type=_at_least(float, 0, 100), metavar="T", help="of random"
    )
    group.add_argument("--top-p", type=_at_least(float, 0.0001, 1), metavar="P", help="of random")
    group.add_argument(
        "--max-tokens", dest="maximum_tokens", type=_at_least(int, 1), metavar="N", help="a prompt"
    )
    group.add_argument(
        "--backtracks",
        type=_at_least(int, 0),
        metavar="N",
        help="choices that constrained decoding may take back",
    )
    group.add_argument(
        "--batch-size", type=_at_least(int, 1), metavar="N", help="prompts at once, here"
    )
    group.add_argument("--device", metavar="D", help="cpu, cuda, …")
    group.add_argument("--dtype", metavar="T", help="float32, bfloat16, float16 or auto")
    group.add_argument("--model-revision", metavar="R", help="revision of a model on the Hub")
    group.add_argument(
        "--trust-remote-code",
        action="store_true",
        help="run Python code that a model brings along",
    )
    group.add_argument(
        "--chat",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="use the model's chat template; by default where it has one",
    )
    group.add_argument("--model-name", metavar="NAME", help="which model of an endpoint")
    group.add_argument(
        "--concurrency", type=_at_least(int, 1, 1024), metavar="N", help="requests at once"
    )
    group.add_argument(
        "--retries", type=_at_least(int, 0, 100), metavar="N", help="of a failed request"
    )


def allocator_options(options: argparse.Namespace) -> AllocatorOptions:
    """What the command line asks for. Raises InputError for what contradicts itself."""
    names = [field.name for field in fields(AllocatorOptions)]
    given = {name: getattr(options, name) for name in names}
    made = AllocatorOptions(**{k: v for k, v in given.items() if v is not None})
    if made.decoding is not Decoding.GUIDED and (
        options.verifier_calls is not None or options.feedback is not None
    ):
        raise InputError("--verifier-calls and --feedback are for --decoding guided")
    if made.strategy is not SamplingStrategy.RANDOM and (
        options.temperature is not None or options.top_p is not None
    ):
        raise InputError("--temperature and --top-p are for --sampling random")
    return made
