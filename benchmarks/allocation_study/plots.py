"""The plots of the document as SVG; equal figures give equal bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.allocation_study.questions import QUICK, TIGHT
from benchmarks.allocation_study.records import Measurement, Measurements
from verilocc_bench.files import write_atomically
from verilocc_bench.report.marks import MARKS, mark_of
from verilocc_bench.report.picture import DARK, LIGHT
from verilocc_bench.report.plots import plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH_INCHES = 8.0
MOST_SHOWN = 12
"""Gaps and savings above this number of registers are shown together with it."""

_Drawing = Callable[["Figure", Measurements], None]

# Inline styles win over a style sheet, unless it says that it is important.
_ON_DARK_PAGES = f"""@media (prefers-color-scheme: dark) {{
[style*="fill: {LIGHT.paper}"] {{fill: {DARK.paper} !important}}
[style*="fill: {LIGHT.ink}"] {{fill: {DARK.ink} !important}}
[style*="stroke: #000000"] {{stroke: {DARK.ink} !important}}
g[id^="text_"] {{fill: {DARK.ink}}}
}}
</style>""".encode()


def draw_plots(measurements: Measurements, folder: Path) -> None:
    """Writes all plots. Raises MissingExtraError without matplotlib."""
    for name, (drawing, height) in PLOTS.items():
        write_atomically(folder / name, svg(drawing, measurements, height))


def _by_arch(
    figure: Figure, measurements: Measurements
) -> list[tuple[Axes, str, list[Measurement]]]:
    """A panel for each architecture, with its kernels."""
    found: dict[str, list[Measurement]] = {}
    for each in sorted(measurements, key=lambda each: (each.arch, each.id)):
        found.setdefault(each.arch, []).append(each)
    panels = figure.subplots(1, len(found), sharey=True, squeeze=False)[0]
    return list(zip(panels, found, found.values(), strict=True))


def _gaps(figure: Figure, measurements: Measurements) -> None:
    """The share of kernels within each distance from the bound."""
    names = ("compiler", "linear-scan", "graph-coloring", "first-fit-orders", "best")
    for axes, arch, own in _by_arch(figure, measurements):
        for place, name in enumerate(names):
            registers = [(e.answers[name].registers, e.bound) for e in own if name in e.answers]
            gaps = [999 if found is None else found - bound for found, bound in registers]
            shares = [sum(g <= most for g in gaps) / len(gaps) for most in range(MOST_SHOWN + 1)]
            _line(axes, place, range(MOST_SHOWN + 1), shares, name)
        axes.set_title(f"{arch}, {len(own)} kernels", loc="left", fontsize=10)
    _share_axis(figure.axes[0])
    figure.supxlabel("registers above the lower bound, at most", fontsize=10)
    figure.axes[-1].legend(loc="lower right", fontsize=8)


def _line(
    axes: Axes,
    place: int,
    xs: Sequence[float],
    ys: Sequence[float],
    name: str,
    *,
    step: bool = False,
) -> None:
    colour = mark_of(place)[0]
    style = {"drawstyle": "steps-post"} if step else {"marker": MARKS[place][0], "markersize": 4}
    axes.plot(xs, ys, color=colour, label=name, linewidth=1.4, **style)


def _share_axis(axes: Axes) -> None:
    from matplotlib.ticker import PercentFormatter

    axes.set_ylim(0, 1.03)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_ylabel("kernels")


def _savings(figure: Figure, measurements: Measurements) -> None:
    """The number of kernels by registers saved against the compiler, by family."""
    from matplotlib.ticker import MaxNLocator

    families = sorted({each.family for each in measurements})
    for axes, arch, own in _by_arch(figure, measurements):
        saved = {family: [_saved(e) for e in own if e.family == family] for family in families}
        shown = range(min((min(0, *s) for s in saved.values() if s), default=0), MOST_SHOWN + 1)
        below = [0] * len(shown)
        for place, (family, values) in enumerate(saved.items()):
            counts = [sum(min(v, MOST_SHOWN) == number for v in values) for number in shown]
            axes.bar(shown, counts, bottom=below, color=mark_of(place)[0], label=family)
            below = [a + b for a, b in zip(below, counts, strict=True)]
        axes.set_title(arch, loc="left", fontsize=10)
        axes.set_xticks(range(0, MOST_SHOWN + 1, 4), [*map(str, range(0, MOST_SHOWN, 4)), "12+"])
    figure.axes[0].set_ylabel("kernels")
    figure.axes[0].yaxis.set_major_locator(MaxNLocator(integer=True))
    figure.supxlabel("registers that best saves against the compiler", fontsize=10)
    figure.axes[-1].legend(loc="upper right")


def _saved(each: Measurement) -> int:
    own, compiler = each.answers["best"].registers, each.answers["compiler"].registers
    assert compiler is not None
    return 0 if own is None else compiler - own


def _conflicts(figure: Figure, measurements: Measurements) -> None:
    """Bank conflicts of each kernel, before and after."""
    for axes, arch, own in _by_arch(figure, measurements):
        for place, name in enumerate(("best", "best bank-conflicts")):
            pairs = [
                (each.answers["compiler"].conflicts, each.answers[name].conflicts)
                for each in own
                if name in each.answers and each.answers[name].valid
            ]
            _scatter(axes, place, pairs, name)
        axes.axline((1, 1), (2, 2), color=LIGHT.faint, linewidth=0.8)
        for scale in (axes.set_xscale, axes.set_yscale):
            scale("symlog", linthresh=1)
        axes.set_title(arch, loc="left", fontsize=10)
    figure.axes[0].set_ylabel("with a search")
    figure.supxlabel("weighted bank conflicts of the compiler", fontsize=10)
    figure.axes[-1].legend(loc="upper left", fontsize=8)


def _scatter(
    axes: Axes, place: int, points: Sequence[tuple[float | None, float | None]], name: str
) -> None:
    across, up = zip(*points, strict=True) if points else ((), ())
    colour, mark = mark_of(place)[0], MARKS[place][0]
    axes.plot(
        across, up, mark, color=colour, label=name, markersize=4, alpha=0.5, markeredgewidth=0
    )


def _tight(figure: Figure, measurements: Measurements) -> None:
    """The share of kernels solved within each time."""
    panels = figure.subplots(1, len(TIGHT), sharey=True, squeeze=False)[0]
    for axes, budget in zip(panels, TIGHT, strict=True):
        asked = [each.budgets[budget] for each in measurements if budget in each.budgets]
        for place, name in enumerate(QUICK):
            seconds = sorted(each.seconds[name] for each in asked if name in each.solved)
            shares = [(number + 1) / len(asked) for number in range(len(seconds))]
            end = len(seconds) / max(1, len(asked))
            _line(axes, place, [0.001, *seconds, 100], [0, *shares, end], name, step=True)
        axes.set_xscale("log")
        axes.set_xlim(0.001, 100)
        axes.set_title(f"{budget}, {len(asked)} kernels", loc="left", fontsize=10)
    _share_axis(figure.axes[0])
    figure.supxlabel("seconds a kernel, at most", fontsize=10)
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=len(names), fontsize=8)


def _times(figure: Figure, measurements: Measurements) -> None:
    """Seconds of `best` over the size of kernels."""
    axes: Axes = figure.subplots()
    kinds = {"proved optimal": True, "not proved": False}
    for place, (label, proved) in enumerate(kinds.items()):
        points = [
            (each.n_virtual_registers, each.answers["best"].seconds)
            for each in measurements
            if (each.answers["best"].registers == each.bound) is proved
        ]
        _scatter(axes, place, points, label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("virtual registers")
    axes.set_ylabel("seconds of best")
    axes.legend(loc="upper left")


PLOTS: dict[str, tuple[_Drawing, float]] = {
    "allocation-gaps.svg": (_gaps, 3.2),
    "allocation-savings.svg": (_savings, 3.0),
    "allocation-conflicts.svg": (_conflicts, 3.2),
    "allocation-tight-budgets.svg": (_tight, 3.2),
    "allocation-times.svg": (_times, 3.4),
}
"""By file name: the drawing function, and the height in inches."""


def svg(drawing: _Drawing, measurements: Measurements, height: float) -> bytes:
    """A drawing as an SVG file with reproducible bytes, light or dark as the page around it.

    Raises MissingExtraError.
    """
    picture = plot(
        lambda figure: drawing(figure, measurements),
        (WIDTH_INCHES, height),
        LIGHT.faint,
        {"svg.hashsalt": "allocation study", "legend.frameon": False},
        format="svg",
        metadata={"Date": None, "Creator": None},
    )
    return picture.replace(b"</style>", _ON_DARK_PAGES, 1)
