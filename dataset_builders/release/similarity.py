"""The distance of two functions: the edit distance of their instruction sequences.

Instructions are compared as printed, without the numbers of virtual registers
and blocks: by opcode, flags, classes and sub-registers, and fixed registers.
(Normalized texts have no constants.) The distance is the Levenshtein distance
of the sequences over the length of the longer one: 0 for equal sequences, 1
for sequences with nothing in common.

Searches are exact. The distance is at least the share of instructions that the
two multisets do not share. Histograms of hashed instructions bound that share
from below (hashing only merges), at 1,024 additions a pair. Only pairs with a
small enough bound are compared in full, in time proportional to the product of
both lengths over 64 (Hyyrö's bit-parallel algorithm, in rapidfuzz).
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from verilocc_bench.errors import MissingExtraError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Tokens: TypeAlias = tuple[int, ...]

_BUCKETS = 1024
_NUMBERS = re.compile(r"%\d+|bb\d+")


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A member of a corpus by its place, and its distance."""

    place: int
    distance: float


@cache
def _token(line: str) -> int:
    return int.from_bytes(hashlib.blake2b(line.encode(), digest_size=8).digest(), "big")


def instruction_tokens(normalized: str) -> Tokens:
    """One number for each instruction and each head of a block, in order."""
    body = normalized[normalized.index("\nbb0") + 1 :]
    return tuple(_token(_NUMBERS.sub("", line)) for line in body.splitlines())


def distance(left: Tokens, right: Tokens, at_most: float = 1.0) -> float:
    """The distance, from 0 to 1; it is 1 if it exceeds `at_most`."""
    try:
        from rapidfuzz.distance import Levenshtein
    except ModuleNotFoundError:
        raise MissingExtraError("rapidfuzz", "build", "comparing functions") from None
    longest = max(len(left), len(right), 1)
    # In whole edits: fractions would be rounded up or down.
    limit = math.floor(at_most * longest + 1e-6)
    edits = Levenshtein.distance(left, right, score_cutoff=limit)
    return edits / longest if edits <= limit else 1.0


class Corpus:
    """A set of functions that can be searched for near ones."""

    def __init__(self, functions: Sequence[Tokens]) -> None:
        self._functions = list(functions)
        self._lengths = np.array([len(f) for f in functions], dtype=np.int64)
        self._histograms = np.zeros((len(self._functions), _BUCKETS), dtype=np.uint16)
        for row, function in zip(self._histograms, self._functions, strict=True):
            row[:] = _histogram(function)

    def __len__(self) -> int:
        return len(self._functions)

    def pairs_within(self, threshold: float) -> Iterator[tuple[int, Neighbour]]:
        """All pairs of members at most `threshold` (below 1) apart, the earlier place first."""
        order = np.argsort(self._lengths, kind="stable")
        lengths = self._lengths[order]
        histograms = self._histograms[order]
        for position, place in enumerate(order.tolist()):
            longest = lengths[position] / (1 - threshold) + 1e-6
            end = int(np.searchsorted(lengths, longest, side="right"))
            window = slice(position + 1, end)
            bounds = _bounds(
                histograms[position], lengths[position], histograms[window], lengths[window]
            )
            for offset in np.flatnonzero(bounds <= threshold + 1e-9).tolist():
                other = int(order[position + 1 + offset])
                found = distance(self._functions[place], self._functions[other], threshold)
                if found <= threshold + 1e-9:
                    yield min(place, other), Neighbour(max(place, other), found)

    def nearest(self, function: Tokens) -> Neighbour:
        """The member nearest to a function, the first of several. Raises ValueError if empty."""
        if not self._functions:
            raise ValueError("the corpus is empty")
        bounds = _bounds(
            _histogram(function), np.int64(len(function)), self._histograms, self._lengths
        )
        best = Neighbour(-1, 2.0)
        for place in np.argsort(bounds, kind="stable").tolist():
            if bounds[place] > best.distance + 1e-9:
                break
            found = distance(function, self._functions[place], min(best.distance, 1.0))
            if (found, place) < (best.distance, best.place):
                best = Neighbour(place, found)
        return best


def _histogram(function: Tokens) -> NDArray[np.uint16]:
    buckets = np.array([token % _BUCKETS for token in function], dtype=np.int64)
    return np.bincount(buckets, minlength=_BUCKETS).astype(np.uint16)


def _bounds(
    histogram: NDArray[np.uint16],
    length: np.int64,
    histograms: NDArray[np.uint16],
    lengths: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Lower bounds on the distances of a function from several others."""
    shared = np.minimum(histogram, histograms).sum(axis=1, dtype=np.int64)
    return np.asarray(1 - shared / np.maximum(length, lengths))
