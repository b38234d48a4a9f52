"""Duplicates, splits, leakage: each against a plain computation of the same thing."""

from __future__ import annotations

import itertools
import json
import random
from collections import defaultdict
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from dataset_builders.release import better_labels
from dataset_builders.release.better_labels import better_label
from dataset_builders.release.duplicates import (
    RowCandidate,
    clusters,
    exact_duplicates,
    near_duplicates_across,
    near_pairs,
)
from dataset_builders.release.leakage import leakage_report
from dataset_builders.release.similarity import (
    Corpus,
    Neighbour,
    Tokens,
    distance,
    instruction_tokens,
)
from dataset_builders.sweeps import SWEEPS, SweepPoint, make_point
from dataset_builders.sweeps.splits import SPLITS, split_of
from tests.dataset_builders.inspection_folders import edit_distance
from tests.sampling import some_of
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.lower_bounds import check_certificate, lower_bound
from verilocc_bench.analysis.lower_bounds.json_form import from_json
from verilocc_bench.dataset import Row, load_rows
from verilocc_bench.dataset.rows import RELEASE_COLUMNS
from verilocc_bench.ir import parse_function
from verilocc_bench.targets import get_target
from verilocc_bench.verification import IndependentVerifier


def functions(seed: int, count: int) -> list[Tokens]:
    """Random sequences, many of them variations of one another."""
    generator = random.Random(seed)
    found = [tuple(generator.choices(range(6), k=generator.randint(3, 40))) for _ in range(5)]
    while len(found) < count:
        varied = list(generator.choice(found))
        for _ in range(generator.randint(0, 3)):
            varied[generator.randrange(len(varied))] = generator.randrange(6)
        found.append(tuple(varied))
    return found


@pytest.mark.parametrize("seed", some_of(range(3)))
def test_distances_are_edit_distances(seed: int) -> None:
    for left, right in itertools.pairwise(functions(seed, 60)):
        expected = edit_distance(left, right) / max(len(left), len(right))
        assert distance(left, right) == pytest.approx(expected)
        assert distance(left, right, at_most=expected + 1e-9) == pytest.approx(expected)


@pytest.mark.parametrize("seed", some_of(range(3)))
@pytest.mark.parametrize("threshold", [0.0, 0.05, 0.2])
def test_all_near_pairs_are_found(seed: int, threshold: float) -> None:
    members = functions(seed, 60)
    expected = {
        (i, j)
        for i, j in itertools.combinations(range(len(members)), 2)
        if edit_distance(members[i], members[j])
        <= threshold * max(len(members[i]), len(members[j])) + 1e-9
    }
    assert expected
    found = list(Corpus(members).pairs_within(threshold))
    assert {(place, neighbour.place) for place, neighbour in found} == expected
    assert len(found) == len(expected)


@pytest.mark.parametrize("seed", some_of(range(3)))
def test_the_nearest_is_the_nearest(seed: int) -> None:
    members = functions(seed, 60)
    corpus = Corpus(members)
    for query in functions(seed + 100, 30):
        expected = min(
            (edit_distance(query, member) / max(len(query), len(member)), place)
            for place, member in enumerate(members)
        )
        found = corpus.nearest(query)
        assert (found.distance, found.place) == (pytest.approx(expected[0]), expected[1])


def test_numbers_of_registers_and_blocks_do_not_count() -> None:
    row = load_rows("mini").rows[0]
    tokens = instruction_tokens(row.normalized)
    assert len(tokens) == row.n_instructions + row.n_blocks
    head, body = row.normalized.split("\nbb0", 1)
    shifted = body.replace("%1", "%71").replace("bb2", "bb92")
    assert instruction_tokens(f"{head}\nbb0{shifted}") == tokens
    other = body.replace("=COPY", "=MOVE", 1)
    assert edit_distance(instruction_tokens(f"{head}\nbb0{other}"), tokens) == 1


@cache
def all_points() -> list[SweepPoint]:
    return [point for name in ("small", "default") for point in SWEEPS[name].points()]


def test_groups_are_whole_in_every_sweep_and_architecture() -> None:
    splits: dict[str, set[str]] = defaultdict(set)
    for point in all_points():
        splits[point.group].add(split_of("default", point))
    assert all(len(found) == 1 for found in splits.values())
    assert set().union(*splits.values()) == set(SPLITS)


def test_no_training_row_has_what_a_generalization_split_asks_for() -> None:
    seen: dict[str, dict[str, set[object]]] = defaultdict(lambda: defaultdict(set))
    for point in all_points():
        split = split_of("default", point)
        values = dict(point.parameters)
        rows = values.get("block_m", values.get("block_h"))
        kind = point.family if point.family == "gemm" else point.kernel
        if "block_n" in values and point.kernel != "gemm_reduce_partials":
            seen[split][f"tile of {kind}"].add((rows, values["block_n"]))
        seen[split]["head"].add(values.get("head_dim"))
        seen[split]["type"].add(values["dtype"])
    for split in ("train", "validation", "test"):
        assert seen[split]["type"] <= {"fp16", "bf16", "fp32"}
        assert not seen[split]["head"] & {80, 96}
        assert not seen[split]["tile of gemm"] & {(64, 128), (16, 128)}
        assert (64, 32) not in seen[split]["tile of mha_forward"]
        assert (16, 128) not in seen[split]["tile of mha_decode"]
    assert seen["test_unseen_data_type"]["type"] == {"int8", "fp8e4b8"}
    assert seen["test_unseen_head_dimension"]["head"] == {80, 96}
    assert seen["test_unseen_tile_shape"]["tile of gemm"] == {(64, 128), (16, 128)}
    train = max(m * n for m, n in seen["train"]["tile of gemm"])  # type: ignore[misc, operator]
    larger = min(m * n for m, n in seen["test_larger"]["tile of gemm"])  # type: ignore[misc, operator]
    # Gated products accumulate two tiles.
    assert train <= larger


def test_ordinary_splits_have_a_tenth_each() -> None:
    groups = {p.group: split_of("default", p) for p in SWEEPS["default"].points()}
    counts = {split: list(groups.values()).count(split) for split in SPLITS}
    ordinary = sum(counts[split] for split in ("train", "validation", "test"))
    assert counts["test"] == pytest.approx(ordinary / 10, abs=1)
    assert counts["validation"] == pytest.approx(ordinary / 10, abs=1)


def candidate(place: int, split: str, tokens: Tokens) -> RowCandidate:
    point = make_point("gfx942", "gemm", {"num_stages": place + 1})
    return RowCandidate(point, f"{place:016x}", "assign", split, tokens)


def test_the_first_of_equal_texts_stays() -> None:
    assert exact_duplicates([("a", "1"), ("b", "2"), ("c", "1"), ("d", "1")]) == {
        "c": ("duplicate", "same normalized text as a"),
        "d": ("duplicate", "same normalized text as a"),
    }


def test_of_near_kernels_in_two_splits_the_training_one_goes() -> None:
    base = tuple(range(100))
    near, far = (*base[:-4], 7, 7, 7, 7), tuple(range(50, 150))
    candidates = [
        candidate(0, "train", base),
        candidate(1, "test", near),
        candidate(2, "train", far),
        candidate(3, "test_larger", (*near[:-1], 8)),
        candidate(4, "train", (*far[:-1], 8)),
    ]
    pairs = near_pairs(candidates)
    assert [(place, other.place) for place, other in pairs] == [(0, 1), (0, 3), (1, 3), (2, 4)]
    rejected = near_duplicates_across(candidates, pairs, {})
    keys = [c.point.key for c in candidates]
    assert set(rejected) == {keys[0], keys[1]}
    assert rejected[keys[0]] == ("near-duplicate", f"distance 0.0400 from {1:016x} of test")
    assert clusters([c.id for c in candidates], pairs) == [*(f"{i:016x}" for i in (0, 0, 2, 0, 2))]


def test_other_architectures_leave_the_published_ones_alone() -> None:
    base = tuple(range(100))
    new = make_point("sm_90", "gemm", {})
    candidates = [
        candidate(0, "train", base),
        replace(candidate(1, "test", (*base[:-1], 7)), point=new),
        candidate(2, "train", base[::-1]),
    ]
    rejected = near_duplicates_across(candidates, near_pairs(candidates), {})
    assert set(rejected) == {new.key}
    # The six of mini keep training rows of their own architecture clear alone.
    others = {"e" * 16: base}
    assert not near_duplicates_across(candidates[:1], [], {}, others)
    of_new = [replace(candidates[0], point=new)]
    assert set(near_duplicates_across(of_new, [], {}, others)) == {new.key}


def test_training_keeps_clear_of_the_embedded_dataset() -> None:
    base = tuple(range(100))
    candidates = [candidate(0, "train", base), candidate(1, "test", base[::-1])]
    embedded = {"e" * 16: (*base[:-1], 7), "f" * 16: base[::-1]}
    rejected = near_duplicates_across(candidates, near_pairs(candidates), embedded)
    assert rejected == {
        candidates[0].point.key: (
            "near-duplicate",
            f"distance 0.0100 from {'e' * 16} of the embedded dataset mini",
        )
    }


def test_clusters_are_connected_components() -> None:
    pairs = [(0, Neighbour(3, 0.0)), (3, Neighbour(4, 0.0)), (1, Neighbour(2, 0.0))]
    assert clusters(list("edcba"), pairs) == ["a", "c", "c", "a", "a"]


def test_the_leakage_report_names_the_nearest_training_row() -> None:
    members = functions(5, 40)
    names = ["train", "test", "test_larger", "validation"]
    candidates = [candidate(i, names[i % 4], tokens) for i, tokens in enumerate(members)]
    report = leakage_report(candidates, {"m": members[0]}, progress=False)
    training = {c.id: c.tokens for c in candidates if c.split == "train"}
    by_id = {c.id: c for c in candidates}
    assert {row["id"] for row in report["rows"]} == set(by_id) - set(training)
    for row in report["rows"]:
        own = by_id[row["id"]].tokens
        distances = {
            other: edit_distance(own, tokens) / max(len(own), len(tokens))
            for other, tokens in training.items()
        }
        assert row["distance"] == pytest.approx(min(distances.values()), abs=1e-4)
        assert distances[row["nearest"]] == min(distances.values())
    assert report["embedded"]["minimum_distance"] == 0
    assert report["embedded"]["share_below"]["0.05"] == 1
    assert list(report["summary"]) == ["validation", "test", "test_larger"]
    json.dumps(report)


SMALL = ("fe33ea20e7c8cba7", "3846ca71116af583", "283d953e61cef95c", "52dedc6393ee792f")
"""Rows of `mini`, of which two have better labels and two optimal ones of the compiler's."""


def test_better_labels_are_better_by_another_judge() -> None:
    pytest.importorskip("numba", reason="the extra 'exact' is not installed")
    better = 0
    for row in load_rows("mini").rows:
        if row.id not in SMALL:
            continue
        blank: dict[str, Any] = {**RELEASE_COLUMNS, "cluster": row.cluster}
        found = replace(row, **blank)
        found = replace(found, **better_label(found))
        assert found.best_registers_used is not None
        problem = AllocationProblem.from_text(row.normalized)
        used = json.loads(row.registers_used or "")
        verdict = IndependentVerifier(problem).verify(found.best_label or found.label or {})
        assert verdict.valid
        assert verdict.registers_used is not None
        assert verdict.registers_used["vector"] == found.best_registers_used <= used["vector"]
        assert get_target(row.arch).occupancy(verdict.registers_used) >= (row.occupancy or 0)
        better += found.best_source is not None
        assert (found.best_label is None) == (found.best_source is None)
        if found.best_label is None:
            assert found.bank_conflicts == found.best_bank_conflicts
        bound = from_json(json.loads(found.best_certificate or ""), problem)
        check_certificate(problem, bound)
        assert bound.value == found.best_lower_bound <= found.best_registers_used
        assert found.best_is_optimal == (bound.value == found.best_registers_used)
    assert better


def search_finds(
    monkeypatch: pytest.MonkeyPatch, row: Row, answer: dict[str, str]
) -> dict[str, Any]:
    """What the columns of a row become where the search finds just this."""
    problem = AllocationProblem.from_text(row.normalized)
    found = {"best": answer}, lower_bound(problem, solver=False)
    monkeypatch.setattr(better_labels, "_search", lambda *_: found)
    return better_labels.better_label(row)


def test_an_answer_is_taken_only_where_it_is_better(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba", reason="the extra 'exact' is not installed")
    rows = {row.id: row for row in load_rows("mini").rows}
    row = replace(rows["3846ca71116af583"], alternatives="{}")
    label, best = row.label or {}, row.best_label or {}
    taken = search_finds(monkeypatch, row, best)
    assert taken["best_source"] == "best"
    assert json.loads(taken["best_assignment"]) == best
    # The label itself, a wrong answer, and one that is worse leave the label where it is.
    for answer in (label, {**best, "%0": "v999"}, {}):
        kept = search_finds(monkeypatch, row, answer)
        assert (kept["best_assignment"], kept["best_source"]) == (None, None)
        assert kept["best_registers_used"] == json.loads(row.registers_used or "")["vector"]
        assert kept["best_bank_conflicts"] == kept["bank_conflicts"]
    worse = replace(row, assignment=json.dumps(best))
    assert search_finds(monkeypatch, worse, label)["best_source"] is None
    # The alternatives are candidates, and the first of equally good ones stays.
    other = replace(row, alternatives=json.dumps({"another": best}))
    assert search_finds(monkeypatch, other, best)["best_source"] == "another"


def test_an_answer_of_lower_occupancy_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba", reason="the extra 'exact' is not installed")
    text = (
        "verilocc-bench 1\ntarget gfx942\nregisters v:16 a:0 s:102 vcc:2=vcc_lo,vcc_hi\n"
        "class G 1 s\nclass V 1 v\nbb0\n%0:V=OP\n%1:G=OP\nOP %0,%1\n"
    )
    problem = AllocationProblem(parse_function(text, canonical=False))
    template = load_rows("mini").rows[0]
    row = replace(
        template,
        normalized=problem.normalized,
        assignment='{"%0":"v1","%1":"s0"}',
        alternatives="{}",
    )
    assert search_finds(monkeypatch, row, {"%0": "v0", "%1": "s100"})["best_source"] is None
    assert search_finds(monkeypatch, row, {"%0": "v0", "%1": "s1"})["best_source"] == "best"
