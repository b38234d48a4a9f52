"""One number for an answer: where its registers lie between the compiler's and a proved bound."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from verilocc_bench.evaluation.metrics import bootstrap_interval, mean

CODE_WEIGHTS = {
    "loop_instructions": 1,
    "loop_waits": 2,
    "loop_wait_states": 2,
    "loop_register_moves": 20,
    "bank_conflicts": 2,
}
"""What an instruction of each kind costs, as the objective `machine-code` weighs it."""


def register_score(registers: int, bound: int, compiler: int | None) -> float:
    """1 at the bound, 0.5 at the compiler's registers, and falling towards 0 above them.

    1 / (1 + (registers - bound) / (compiler - bound)). Where the compiler reaches the bound, or
    gave no answer, its distance counts as one register.
    """
    return _anchored(registers - bound, None if compiler is None else compiler - bound)


def _anchored(distance: float, of_compiler: float | None) -> float:
    return 1 / (1 + distance / max(1, of_compiler or 0))


@cache
def known_bounds() -> Mapping[str, tuple[int, int]]:
    """Of each kernel of the boards: a proved lower bound, and the fewest registers of an answer.

    Both count vector registers, by id. `python -m leaderboard.certified_bounds` makes the file.
    """
    text = (files("verilocc_bench.evaluation") / "certified_bounds.json").read_text("utf-8")
    return {identifier: (bound, best) for identifier, (bound, best) in json.loads(text).items()}


def certified_bound(identifier: str, *claims: int | None) -> int:
    """The highest bound that is known of a kernel; `claims` are bounds that its run proved."""
    bound, _ = known_bounds().get(identifier, (0, 0))
    return max([bound, *(claim or 0 for claim in claims)])


def bound_of(kernel: Mapping[str, Any]) -> int:
    """The highest bound that is known of a kernel with a valid sample, from its record."""
    return certified_bound(kernel["id"], kernel["bound"], kernel.get("certified_bound"))


def kernel_score(kernel: Mapping[str, Any]) -> float | None:
    """The score of a kernel's record (results.json): valid samples score as the first of them.

    Samples that are not valid score 0. None if no sample was judged.
    """
    if not kernel["samples"]:
        return None
    if not kernel["valid"]:
        return 0.0
    one = register_score(kernel["registers"], bound_of(kernel), kernel["label_registers"])
    return _share(kernel) * one


def occupancy_score(kernel: Mapping[str, Any]) -> float:
    """The same with waves or warps: 1 at as many as the bound allows, 0.5 at the compiler's."""
    if not kernel["valid"]:
        return 0.0
    most, compiler = kernel["occupancy_at_bound"], kernel["label_occupancy"]
    of_compiler = None if compiler is None else most - compiler
    return _share(kernel) * _anchored(most - kernel["occupancy"], of_compiler)


def code_score(kernel: Mapping[str, Any]) -> float | None:
    """The same with the cost of the machine code: the bound is 0, as none is proved.

    None where there is no code, and for NVIDIA's targets, whose back end counts bank conflicts
    alone.
    """
    from verilocc_bench.backends import backend_of

    if not backend_of(kernel["task"].partition("/")[0]).inserts_waits:
        return None
    if not kernel["valid"]:
        return 0.0
    code = kernel["machine_code"]
    if code is None or code["refused"] is not None:
        return None
    own, compiler = _code_cost(code["answer"]), _code_cost(code["label"])
    return _share(kernel) / (1 + own / compiler) if own is not None and compiler else None


def _code_cost(figures: Mapping[str, float | None]) -> float | None:
    """None if a figure is unknown: conflicts are, where llc's own allocation has no label."""
    counts = [(weight, figures[name]) for name, weight in CODE_WEIGHTS.items()]
    known = [weight * count for weight, count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _share(kernel: Mapping[str, Any]) -> float:
    share: float = kernel["valid"] / kernel["samples"]
    return share


def score_record(kernels: Sequence[Mapping[str, Any]], seed: int = 0) -> dict[str, float | None]:
    """The mean score with its 95 % interval over kernels, and on how many a score of 1 is possible.

    `score_possible` is the share of kernels whose bound an answer is known to reach, one of these
    or of the leaderboard's. None without kernels.
    """
    scores = [one for one in map(kernel_score, kernels) if one is not None]
    low, high = bootstrap_interval(scores, seed)
    return {
        "score": mean(scores),
        "score_low": low,
        "score_high": high,
        "score_possible": mean([float(is_reached(kernel)) for kernel in kernels]),
        "score_occupancy": mean([occupancy_score(kernel) for kernel in kernels]),
    }


def is_reached(kernel: Mapping[str, Any]) -> bool:
    """True if a valid answer is known that uses as few registers as the bound says."""
    bound, best = known_bounds().get(kernel["id"], (0, None))
    if kernel["bound"] is None:  # this run has no valid answer
        return bound == best
    return bound_of(kernel) in (best, kernel["registers"])
