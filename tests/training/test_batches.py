"""Batches hold every example once, padded on the left, and only answers are learnt."""

from __future__ import annotations

import random

import numpy as np
import pytest

from verilocc_bench.training.batches import IGNORED, Batches
from verilocc_bench.training.examples import Examples

PADDING = 0
BUDGET = 200


def made(count: int = 300, longest: int = 60, seed: int = 0) -> Examples:
    """Examples whose tokens are all different, and none is the padding."""
    generator = random.Random(seed)
    lengths = [generator.randint(3, longest) for _ in range(count)]
    starts = np.cumsum([0, *lengths]).astype(np.int64)
    completions = np.array([generator.randint(1, 2) for _ in lengths], np.int32)
    return Examples(np.arange(1, starts[-1] + 1, dtype=np.int32), starts, completions)


@pytest.fixture(scope="module")
def batches() -> Batches:
    return Batches(made(), BUDGET, PADDING, 0)


def test_every_example_is_there_exactly_once(batches: Batches) -> None:
    found = made()
    wanted = sorted(
        tuple(found.tokens[start:end].tolist())
        for start, end in zip(found.starts, found.starts[1:], strict=False)
    )
    rows = [
        tuple(row[mask.bool()].tolist())
        for number in range(len(batches))
        for row, mask in zip(
            batches[number]["input_ids"], batches[number]["attention_mask"], strict=True
        )
    ]
    assert sorted(rows) == wanted


def test_rows_are_padded_on_the_left(batches: Batches) -> None:
    padded = 0
    for number in range(len(batches)):
        batch = batches[number]
        for ids, mask, positions in zip(
            batch["input_ids"], batch["attention_mask"], batch["position_ids"], strict=True
        ):
            before = int((mask == 0).sum())
            padded += before
            assert mask.tolist() == [0] * before + [1] * (len(mask) - before)
            assert ids[:before].tolist() == [PADDING] * before
            assert PADDING not in ids[before:]
            assert positions[before:].tolist() == list(range(len(ids) - before))
            assert set(positions[:before].tolist()) <= {0}
        assert batch["attention_mask"].any(dim=0).all()  # no wider than need be
    assert padded


def test_only_completions_are_learnt(batches: Batches) -> None:
    found = made()
    learnt = {
        int(found.tokens[end - 1]): int(count)
        for end, count in zip(found.starts[1:], found.completions, strict=True)
    }
    for number in range(len(batches)):
        batch = batches[number]
        for ids, labels in zip(batch["input_ids"], batch["labels"], strict=True):
            count = learnt[int(ids[-1])]
            assert labels[-count:].tolist() == ids[-count:].tolist()
            assert set(labels[:-count].tolist()) == {IGNORED}
            assert batch["kept"] > count
        assert batch["kept"] == max(learnt[int(ids[-1])] for ids in batch["input_ids"]) + 1


@pytest.mark.parametrize("budget", [61, BUDGET, 1000])
def test_the_budget_is_kept(budget: int) -> None:
    found = Batches(made(), budget, PADDING, 0)
    sizes = [found[number]["input_ids"].numel() for number in range(len(found))]
    assert max(sizes) <= budget
    # And used: like lengths are together, so that little is padding.
    assert sum(sizes) < 1.3 * len(made().tokens)
    assert len(found) < 2 * len(made().tokens) / budget + 10


def test_what_is_longer_than_the_budget_is_alone() -> None:
    found = Batches(made(20), 10, PADDING, 0)
    sizes = [found[number]["input_ids"].shape for number in range(len(found))]
    assert sum(rows for rows, _ in sizes) == 20
    assert all(rows == 1 or rows * width <= 10 for rows, width in sizes)


def test_the_order_is_the_seeds() -> None:
    def order(seed: int) -> list[list[int]]:
        found = Batches(made(), BUDGET, PADDING, seed)
        return [found[number]["input_ids"][:, -1].tolist() for number in range(len(found))]

    assert order(0) == order(0)
    assert order(0) != order(1)
    widths = [Batches(made(), BUDGET, PADDING, 0)[n]["input_ids"].shape[1] for n in range(20)]
    assert widths != sorted(widths)  # short ones do not all come first
