"""Probes the splits: can sweep metadata tell them apart? They should hold similar rows.

For each split, a classifier learns to tell its rows from those of `train` by
their sweep parameters, architecture and kernel: once by logistic regression,
once by nearest neighbours. Cross-validation keeps each sweep group in one fold,
as splits do, so that one row of a group tells nothing of another. The figure is
the area under the ROC curve; guessing gives 0.5. Chance moves it by some
hundredths, and more for splits with few groups: `chance_low` and `chance_high`
hold 95 % of the areas when the split's name is dealt anew among the groups. At
most `_ROWS` rows of each group count, the first ones by the hash of their
points.

A generalization split differs in the parameters that its name tells; those are
left out, and so are kernels that only one side has.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dataset_builders.release.duplicates import RowCandidate
from dataset_builders.sweeps.splits import SPLITS
from verilocc_bench.errors import MissingExtraError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FOLDS = 5
_DEALS = 39
_ROWS = 4
_NEIGHBOURS = 5
_DIGITS = 3
_TILE = frozenset({"block_m", "block_n", "block_k", "block_h", "num_warps"})
_HEAD = frozenset({"head_dim", "block_d"})
_IN_THE_NAME: Mapping[str, frozenset[str]] = {
    "test_unseen_tile_shape": _TILE,
    "test_unseen_head_dimension": _HEAD,
    "test_larger": _TILE | _HEAD,
    # Integers have an output type, a precision and no epilogue of their own.
    "test_unseen_data_type": frozenset(
        {"dtype", "out_dtype", "precision", "bias", "activation", "residual"}
    ),
}


def probe_splits(candidates: Sequence[RowCandidate]) -> dict[str, dict[str, Any]]:
    """By split: rows, groups, and the area under the curve of each classifier, with chance.

    Splits with too few groups are left out, and all of them if `train` has too
    few. Raises MissingExtraError without scikit-learn.
    """
    return {
        split: _probe(split, candidates)
        for split in SPLITS
        if split != "train" and _can_be_probed(split, candidates)
    }


def _can_be_probed(split: str, candidates: Sequence[RowCandidate]) -> bool:
    groups = {
        name: {c.point.group for c in candidates if c.split == name} for name in ("train", split)
    }
    return all(len(found) >= _FOLDS for found in groups.values())


def _probe(split: str, candidates: Sequence[RowCandidate]) -> dict[str, Any]:
    kernels = {c.point.kernel for c in candidates if c.split == split}
    kernels &= {c.point.kernel for c in candidates if c.split == "train"}
    rows = _some_of_each_group(
        [c for c in candidates if c.split in ("train", split) and c.point.kernel in kernels]
    )
    features = _features(rows, _IN_THE_NAME.get(split, frozenset()))
    names = [c.point.group for c in rows]
    groups = np.unique(names, return_inverse=True)[1]
    inside = np.array([c.split == split for c in rows])
    generator = np.random.default_rng(0)
    result: dict[str, Any] = {
        "rows": int(inside.sum()),
        "groups": len(set(groups[inside].tolist())),
        "left_out": sorted(_IN_THE_NAME.get(split, frozenset())),
    }
    for name in ("logistic_regression", "nearest_neighbours"):
        chance = [
            _area(name, features, _dealt(inside, groups, generator), groups) for _ in range(_DEALS)
        ]
        result[name] = {
            "area": round(_area(name, features, inside, groups), _DIGITS),
            "chance_low": round(float(np.quantile(chance, 0.025)), _DIGITS),
            "chance_high": round(float(np.quantile(chance, 0.975)), _DIGITS),
        }
    return result


def _some_of_each_group(rows: Sequence[RowCandidate]) -> list[RowCandidate]:
    taken: Counter[str] = Counter()
    found: list[RowCandidate] = []
    for row in sorted(rows, key=lambda row: row.point.digest):
        taken[row.point.group] += 1
        if taken[row.point.group] <= _ROWS:
            found.append(row)
    return found


def _dealt(
    inside: NDArray[np.bool_], groups: NDArray[np.int64], generator: np.random.Generator
) -> NDArray[np.bool_]:
    """Deals the split's name anew: to as many groups, drawn at random."""
    count = len(set(groups[inside].tolist()))
    drawn = generator.permutation(int(groups.max()) + 1)[:count]
    return np.isin(groups, drawn)


def _features(rows: Sequence[RowCandidate], left_out: frozenset[str]) -> NDArray[np.float64]:
    """One column for each value that occurs, and one for each number, all standardized."""
    described = [
        {"arch": c.point.arch, "kernel": c.point.kernel, **dict(c.point.parameters)} for c in rows
    ]
    names = sorted({name for row in described for name in row} - left_out)
    columns: list[list[float]] = []
    for name in names:
        values = [row.get(name) for row in described]
        columns += [
            [float(json.dumps(v) == value) for v in values]
            for value in sorted({json.dumps(v) for v in values})
        ]
        if all(type(v) is int or v is None for v in values):
            columns.append([0.0 if v is None else float(np.log2(int(v) + 1)) for v in values])
    table = np.array(columns).T
    spread = table.std(axis=0)
    kept = spread > 0
    return np.asarray((table[:, kept] - table[:, kept].mean(axis=0)) / spread[kept])


def _area(
    name: str,
    features: NDArray[np.float64],
    inside: NDArray[np.bool_],
    groups: NDArray[np.int64],
) -> float:
    try:
        from sklearn.linear_model import LogisticRegression
        from sklearn.metrics import roc_auc_score
        from sklearn.model_selection import StratifiedGroupKFold
        from sklearn.neighbors import KNeighborsClassifier
    except ModuleNotFoundError:
        raise MissingExtraError("scikit-learn", "build", "probing the splits") from None
    folds = StratifiedGroupKFold(_FOLDS, shuffle=True, random_state=0)
    scores = np.zeros(len(inside))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        parts = list(folds.split(features, inside, groups))
    for learned, tested in parts:
        model = (
            LogisticRegression(C=0.1, max_iter=200)
            if name == "logistic_regression"
            else KNeighborsClassifier(_NEIGHBOURS)
        )
        with warnings.catch_warnings():
            # Of few rows: too few for the folds, or no convergence. The figure says as much.
            warnings.simplefilter("ignore", UserWarning)
            model.fit(features[learned], inside[learned])
        scores[tested] = _ranks(model.predict_proba(features[tested])[:, -1])
    return float(roc_auc_score(inside, scores))


def _ranks(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks from 0 to 1, ties in the middle: they make the folds comparable."""
    ordered = np.sort(scores)
    left = np.searchsorted(ordered, scores, side="left")
    right = np.searchsorted(ordered, scores, side="right")
    return np.asarray((left + right) / (2 * len(scores)))
