"""Pictures of a dataset as PNG: equal figures give equal bytes.

They are made for a light page 700 pixels wide. Colours that colour-blind
readers can tell apart, and marks, distinguish the families.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dataset_builders.statistics.row_facts import RowFacts
from dataset_builders.statistics.summary import DatasetStatistics, by_key, in_order
from dataset_builders.sweeps.splits import SPLITS
from verilocc_bench.files import write_atomically
from verilocc_bench.report.marks import MARKS, mark_of
from verilocc_bench.report.picture import LIGHT
from verilocc_bench.report.plots import plot

FAINT = "#8a94a0"

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLOTS: dict[str, tuple[str, str]] = {
    "sizes.png": (
        "Instructions of a kernel by architecture and family",
        "the box holds the middle half of the kernels, the line in it is the median, the whiskers "
        "reach to the smallest and the largest; behind the names, how many there are",
    ),
    "registers.png": (
        "Vector registers that the compiler uses (up) against the lower bound (across)",
        "a mark is a kernel of the assign track; on the line there is no register to save",
    ),
    "splits.png": (
        "Rows by split and family",
        "all architectures, both tracks",
    ),
    "distances.png": (
        "Distance to the nearest training row by split",
        "0 is the same sequence of instructions, 1 nothing in common; the box holds the middle "
        "half of the rows, the line in it is the median, the whiskers reach to the nearest and "
        "the farthest row",
    ),
}
"""By file name: the title of a plot, and how to read it."""

WIDTH_INCHES = 7.0
ROW_INCHES = 0.34
_SETTINGS = {"xtick.color": LIGHT.ink, "ytick.color": LIGHT.ink, "figure.dpi": 160}
_SAVED = {"format": "png", "metadata": {"Software": None}}

_Drawing = Callable[["Figure"], None]


def draw_plots(statistics: DatasetStatistics, folder: Path) -> list[str]:
    """Writes all plots that have figures; returns their file names.

    Raises MissingExtraError without matplotlib.
    """
    names = []
    for name, drawing, height in _drawings(statistics):
        picture = plot(drawing, (WIDTH_INCHES, height), FAINT, _SETTINGS, **_SAVED)
        write_atomically(folder / name, picture)
        names.append(name)
    return names


def _drawings(statistics: DatasetStatistics) -> list[tuple[str, _Drawing, float]]:
    """File name, drawing function, height in inches."""
    rows, splits = statistics.rows, statistics.splits
    tasks = by_key(rows, lambda row: (row.arch, row.family))
    found: list[tuple[str, _Drawing, float]] = [
        ("sizes.png", lambda figure: _draw_sizes(figure, tasks), 0.9 + ROW_INCHES * len(tasks))
    ]
    if any(row.registers_used is not None for row in statistics.track("assign")):
        labelled = statistics.track("assign")
        found.append(("registers.png", lambda figure: _draw_registers(figure, labelled), 2.85))
    height = 0.9 + 1.3 * ROW_INCHES * len(splits)
    found.append(("splits.png", lambda figure: _draw_splits(figure, rows, splits), height))
    distances = {} if statistics.leakage is None else statistics.leakage.distances
    if distances:
        shown = in_order(SPLITS, set(distances))
        values = [distances[split] for split in shown]
        height = 0.9 + ROW_INCHES * len(shown)
        found.append(
            ("distances.png", lambda figure: _draw_distances(figure, shown, values), height)
        )
    return found


def _draw_sizes(figure: Figure, tasks: dict[tuple[str, ...], list[RowFacts]]) -> None:
    axes: Axes = figure.subplots()
    families = sorted({family for _, family in tasks})
    sizes = [[row.n_instructions for row in found] for found in tasks.values()]
    colours = [mark_of(families.index(family))[0] for _, family in tasks]
    _boxes(axes, [f"{arch}  {family}" for arch, family in tasks], sizes, colours)
    axes.set_xscale("log")
    # Plain numbers on a logarithmic axis, at 1, 2 and 5 of every decade.
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_xlabel("instructions")


def _draw_distances(
    figure: Figure, splits: Sequence[str], distances: Sequence[Sequence[float]]
) -> None:
    axes: Axes = figure.subplots()
    _boxes(axes, splits, distances, [mark_of(0)[0]] * len(splits))
    axes.set_xlim(-0.01, 1.01)
    axes.set_xlabel("distance to the nearest training row")


def _boxes(
    axes: Axes, names: Sequence[str], values: Sequence[Sequence[float]], colours: Sequence[str]
) -> None:
    """Horizontal boxes, the first on top; names are followed by the number of values."""
    parts = axes.boxplot(
        [sorted(found) for found in values],
        orientation="horizontal",
        whis=(0, 100),
        widths=0.6,
        patch_artist=True,
        medianprops={"color": LIGHT.ink, "linewidth": 1.6},
        whiskerprops={"color": FAINT},
        capprops={"color": FAINT},
        boxprops={"linewidth": 0},
    )
    for box, colour in zip(parts["boxes"], colours, strict=True):
        box.set_facecolor(colour)
        box.set_alpha(0.75)
    labels = [f"{name}  ({len(found):,})" for name, found in zip(names, values, strict=True)]
    axes.set_yticks(range(1, len(names) + 1), labels)
    axes.invert_yaxis()
    _only_across(axes)


def _only_across(axes: Axes) -> None:
    """Removes the grid along the names, and the line beside them."""
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def _draw_registers(figure: Figure, rows: Sequence[RowFacts]) -> None:
    from matplotlib.lines import Line2D

    by_arch = by_key(rows, lambda row: row.arch)
    families = sorted({row.family for row in rows})
    most = max(max(row.registers_used or 0, row.lower_bound) for row in rows)
    panels: Sequence[Axes] = figure.subplots(
        1, len(by_arch), sharex=True, sharey=True, squeeze=False
    )[0]
    for axes, (arch, found) in zip(panels, by_arch.items(), strict=True):
        axes.axline((0, 0), slope=1, color=FAINT, linewidth=0.8)
        for place, family in enumerate(families):
            own = [row for row in found if row.family == family and row.registers_used]
            axes.plot(
                [row.lower_bound for row in own],
                [row.registers_used or 0 for row in own],
                MARKS[place][0],
                color=mark_of(place)[0],
                markersize=3,
                alpha=0.8 if len(own) < 100 else 0.35,
                markeredgewidth=0,
            )
        axes.set_title(arch, loc="left", fontsize=10)
        axes.set_aspect("equal")
        axes.set_xlim(0, 1.03 * most)
        axes.set_ylim(0, 1.03 * most)
    panels[0].set_ylabel("registers used")
    figure.supxlabel("lower bound, vector registers", fontsize=10)
    marks = [
        Line2D([], [], color=mark_of(place)[0], marker=MARKS[place][0], linestyle="", label=name)
        for place, name in enumerate(families)
    ]
    panels[0].legend(handles=marks, loc="upper left", frameon=False, handletextpad=0.1, borderpad=0)


def _draw_splits(figure: Figure, rows: Sequence[RowFacts], splits: Sequence[str]) -> None:
    axes: Axes = figure.subplots()
    families = sorted({row.family for row in rows})
    height = 0.8 / len(families)
    for place, family in enumerate(families):
        counts = [sum(r.split == split and r.family == family for r in rows) for split in splits]
        shift = height * (place - (len(families) - 1) / 2)
        bars = axes.barh(
            [position + shift for position in range(len(splits))],
            counts,
            height=0.92 * height,
            color=mark_of(place)[0],
            label=family,
        )
        axes.bar_label(bars, [f"{n:,}" if n else "" for n in counts], padding=3, fontsize=9)
    axes.set_yticks(range(len(splits)), splits)
    axes.invert_yaxis()
    axes.margins(x=0.08)
    axes.set_xlabel("rows")
    _only_across(axes)
    axes.legend(loc="lower right", frameon=False)
