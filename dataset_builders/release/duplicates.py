"""Equal and nearly equal kernels: one of several equal ones stays, and near ones share a split.

Exact duplicates have the same normalized text; the first point of the sweep
stays. Near duplicates are at most `NEAR_DISTANCE` apart (see similarity): the
same function except for a few instructions. Sweep groups keep most of them in
one split. If a near pair lies in two splits, the kernel in the later split of
`SPLITS` stays and the other one is left out: so training loses kernels, not the
tests of generalization. Kernels of the embedded dataset `mini` count as one
more test split, so that `mini` can test models that were trained on `train`.

Kernels of experts are all in one split, and there only the first of several near
ones stays. One that is near a function of `mini`, or of the dataset that the
build is compared with, is left out.

The rows of the published architectures do not depend on those of others: of a near pair
the other one is left out, and clusters do not join them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from dataset_builders.release.similarity import Corpus, Neighbour, Tokens
from dataset_builders.sweeps.point import RowPoint
from dataset_builders.sweeps.splits import SPLITS, TRAINING
from verilocc_bench.targets import PUBLISHED

NEAR_DISTANCE = 0.05
EMBEDDED_DATASET = "the embedded dataset mini"
"""How reasons call it."""

Rejection = tuple[str, str]
"""Kind and reason."""

Pair = tuple[int, Neighbour]
"""A place in a list, and a later place with the distance."""


@dataclass(frozen=True, slots=True)
class RowCandidate:
    """A compiled kernel that may become a row."""

    point: RowPoint
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


def is_published(candidate: RowCandidate) -> bool:
    """True for a kernel of a published architecture."""
    return candidate.point.arch in PUBLISHED


def near_pairs(candidates: Sequence[RowCandidate]) -> list[Pair]:
    """Pairs of places of candidates that are near each other, sorted."""
    corpus = Corpus([candidate.tokens for candidate in candidates])
    found = corpus.pairs_within(NEAR_DISTANCE)
    return sorted(found, key=lambda pair: (pair[0], pair[1].place))


def near_duplicates_across(
    candidates: Sequence[RowCandidate],
    pairs: Iterable[Pair],
    embedded: Mapping[str, Tokens],
    embedded_others: Mapping[str, Tokens] = MappingProxyType({}),
) -> dict[str, Rejection]:
    """The rejections of candidates that are near one in another split or in `mini`; by point key.

    `embedded` has the functions of `mini` by id, `embedded_others` those of architectures
    that are not published; they reject candidates of training splits only.
    """
    order = list(SPLITS)

    def rank(candidate: RowCandidate) -> tuple[bool, int]:
        return is_published(candidate), order.index(candidate.split)

    training = [candidate for candidate in candidates if candidate.split in TRAINING]
    rejected = near_duplicates_of(embedded, training, EMBEDDED_DATASET)
    others = [each for each in training if not is_published(each)]
    rejected |= near_duplicates_of(embedded_others, others, EMBEDDED_DATASET)
    for place, neighbour in pairs:
        both = (candidates[place], candidates[neighbour.place])
        lost, kept = sorted(both, key=rank)
        keys = {candidate.point.key for candidate in both}
        if lost.split != kept.split and not keys & rejected.keys():
            rejected[lost.point.key] = _near(neighbour.distance, f"{kept.id} of {kept.split}")
    return rejected


def near_duplicates_within(
    candidates: Sequence[RowCandidate], pairs: Iterable[Pair]
) -> dict[str, Rejection]:
    """The rejections of candidates that are near an earlier one that stays; by point key."""
    rejected: dict[str, Rejection] = {}
    later: dict[int, list[Pair]] = {}
    for place, neighbour in pairs:
        later.setdefault(neighbour.place, []).append((place, neighbour))
    for place, found in sorted(later.items()):
        kept = [each for each in found if candidates[each[0]].point.key not in rejected]
        if kept:
            first, neighbour = min(kept, key=lambda each: (each[1].distance, each[0]))
            reason = _near(neighbour.distance, candidates[first].id)
            rejected[candidates[place].point.key] = reason
    return rejected


def near_duplicates_of(
    known: Mapping[str, Tokens], candidates: Sequence[RowCandidate], dataset: str
) -> dict[str, Rejection]:
    """The rejections of candidates that are near a function of a dataset; by point key.

    `known` has its functions by id, and `dataset` is how reasons call it.
    """
    if not known:
        return {}
    corpus = Corpus([*known.values(), *(candidate.tokens for candidate in candidates)])
    ids = list(known)
    rejected: dict[str, Rejection] = {}
    for place, neighbour in corpus.pairs_within(NEAR_DISTANCE):
        if place < len(ids) <= neighbour.place:
            candidate = candidates[neighbour.place - len(ids)]
            reason = _near(neighbour.distance, f"{ids[place]} of {dataset}")
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
