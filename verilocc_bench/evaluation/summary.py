"""One record of figures for a set of functions: a task, a group, or all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from verilocc_bench.evaluation.machine_code import CountedCode, summarise_machine_code
from verilocc_bench.evaluation.metrics import (
    geometric_mean,
    mean,
    pass_at_k,
    seed_interval,
    share_interval,
    shares,
)
from verilocc_bench.evaluation.records import Outcome, RowResult, Sample
from verilocc_bench.evaluation.score import certified_bound, code_score, kernel_score, score_record

OVERALL = "overall"

_MEASURES = (
    "registers",
    "label_registers",
    "bound",
    "occupancy",
    "label_occupancy",
    "occupancy_at_bound",
    "identity_copies",
    "spill_cost",
    "move_cost",
)

SIZES = (256, 512, 1024, 2048)
"""Where groups by size begin, in virtual registers."""


def summarise_by_task(results: Sequence[RowResult], **how: Any) -> dict[str, dict[str, Any]]:
    """A record for each task, in order, and for all together; `how` goes to `summarise`."""
    tasks: dict[str, list[RowResult]] = {}
    for result in results:
        tasks.setdefault(result.task, []).append(result)
    records = {task: summarise(tasks[task], **how) for task in sorted(tasks)}
    return {**records, OVERALL: summarise(results, **how)}


def summarise_by_group(
    results: Sequence[RowResult], **how: Any
) -> dict[str, dict[str, dict[str, Any]]]:
    """A record for each architecture, family, size and split; `how` goes to `summarise`."""
    return {
        name: {value: summarise(rows, **how) for value, rows in groups.items()}
        for name, groups in _group_results(results).items()
    }


def summarise(
    rows: Sequence[RowResult],
    *,
    assistance: str,
    decoding: str,
    track: str,
    ks: Sequence[int],
    seed: int = 0,
    calls: int | None = None,
    machine_code: Mapping[str, CountedCode] | None = None,
    price: tuple[float, float] | None = None,
) -> dict[str, Any]:
    """The record of some functions; what cannot be computed is None.

    `ks` are the k of pass@k, and `seed` is the seed of the bootstrap intervals.
    `calls` is the budget of verifier calls, None if the run is not guided.
    `machine_code` has the counted code of valid answers by row id. Without it the record
    has no key `machine_code`. `price` is what a million tokens cost, in prompts and in
    completions; without it the record has no key `cost`, and without a language model no key
    `reading`. `pass@1_seeds_low` and `_high` are there where every function has five samples.
    """
    outcomes = [(row, row.outcome) for row in rows if row.outcome is not None]
    found = [outcome for _, outcome in outcomes]
    counted = [sample for row in rows for sample in row.counted]
    samples = [sample for row in rows for sample in row.samples]
    record: dict[str, Any] = {"n": len(rows), "samples": len(counted)}
    record |= {"assistance": assistance, "decoding": decoding}
    for k in ks:
        record |= _pass_record(rows, k)
    scored = rows if track != "split" and _complete(rows) else []
    record |= score_record([kernel_record(row, guided=False) for row in scored], seed)
    record |= _register_record(outcomes, track)
    compared = [
        outcome.occupancy - outcome.label_occupancy
        for outcome in found
        if outcome.label_occupancy is not None
    ]
    record |= {
        "occupancy_gained": sum(d > 0 for d in compared) if compared else None,
        "occupancy_lost": sum(d < 0 for d in compared) if compared else None,
    }
    record["copies_removed"] = _sum(outcome.identity_copies for outcome in found)
    record["bank_conflicts"] = _sum(outcome.bank_conflicts.any for outcome in found)
    record["bank_conflicts_all"] = _sum(outcome.bank_conflicts.all for outcome in found)
    record["spill_cost"] = _mean_cost(outcome.spill_cost for outcome in found)
    record["move_cost"] = _mean_cost(outcome.move_cost for outcome in found)
    record |= _call_record(rows, calls)
    record["totals"] = _totals(counted)
    record["allocate_seconds"] = sum(sample.allocate_seconds for sample in samples)
    record["verify_seconds"] = sum(sample.verify_seconds for sample in samples)
    record["failures"] = _count(sample.kind for sample in counted if sample.kind is not None)
    record["unparsable"] = _count(
        str(sample.details["unparsable"]) for sample in counted if sample.details.get("unparsable")
    )
    record["findings"] = _count(kind for sample in counted for kind in sample.finding_kinds)
    record["infrastructure_failures"] = len(samples) - len(counted)
    if any("read" in sample.details for sample in counted):
        record["reading"] = _reading_record(counted)
    if price is not None:
        totals = record["totals"]
        tokens = totals.get("prompt_tokens"), totals.get("completion_tokens")
        record["cost"] = None
        if tokens[0] is not None and tokens[1] is not None:
            record["cost"] = (price[0] * tokens[0] + price[1] * tokens[1]) / 1e6
    if machine_code is not None:
        record["machine_code"] = summarise_machine_code(
            [machine_code.get(row.row.id) for row in rows]
        )
        scores = [
            code_score(kernel_record(row, guided=False, machine_code=machine_code))
            for row in (rows if _complete(rows) else ())
        ]
        record["machine_code"]["score"] = mean([score for score in scores if score is not None])
    return record


def _sum(values: Iterable[int]) -> int | None:
    found = list(values)
    return sum(found) if found else None


def _mean_cost(values: Iterable[int | None]) -> float | None:
    return mean([float(value) for value in values if value is not None])


def _count(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))


def _pass_record(rows: Sequence[RowResult], k: int) -> dict[str, float | None]:
    estimates = [pass_at_k(len(row.counted), sum(s.valid for s in row.counted), k) for row in rows]
    known = [estimate for estimate in estimates if estimate is not None]
    # What is missing may be what fails most: an incomplete run has no pass@k.
    if len(known) < len(estimates) or not _complete(rows):
        known = []
    low, high = share_interval(known)
    record = {f"pass@{k}": mean(known), f"pass@{k}_low": low, f"pass@{k}_high": high}
    if k == 1 and known:
        low, high = seed_interval([(len(r.counted), sum(s.valid for s in r.counted)) for r in rows])
        if low is not None:
            record |= {"pass@1_seeds_low": low, "pass@1_seeds_high": high}
    return record


def _register_record(
    outcomes: Sequence[tuple[RowResult, Outcome]], track: str
) -> dict[str, float | None]:
    labelled = {
        f"{row.split} {row.row.id}": (outcome.registers, outcome.label_registers)
        for row, outcome in outcomes
        if outcome.label_registers is not None
    }
    ratios = [own / label for own, label in labelled.values() if own and label]
    # With spills an answer may use fewer registers than were live at once.
    gaps = [
        float(o.registers - certified_bound(row.row.id, o.bound, row.row.best_lower_bound))
        for row, o in (outcomes if track != "split" else ())
    ]
    return {
        "registers_ratio": geometric_mean(ratios),
        **shares(labelled),
        "gap_to_bound": mean(gaps),
    }


def _call_record(rows: Sequence[RowResult], calls: int | None) -> dict[str, Any]:
    """Of guided samples: the mean calls of those that succeed, and success by budget of calls."""
    if calls is None or not _complete(rows):
        return {"verifier_calls": None, "success_by_calls": None}
    successes = [float(s.calls) for row in rows for s in row.samples if s.valid]
    by_budget = {
        str(budget): mean([_within(row, budget) for row in rows]) for budget in range(1, calls + 1)
    }
    return {"verifier_calls": mean(successes), "success_by_calls": by_budget}


def _complete(rows: Sequence[RowResult]) -> bool:
    """True if no sample was lost to the infrastructure."""
    return all(sample.counted for row in rows for sample in row.samples)


def _within(row: RowResult, budget: int) -> float:
    """The share of a function's samples that succeed within `budget` calls."""
    return sum(s.valid and s.calls <= budget for s in row.samples) / len(row.samples)


def _totals(samples: Sequence[Sample]) -> dict[str, int]:
    """Sums of the whole numbers that allocators report, such as tokens.

    There is none where a sample does not know its number.
    """
    totals: Counter[str] = Counter()
    unknown: set[str] = set()
    for sample in samples:
        for name, value in sample.details.items():
            if type(value) is int:
                totals[name] += value
            elif value is None:
                unknown.add(name)
    return {name: totals[name] for name in sorted(totals) if name not in unknown}


def _reading_record(samples: Sequence[Sample]) -> dict[str, int]:
    """How many samples could be read, and were valid; and how many by the strict rule."""
    strict = [sample for sample in samples if sample.details.get("read_strictly")]
    return {
        "read": sum(bool(sample.details.get("read")) for sample in samples),
        "valid": sum(sample.valid for sample in samples),
        "strictly_read": len(strict),
        "strictly_valid": sum(sample.valid for sample in strict),
    }


def _group_results(rows: Sequence[RowResult]) -> dict[str, dict[str, list[RowResult]]]:
    """The rows by architecture, family, size and split."""
    keys: dict[str, Callable[[RowResult], str]] = {
        "architecture": lambda row: row.row.arch,
        "family": lambda row: row.row.family,
        "size": lambda row: _size_name(row.row.n_virtual_registers),
        "split": lambda row: row.split,
    }
    groups: dict[str, dict[str, list[RowResult]]] = {}
    for name, key in keys.items():
        found: dict[str, list[RowResult]] = {}
        for row in rows:
            found.setdefault(key(row), []).append(row)
        by_number = name == "size"
        order = sorted(found, key=lambda value: int(value.split("-")[0]) if by_number else value)
        groups[name] = {value: found[value] for value in order}
    return groups


def _size_name(virtual_registers: int) -> str:
    below = 1
    for size in SIZES:
        if virtual_registers < size:
            return f"{below}-{size - 1}"
        below = size
    return f"{below}-"


def kernel_record(
    result: RowResult, guided: bool, machine_code: Mapping[str, CountedCode] | None = None
) -> dict[str, Any]:
    """The figures of one function; with `machine_code`, of its machine code too."""
    row, outcome = result.row, result.outcome
    first = next((sample for sample in result.samples if sample.valid), None)
    record: dict[str, Any] = {
        "id": row.id,
        "task": result.task,
        "split": result.split,
        "n_instructions": row.n_instructions,
        "n_virtual_registers": row.n_virtual_registers,
        "samples": len(result.counted),
        "valid": sum(sample.valid for sample in result.counted),
        "infrastructure_failures": len(result.samples) - len(result.counted),
        "first_valid": None if first is None else first.index,
        "verifier_calls": first.calls if guided and first is not None else None,
    }
    record |= {name: None if outcome is None else getattr(outcome, name) for name in _MEASURES}
    conflicts = None if outcome is None else outcome.bank_conflicts
    record["bank_conflicts"] = None if conflicts is None else conflicts.any
    record["bank_conflicts_all"] = None if conflicts is None else conflicts.all
    record |= {"certified_bound": None, "score": None}
    if row.track != "split":
        if outcome is not None:
            bound = certified_bound(row.id, outcome.bound, row.best_lower_bound)
            record["certified_bound"] = bound
        record["score"] = kernel_score(record)
    if machine_code is not None:
        code = machine_code.get(row.id)
        record["machine_code"] = None if code is None else asdict(code)
    return record
