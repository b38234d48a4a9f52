"""Two runs side by side, function by function."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tabulate import tabulate

from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.metrics import bootstrap_interval, geometric_mean, mean
from verilocc_bench.evaluation.table import allocator_label

if TYPE_CHECKING:
    import pandas

Interval = tuple[float, float] | tuple[None, None]

_COMMON = ("track", "budget")


@dataclass(frozen=True, slots=True)
class PairedFunction:
    """One function under two runs; `registers` belong to the first valid sample, or are None."""

    id: str
    task: str
    pass_at_1: tuple[float, float]
    registers: tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Two runs over the functions that both were asked.

    `pass_difference` is the mean of the second's pass@1 less the first's.
    `registers_ratio` is the geometric mean, over functions that both solved, of
    the second's registers over the first's. Intervals are of 95 %, by bootstrap
    over functions. `sign_test` is the two-sided p-value of the exact sign test on
    functions with fewer and with more registers.
    """

    models: tuple[str, str]
    functions: tuple[PairedFunction, ...]
    pass_difference: float
    pass_interval: Interval
    registers_ratio: float | None
    registers_interval: Interval

    @property
    def solved(self) -> dict[str, int]:
        """How many functions both solved, only the first, only the second, and neither."""
        found = {"both": 0, "only the first": 0, "only the second": 0, "neither": 0}
        for each in self.functions:
            first, second = (registers is not None for registers in each.registers)
            key = ("neither", "only the second", "only the first", "both")[2 * first + second]
            found[key] += 1
        return found

    @property
    def registers(self) -> dict[str, int]:
        """Of the functions that both solved: the second needs fewer, as many, or more."""
        found = {"fewer": 0, "equal": 0, "more": 0}
        for each in self.functions:
            first, second = each.registers
            if first is not None and second is not None:
                sign = (second > first) - (second < first)
                found[("equal", "more", "fewer")[sign]] += 1
        return found

    @property
    def sign_test(self) -> float:
        """The chance of so uneven a split of fewer and more if both were as likely."""
        fewer, more = self.registers["fewer"], self.registers["more"]
        count = fewer + more
        tail = sum(math.comb(count, i) for i in range(min(fewer, more) + 1))
        return float(min(1.0, 2 * tail / 2**count))

    def to_pandas(self) -> pandas.DataFrame:
        """One line a function, with the figures of both runs in columns of their own."""
        import pandas as pd

        return pd.DataFrame.from_records(
            {
                "id": each.id,
                "task": each.task,
                "pass@1_first": each.pass_at_1[0],
                "pass@1_second": each.pass_at_1[1],
                "registers_first": each.registers[0],
                "registers_second": each.registers[1],
            }
            for each in self.functions
        )

    def _table(self, form: str) -> str:
        solved, registers = self.solved, self.registers
        rows = [
            ("first", self.models[0]),
            ("second", self.models[1]),
            ("functions", len(self.functions)),
            ("solved", ", ".join(f"{name} {count}" for name, count in solved.items())),
            ("pass@1, second − first", _figure(self.pass_difference, self.pass_interval)),
            ("registers, second ÷ first", _figure(self.registers_ratio, self.registers_interval)),
            ("second needs", ", ".join(f"{name} {count}" for name, count in registers.items())),
            ("sign test", f"p = {self.sign_test:.3g}"),
        ]
        return tabulate(rows, tablefmt=form, disable_numparse=True)

    def __repr__(self) -> str:
        return self._table("plain")

    def _repr_html_(self) -> str:
        return self._table("html")


def compare_runs(first: Mapping[str, Any], second: Mapping[str, Any]) -> RunComparison:
    """Compares two results documents. Raises InputError if they have nothing in common."""
    for key in _COMMON:
        values = first["config"][key], second["config"][key]
        if values[0] != values[1]:
            raise InputError(f"runs of different {key}s cannot be compared: {' and '.join(values)}")
    kernels = {(k["split"], k["id"]): k for k in second["kernels"]}
    functions = []
    for kernel in first["kernels"]:
        other = kernels.get((kernel["split"], kernel["id"]))
        if other is not None and kernel["samples"] and other["samples"]:
            functions.append(
                PairedFunction(
                    kernel["id"],
                    kernel["task"],
                    (kernel["valid"] / kernel["samples"], other["valid"] / other["samples"]),
                    (kernel["registers"], other["registers"]),
                )
            )
    if not functions:
        raise InputError("no function is in both runs")
    differences = [each.pass_at_1[1] - each.pass_at_1[0] for each in functions]
    ratios = [
        own / base
        for base, own in (each.registers for each in functions)
        if base and own  # neither without an answer nor without a register
    ]
    seed = int(first["seed"])
    difference = mean(differences)
    assert difference is not None
    return RunComparison(
        (allocator_label(first["config"]), allocator_label(second["config"])),
        tuple(functions),
        difference,
        bootstrap_interval(differences, seed),
        geometric_mean(ratios),
        bootstrap_interval(ratios, seed, geometric_mean),
    )


def _figure(value: float | None, interval: Interval) -> str:
    if value is None or interval[0] is None or interval[1] is None:
        return "–"
    return f"{value:.4f} [{interval[0]:.4f}, {interval[1]:.4f}]"
