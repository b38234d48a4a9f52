"""Figures that a submitter measured on a GPU of their own, as a submission states them.

No answer tells how fast it is, so nobody verifies these figures. Their form is checked, and
that each belongs to an answer of the submission; they stand apart from all others, with
the words of `UNVERIFIED` beside them.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from leaderboard.shown_text import text_problem
from verilocc_bench.edits import Answer
from verilocc_bench.edits.answer_files import answer_to_json

UNVERIFIED = "measured by the submitter, not verified"
MOST_MEASURED = 50
MOST_ROUNDS = 1_000_000
FEWEST_ROUNDS = 5
"""As many as `measure` asks for."""

_LARGEST = 2**31
_TEXT = 100
_ID = re.compile(r"[0-9a-f]{16}", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class MeasuredFigure:
    """Times of an answer and of another one to the same function, on one machine.

    `answer_sha256` is the hash of the answer (`answer_hash`), `against` the name of the
    other. Times are medians over rounds, in milliseconds; `ratio` is the median
    over rounds of the answer's time over the other's, with its interval of 95 %.
    """

    id: str
    answer_sha256: str
    against: str
    device: str
    driver_version: int
    grid: tuple[int, int, int]
    rounds: int
    milliseconds: float
    against_milliseconds: float
    ratio: float
    ratio_low: float
    ratio_high: float
    same_bits: bool


def answer_hash(identifier: str, answer: Answer) -> str:
    """The hash of an answer, whatever the order of its registers in a file."""
    document = json.dumps(answer_to_json(identifier, answer), sort_keys=True)
    return hashlib.sha256(document.encode()).hexdigest()


def read_figure(value: Any) -> MeasuredFigure | str:
    """A figure of a submission, or what is wrong with it."""
    names = [each.name for each in fields(MeasuredFigure)]
    if not isinstance(value, dict) or value.keys() != set(names):
        return f"expected a mapping of {', '.join(names)}"
    for name, is_right, expected in _FIELDS:
        if not is_right(value[name]):
            return f"{name}: expected {expected}"
    if not value["ratio_low"] <= value["ratio"] <= value["ratio_high"]:
        return "ratio: expected a number between ratio_low and ratio_high"
    return MeasuredFigure(**{**value, "grid": tuple(value["grid"])})


def _is_whole(low: int, high: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and low <= value <= high


def _is_positive(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and 0 < value < _LARGEST


def _is_text(value: Any) -> bool:
    return text_problem(value, _TEXT) is None


def _is_grid(value: Any) -> bool:
    is_size = _is_whole(1, _LARGEST)
    return isinstance(value, list) and len(value) == len("xyz") and all(map(is_size, value))


_POSITIVE = "a number above 0"
_FIELDS: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    ("id", lambda v: isinstance(v, str) and bool(_ID.fullmatch(v)), "a function's id, in quotes"),
    (
        "answer_sha256",
        lambda v: isinstance(v, str) and bool(_SHA256.fullmatch(v)),
        "the answer's hash, in quotes",
    ),
    ("against", _is_text, f"the other answer's name, up to {_TEXT} characters"),
    ("device", _is_text, f"the GPU's name, up to {_TEXT} characters"),
    ("driver_version", _is_whole(0, _LARGEST), "a whole number"),
    ("grid", _is_grid, "three whole numbers from 1"),
    ("rounds", _is_whole(FEWEST_ROUNDS, MOST_ROUNDS), f"a whole number from {FEWEST_ROUNDS}"),
    ("milliseconds", _is_positive, _POSITIVE),
    ("against_milliseconds", _is_positive, _POSITIVE),
    ("ratio", _is_positive, _POSITIVE),
    ("ratio_low", _is_positive, _POSITIVE),
    ("ratio_high", _is_positive, _POSITIVE),
    ("same_bits", lambda v: type(v) is bool, "true or false"),
)


def figure_words(figure: Mapping[str, Any]) -> str:
    """A figure in words, without the texts of strangers in it: for those beside it."""
    return (
        f"{figure['milliseconds']:.6f} ms against {figure['against_milliseconds']:.6f} ms, "
        f"{figure['ratio']:.4f} times [{figure['ratio_low']:.4f}, {figure['ratio_high']:.4f}] "
        f"over {figure['rounds']:,} rounds"
    )
