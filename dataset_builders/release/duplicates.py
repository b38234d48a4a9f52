"""Equal and nearly equal kernels: one of several equal ones stays, and near ones share a split.

Exact duplicates have the same normalized text; the first point of the sweep
stays. Near duplicates are at most `NEAR_DISTANCE` apart (see similarity): the
same function except for a few instructions. Sweep groups keep most of them in
one split. If a near pair lies in two splits, the kernel in the later split of
`SPLITS` stays and the other one is left out: so training loses kernels, not the
tests of generalization. Kernels of the embedded dataset `mini` count as one
more test split, so that `mini` can test models that were trained on `train`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dataset_builders.release.similarity import Corpus, Neighbour, Tokens
from dataset_builders.sweeps import SweepPoint
from dataset_builders.sweeps.splits import SPLITS, TRAINING

NEAR_DISTANCE = 0.05

Rejection = tuple[str, str]
"""Kind and reason."""

Pair = tuple[int, Neighbour]
"""A place in a list, and a later place with the distance."""


@dataclass(frozen=True, slots=True)
class RowCandidate:
    """A compiled kernel that may become a row."""

    point: SweepPoint
    id: str
    track: str
    split: str
    tokens: Tokens


def exact_duplicates(candidates: Sequence[tuple[str, str]]) -> dict[str, Rejection]:
    """For (point key, id) pairs, the rejections of those whose id came before; by point key."""
    first: dict[str, str] = {}
    rejected: dict[str, Rejection] = {}
    for key, identifier in candidates:
        if first.setdefault(identifier, key) != key:
            rejected[key] = ("duplicate", f"same normalized text as {first[identifier]}")
    return rejected


def near_pairs(candidates: Sequence[RowCandidate]) -> list[Pair]:
    """Pairs of places of candidates that are near each other, sorted."""
    corpus = Corpus([candidate.tokens for candidate in candidates])
    found = corpus.pairs_within(NEAR_DISTANCE)
    return sorted(found, key=lambda pair: (pair[0], pair[1].place))


def near_duplicates_across(
    candidates: Sequence[RowCandidate], pairs: Iterable[Pair], embedded: Mapping[str, Tokens]
) -> dict[str, Rejection]:
    """The rejections of candidates that are near one in another split or in `mini`; by point key.

    `embedded` has the functions of `mini` by id; they reject candidates of
    training splits only.
    """
    order = list(SPLITS)
    rejected = _near_embedded(candidates, embedded)
    for place, neighbour in pairs:
        both = (candidates[place], candidates[neighbour.place])
        lost, kept = sorted(both, key=lambda candidate: order.index(candidate.split))
        keys = {candidate.point.key for candidate in both}
        if lost.split != kept.split and not keys & rejected.keys():
            rejected[lost.point.key] = _near(neighbour.distance, f"{kept.id} of {kept.split}")
    return rejected


def _near_embedded(
    candidates: Sequence[RowCandidate], embedded: Mapping[str, Tokens]
) -> dict[str, Rejection]:
    if not embedded:
        return {}
    training = [candidate for candidate in candidates if candidate.split in TRAINING]
    corpus = Corpus([*embedded.values(), *(candidate.tokens for candidate in training)])
    ids = list(embedded)
    rejected: dict[str, Rejection] = {}
    for place, neighbour in corpus.pairs_within(NEAR_DISTANCE):
        if place < len(ids) <= neighbour.place:
            candidate = training[neighbour.place - len(ids)]
            reason = _near(neighbour.distance, f"{ids[place]} of the embedded dataset mini")
            rejected[candidate.point.key] = min(rejected.get(candidate.point.key, reason), reason)
    return rejected


def _near(distance: float, other: str) -> Rejection:
    return "near-duplicate", f"distance {distance:.4f} from {other}"


def clusters(ids: Sequence[str], pairs: Iterable[Pair]) -> list[str]:
    """The cluster of each place: the smallest id of those that pairs connect."""
    parents = list(range(len(ids)))

    def root(place: int) -> int:
        while parents[place] != place:
            parents[place] = place = parents[parents[place]]
        return place

    for place, neighbour in pairs:
        left, right = sorted((root(place), root(neighbour.place)), key=lambda i: ids[i])
        parents[right] = left
    return [ids[root(place)] for place in range(len(ids))]
