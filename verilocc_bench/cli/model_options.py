"""The options of commands that ask allocators, and what they mean."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import fields

from verilocc_bench.allocator_options import (
    WINDOW_REGISTERS,
    AllocatorOptions,
    Decoding,
    FeedbackKind,
    Objective,
    SamplingStrategy,
)
from verilocc_bench.errors import InputError

__all__ = ["add_model_options", "allocator_options", "check_used"]

_NO_LIMIT = 1e12

_DEFAULT = AllocatorOptions()


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
    add = parser.add_argument_group("how allocators are asked").add_argument
    add(
        "--decoding",
        type=Decoding,
        choices=list(Decoding),
        metavar="free|constrained|guided",
        help="the allocator's own words; only legal registers, for language models that run here; "
        "or several attempts with the verifier in between (default: what the model says of "
        "itself, else free)",
    )
    add(
        "--verifier-calls",
        type=_at_least(int, 1),
        metavar="N",
        help=f"attempts at a sample, where guided (default: {_DEFAULT.verifier_calls})",
    )
    add(
        "--feedback",
        type=FeedbackKind,
        choices=list(FeedbackKind),
        metavar="findings|repair|resample",
        help="what a guided allocator is told of earlier attempts: what was wrong; nothing, but "
        "language models are to mend what was rejected; or nothing (default: findings)",
    )
    add(
        "--time-limit",
        dest="time_limit_seconds",
        type=_at_least(float, 0.001),
        metavar="SECONDS",
        help="for one answer of a program, or one request to an endpoint "
        f"(default: {_DEFAULT.time_limit_seconds:g})",
    )
    add(
        "--memory-limit",
        dest="memory_limit_mib",
        type=_at_least(int, 1),
        metavar="MIB",
        help="address space of a program (default: no limit)",
    )
    _add_search(parser.add_argument_group("allocators that search").add_argument)
    _add_language_models(parser.add_argument_group("language models").add_argument)


def _add_search(add: Callable[..., argparse.Action]) -> None:
    add(
        "--objective",
        type=Objective,
        choices=list(Objective),
        metavar="registers|bank-conflicts|copies|combined",
        help="the fewest registers, or at the occupancy of the fewest the least of something else "
        "(default: registers)",
    )
    add(
        "--effort",
        type=_at_least(int, 1, 1000),
        metavar="N",
        help="so many times the usual budget of steps (default: 1)",
    )


def _add_language_models(add: Callable[..., argparse.Action]) -> None:
    add(
        "--prompt-format",
        metavar="whole|window|state|candidates",
        help="what the model is shown (default: what it was trained on, else whole)",
    )
    add(
        "--few-shot",
        type=_at_least(int, 0),
        metavar="N",
        help=f"solved functions in the prompt (default: {_DEFAULT.few_shot})",
    )
    add(
        "--sampling",
        dest="strategy",
        type=SamplingStrategy,
        choices=list(SamplingStrategy),
        metavar="greedy|random|priority",
        help="take the likeliest tokens, draw them, or unique answers, the likeliest first "
        "(default: for a single answer what the model was trained for, else random)",
    )
    add(
        "--temperature",
        type=_at_least(float, 0, 100),
        metavar="T",
        help=f"of random sampling (default: {_DEFAULT.temperature:g})",
    )
    add(
        "--top-p",
        type=_at_least(float, 0.0001, 1),
        metavar="P",
        help="draw from the likeliest tokens that have this probability together "
        f"(default: {_DEFAULT.top_p:g})",
    )
    add(
        "--max-tokens",
        dest="maximum_tokens",
        type=_at_least(int, 1),
        metavar="N",
        help="the longest completion of a prompt (default: by the number of registers asked for)",
    )
    add(
        "--backtracks",
        type=_at_least(int, 0),
        metavar="N",
        help="dead ends at which room is made, with `state` and `candidates` "
        "(default: what the model says of itself, else 0)",
    )
    add(
        "--window-registers",
        type=_at_least(int, 1),
        metavar="N",
        help="new virtual registers that a prompt of `window` is about, at most "
        f"(default: what the model says of itself, else {WINDOW_REGISTERS})",
    )
    _add_machines(add)


def _add_machines(add: Callable[..., argparse.Action]) -> None:
    add(
        "--batch-size",
        type=_at_least(int, 1),
        metavar="N",
        help=f"prompts at once, for a model that runs here (default: {_DEFAULT.batch_size})",
    )
    add("--device", metavar="D", help="cpu, cuda, … (default: cuda where there is one)")
    add("--dtype", metavar="T", help="float32, bfloat16, float16 or auto (default: auto)")
    add("--model-revision", metavar="R", help="revision of a model on the Hub (default: newest)")
    add(
        "--trust-remote-code",
        action="store_true",
        help="run the Python code that a model brings along (default: never)",
    )
    add(
        "--chat",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="ask by chat messages (default: where the model has a chat template)",
    )
    add("--model-name", metavar="NAME", help="which model of an endpoint (default: its only one)")
    add(
        "--concurrency",
        type=_at_least(int, 1, 1024),
        metavar="N",
        help=f"requests to an endpoint at once (default: {_DEFAULT.concurrency})",
    )
    add(
        "--retries",
        type=_at_least(int, 0, 100),
        metavar="N",
        help=f"of a request that failed (default: {_DEFAULT.retries})",
    )


_SPELLED = {
    "time_limit_seconds": "--time-limit",
    "memory_limit_mib": "--memory-limit",
    "strategy": "--sampling",
    "maximum_tokens": "--max-tokens",
}


def check_used(options: argparse.Namespace, models: Sequence[str]) -> None:
    """Raises InputError for an option that means nothing to any of the models."""
    # Which models use what depends on their kinds, which --help need not know.
    from verilocc_bench.evaluate import used_options

    used = frozenset[str]().union(*map(used_options, models))
    for field in fields(AllocatorOptions):
        if field.name not in used and getattr(options, field.name) not in (None, False):
            option = _SPELLED.get(field.name, "--" + field.name.replace("_", "-"))
            raise InputError(f"{option} means nothing to {' or '.join(models)}")


def allocator_options(options: argparse.Namespace, samples: int = 1) -> AllocatorOptions:
    """What the command line asks for, with so many answers to a function.

    Raises InputError for what contradicts itself.
    """
    names = [field.name for field in fields(AllocatorOptions)]
    given = {name: getattr(options, name) for name in names}
    if given["strategy"] is None and (
        options.temperature is not None or options.top_p is not None or samples > 1
    ):
        given["strategy"] = SamplingStrategy.RANDOM
    made = AllocatorOptions(**{k: v for k, v in given.items() if v is not None})
    if made.decoding is not Decoding.GUIDED and (
        options.verifier_calls is not None or options.feedback is not None
    ):
        raise InputError("--verifier-calls and --feedback are for --decoding guided")
    if made.strategy not in (None, SamplingStrategy.RANDOM) and (
        options.temperature is not None or options.top_p is not None
    ):
        raise InputError("--temperature and --top-p are for --sampling random")
    return made
