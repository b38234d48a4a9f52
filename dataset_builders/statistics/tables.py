"""The figures of a dataset as tables, for a terminal or for a card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from tabulate import tabulate

from dataset_builders.statistics.row_facts import RowFacts
from dataset_builders.statistics.summary import (
    DatasetStatistics,
    Leakage,
    by_key,
    in_order,
    mean,
    quartiles,
    share,
    total,
)
from dataset_builders.sweeps.splits import SPLITS
from verilocc_bench.dataset import EMBEDDED
from verilocc_bench.evaluation.table import NONE, number, percent
from verilocc_bench.report.tables import Table
from verilocc_bench.targets import get_target

_Value = Callable[[RowFacts], int | None]

TrackCounts = Mapping[tuple[str, str, str, str], int]
"""Rows by track, architecture, family and split."""


def statistics_tables(statistics: DatasetStatistics) -> list[Table]:
    """All tables that are not empty."""
    counts = Counter((row.track, row.arch, row.family, row.split) for row in statistics.rows)
    tables = [
        count_table(counts, statistics.splits),
        kernel_table(statistics),
        size_table(statistics),
        register_table(statistics),
        occupancy_table(statistics),
        label_table(statistics),
        quality_table(statistics),
        value_table(statistics, "data type", lambda row: row.data_type),
        value_table(statistics, "head dimension", lambda row: row.head_dimension),
        tile_table(statistics),
        rejected_table(statistics.rejected),
        leakage_table(statistics.leakage),
        Table(
            "Files",
            "Parquet files by folder.",
            ("folder", "files", "bytes"),
            tuple((name, *map(number, sizes)) for name, sizes in statistics.sizes.items()),
        ),
    ]
    return [table for table in tables if table.rows]


def plain_table(table: Table) -> str:
    """A table for a terminal: its title, its cells, and their meaning."""
    return f"{table.title}\n\n{_tabulated(table, 'simple')}\n\n{table.meaning}\n"


def markdown_table(table: Table) -> str:
    """The cells of a table in Markdown."""
    return _tabulated(table, "pipe")


def _tabulated(table: Table, layout: str) -> str:
    sides = ["left"] * table.named + ["right"] * (len(table.headers) - table.named)
    return tabulate(
        table.rows, table.headers, tablefmt=layout, colalign=sides, disable_numparse=True
    )


def count_table(counts: TrackCounts, splits: Sequence[str]) -> Table:
    """Rows by track, split, architecture and family, with their sums."""
    tasks = sorted({key[1:3] for key in counts})
    rows = [
        (track, split, *_with_sum([counts.get((track, *task, split), 0) for task in tasks]))
        for track in sorted({key[0] for key in counts})
        for split in splits
        if any(key[0] == track and key[3] == split for key in counts)
    ]
    sums = [sum(count for key, count in counts.items() if key[1:3] == task) for task in tasks]
    headers = ("track", "split", *(f"{arch} {family}" for arch, family in tasks), "all")
    meaning = "Rows: a kernel is one row for each architecture that it was compiled for."
    return Table("Rows", meaning, headers, (*rows, ("all", "", *_with_sum(sums))), named=2)


def _with_sum(counts: Sequence[int]) -> list[str]:
    return [_count(count) for count in (*counts, sum(counts))]


def kernel_table(statistics: DatasetStatistics) -> Table:
    """Rows by kernel source, with the licence."""
    found = by_key(statistics.rows, lambda row: (row.family, row.kernel, row.license))
    rows = tuple(
        (kernel, family, licence, number(len(r))) for (family, kernel, licence), r in found.items()
    )
    meaning = "Rows of each kernel, by its name among the sources, and their licence."
    return Table("Kernels", meaning, ("kernel", "family", "licence", "rows"), rows, named=3)


def size_table(statistics: DatasetStatistics) -> Table:
    """Quartiles and maxima of the sizes of functions."""
    sizes: dict[str, _Value] = {
        "instructions": lambda row: row.n_instructions,
        "virtual registers": lambda row: row.n_virtual_registers,
        "blocks": lambda row: row.n_blocks,
    }
    meaning = "Of functions: lower quartile/median/upper quartile, and the largest."
    return _spread_table(statistics, "Sizes", meaning, sizes)


def register_table(statistics: DatasetStatistics) -> Table:
    """Quartiles of the lower bound, and of the compiler's use of the vector file."""
    registers: dict[str, _Value] = {
        "lower bound": lambda row: row.lower_bound,
        "registers used": lambda row: row.registers_used,
    }
    meaning = (
        "Vector registers: the best lower bound that is known, and what the compiler used; lower "
        "quartile/median/upper quartile, and the largest."
    )
    return _spread_table(statistics, "Registers", meaning, registers)


def _spread_table(
    statistics: DatasetStatistics, title: str, meaning: str, values: Mapping[str, _Value]
) -> Table:
    """Quartiles and maxima of values by track, architecture and family."""
    tasks = by_key(statistics.rows, lambda row: (row.track, row.arch, row.family))
    rows = []
    for key, found in tasks.items():
        cells: list[str] = []
        for value in values.values():
            spread = quartiles([each for row in found if (each := value(row)) is not None])
            if spread is None:
                cells += (NONE, NONE)
            else:
                middle = (spread.lower, spread.median, spread.upper)
                cells += ("/".join(f"{v:,.0f}" for v in middle), number(spread.maximum))
        rows.append((*key, *cells))
    headers = ("track", "architecture", "family", *(h for n in values for h in (n, "largest")))
    return Table(title, meaning, headers, tuple(rows), named=3)


def occupancy_table(statistics: DatasetStatistics) -> Table:
    """The number of functions with each occupancy, by architecture."""
    rows = []
    for arch, found in by_key(statistics.track("assign"), lambda row: row.arch).items():
        counts = Counter(row.occupancy for row in found if row.occupancy is not None)
        cell = ", ".join(f"{value}: {number(counts[value])}" for value in sorted(counts))
        rows.append((arch, get_target(arch).occupancy_unit, cell))
    meaning = (
        "Waves of a SIMD (AMD) or warps of a multiprocessor (NVIDIA) that the label's registers "
        "leave room for: how many functions of the assign track have which."
    )
    headers = ("architecture", "unit", "occupancy: rows")
    return Table("Occupancy", meaning, headers, tuple(rows), named=3)


def label_table(statistics: DatasetStatistics) -> Table:
    """The sources of labels, and the shares of rows with other or better labels."""
    found = by_key(statistics.track("assign"), lambda row: (row.arch, row.family, row.label_source))
    rows = tuple(
        (
            *key,
            number(len(members)),
            percent(share(members, lambda row: bool(row.alternatives))),
            percent(share(members, lambda row: row.has_better)),
            percent(share(members, lambda row: row.has_fewer)),
        )
        for key, members in found.items()
    )
    headers = (
        *("architecture", "family", "label", "rows"),
        *("alternative", "better label", "fewer registers"),
    )
    meaning = (
        "Shares of the assign track: rows with a further label, rows with a label better than the "
        "compiler's, and those of them where it uses fewer vector registers."
    )
    return Table("Labels", meaning, headers, rows, named=3)


def quality_table(statistics: DatasetStatistics) -> Table:
    """The quality of the compiler's labels and of the best known ones."""
    found = by_key(statistics.track("assign"), lambda row: (row.arch, row.family))
    rows = tuple(
        (
            *key,
            percent(share(members, lambda row: row.meets_bound)),
            percent(share(members, lambda row: row.best_is_optimal)),
            number(mean(row.label_gap for row in members), 2),
            number(mean(row.best_gap for row in members), 2),
            number(total(row.bank_conflicts for row in members)),
            number(total(row.best_bank_conflicts for row in members)),
        )
        for key, members in found.items()
    )
    names = ("proved optimal", "mean gap", "bank conflicts")
    headers = ("architecture", "family", *(h for n in names for h in (n, "best's")))
    meaning = (
        "The compiler's labels, and beside each figure that of the best answers known: the share "
        "that is proved to use as few vector registers as any, mean registers above the best "
        "lower bound, and the sum of bank conflicts, each ten times for each loop around it."
    )
    return Table("Quality of labels", meaning, headers, rows, named=2)


def value_table(
    statistics: DatasetStatistics, name: str, value: Callable[[RowFacts], str | int | None]
) -> Table:
    """The number of rows with each of a few values, by split; rows without one do not count."""
    counts, values = _values(statistics, value)
    rows = tuple(
        (split, *(_count(counts[v, split]) for v in values)) for split in statistics.splits
    )
    meaning = f"Rows by split and {name}, both tracks."
    return Table(f"{name.capitalize()}s", meaning, ("split", *map(str, values)), rows)


def tile_table(statistics: DatasetStatistics) -> Table:
    """The number of rows with each tile, by split; rows without one do not count."""
    counts, tiles = _values(statistics, lambda row: row.tile)
    rows = tuple(
        (str(tile), *(_count(counts[tile, split]) for split in statistics.splits)) for tile in tiles
    )
    meaning = "Rows by the rows and columns of the kernel's tile and by split, both tracks."
    return Table("Tiles", meaning, ("tile", *statistics.splits), rows)


def _values(
    statistics: DatasetStatistics, value: Callable[[RowFacts], str | int | None]
) -> tuple[Counter[tuple[str | int | None, str]], list[str | int]]:
    counts = Counter((value(row), row.split) for row in statistics.rows)
    return counts, sorted({key for key, _ in counts if key is not None}, key=_natural)


def rejected_table(rejected: Mapping[str, int]) -> Table:
    """The sweep points without a row, by kind of rejection."""
    rows = tuple((kind, number(count)) for kind, count in sorted(rejected.items()))
    meaning = "Points of the sweep that gave no row; rejected.jsonl has the reason of each."
    return Table("Rejected", meaning, ("kind", "points"), rows)


def leakage_table(leakage: Leakage | None) -> Table:
    """The distances of the rows of each split from the nearest row of train."""
    summary = {} if leakage is None else dict(leakage.summary)
    names = in_order(SPLITS, set(summary))
    if leakage is not None and leakage.embedded is not None:
        summary[EMBEDDED] = leakage.embedded
        names.append(EMBEDDED)
    thresholds = sorted({t for found in summary.values() for t, _ in found.share_below}, key=float)
    rows = tuple(
        (
            name,
            number(found.rows),
            number(found.minimum, 3),
            number(found.median, 3),
            *(percent(dict(found.share_below).get(t)) for t in thresholds),
        )
        for name in names
        for found in (summary[name],)
    )
    headers = ("split", "rows", "least", "median", *(f"below {t}" for t in thresholds))
    meaning = (
        "Distance to the nearest row of train, 0 to 1: the least, the median, and the share of "
        "the rows that are nearer."
    )
    if EMBEDDED in summary:
        meaning += f" {EMBEDDED} is the dataset that comes with verilocc-bench."
    return Table("Distance to train", meaning, headers, rows)


def _natural(value: str | int) -> tuple[str, int, int]:
    """A key that sorts numbers within names by size: `gemm 64x128` before `gemm 128x16`."""
    kind, _, tile = str(value).rpartition(" ")
    sides = [int(side) for side in tile.split("x") if side.isdecimal()]
    first, second = (*sides, 0, 0)[:2]
    return kind if sides else str(value), first, second


def _count(value: int) -> str:
    """A count; a dash stands for zero."""
    return number(value) if value else NONE
