"""The plots of a section, as SVG to be put into a page.

They contain no text from files: colour and mark tell runs apart, and the page
explains these. Black and grey are replaced by the page's own colours, so that
plots can be read in light and dark.
"""

from __future__ import annotations

import hashlib
import io
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from verilocc_bench.errors import MissingExtraError
from verilocc_bench.evaluation.metrics import bootstrap_interval, mean, pass_at_k
from verilocc_bench.report.runs import ComparableRuns, ReportedRun, size_order

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


INK, FAINT = "#010203", "#040506"
"""Stand for the page's colours of text and of faint lines."""

COLOURS = ("#2f7fc1", "#d9730d", "#1f9d74", "#a55ec4", "#d1495b", "#8f7d1a")
MARKS = (("o", "●"), ("s", "■"), ("^", "▲"), ("D", "◆"), ("v", "▼"), ("P", "✚"))
"""Matplotlib's marks, and the characters that look like them."""

LARGEST_K = 1000
CURVE_POINTS = 24
BAND_KERNELS = 500
"""Above this many kernels no interval is drawn around curves: it would take minutes."""

SCATTER_POINTS = 1500
"""The most kernels of a scatter plot; of more it shows a random choice."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture; `run` is the place in its section of the one run that it shows."""

    svg: str
    run: int | None = None


@dataclass(frozen=True, slots=True)
class Plot:
    """Panels with a title and how to read them; `legend` is True if colours tell runs apart."""

    title: str
    reading: str
    panels: tuple[Panel, ...]
    legend: bool


def mark_of(place: int) -> tuple[str, str]:
    """(colour, character) of the run at that place in its section."""
    return COLOURS[place % len(COLOURS)], MARKS[place % len(MARKS)][1]


def section_plots(section: ComparableRuns) -> list[Plot]:
    """All plots that a section has figures for. Raises MissingExtraError without matplotlib."""
    plots = [_pass_plot(section), _call_plot(section), _size_plot(section), _bound_plot(section)]
    return [plot for plot in plots if plot is not None]


def _pass_plot(section: ComparableRuns) -> Plot | None:
    curves = [_pass_curve(run) for run in section.runs]
    if max(map(len, curves)) < 2:
        return None

    def draw(axes: Axes) -> None:
        for place, curve in enumerate(curves):
            ks = [k for k, _, _ in curve]
            _draw_line(axes, place, ks, [value for _, value, _ in curve])
            if curve and all(band is not None for _, _, band in curve):
                bands = [band for _, _, band in curve if band is not None]
                lows, highs = zip(*bands, strict=True)
                axes.fill_between(ks, lows, highs, color=mark_of(place)[0], alpha=0.15, linewidth=0)
        _share_axis(axes)
        _count_axis(axes, "k, samples for each kernel", [k for c in curves for k, _, _ in c])

    reading = (
        "Each curve is the chance (up) that at least one of k samples (across) is valid, mean over "
        "kernels; higher is better, a curve that rises gains from more samples, and the shade, "
        "where there is one, is the 95 % interval over kernels."
    )
    return Plot("pass@k", reading, (Panel(_svg(draw, reading)),), legend=True)


def _pass_curve(run: ReportedRun) -> list[tuple[int, float, tuple[float, float] | None]]:
    """(k, mean pass@k, its interval) from 1 to the least number of samples of any kernel."""
    counts = [(kernel["samples"], kernel["valid"]) for kernel in run.kernels]
    most = min(LARGEST_K, min((samples for samples, _ in counts), default=0))
    curve = []
    for k in _steps(most):
        found = [pass_at_k(samples, valid, k) for samples, valid in counts]
        values = [value for value in found if value is not None]
        band = None
        if len(values) <= BAND_KERNELS:
            low, high = bootstrap_interval(values, run.document["seed"])
            band = None if low is None or high is None else (low, high)
        curve.append((k, mean(values) or 0.0, band))
    return curve


def _steps(most: int) -> list[int]:
    """Numbers from 1 to `most`: all, or some at equal ratios."""
    if most <= CURVE_POINTS:
        return list(range(1, most + 1))
    return sorted({round(most ** (i / (CURVE_POINTS - 1))) for i in range(CURVE_POINTS)})


def _call_plot(section: ComparableRuns) -> Plot | None:
    curves = [
        sorted((int(calls), share) for calls, share in found.items() if share is not None)
        for run in section.runs
        for found in (run.overall["success_by_calls"] or {},)
    ]
    if max(map(len, curves)) < 2:
        return None

    def draw(axes: Axes) -> None:
        for place, curve in enumerate(curves):
            _draw_line(axes, place, [calls for calls, _ in curve], [share for _, share in curve])
        _share_axis(axes)
        _count_axis(axes, "verifier calls", [calls for curve in curves for calls, _ in curve])

    reading = (
        "Each curve is the share of samples (up) that are valid within so many verifier calls "
        "(across); a curve that rises gains from being told what was wrong."
    )
    return Plot("Success by verifier calls", reading, (Panel(_svg(draw, reading)),), legend=True)


def _size_plot(section: ComparableRuns) -> Plot | None:
    groups = [run.document["groups"]["size"] for run in section.runs]
    sizes = sorted({size for group in groups for size in group}, key=size_order)
    if len(sizes) < 2:
        return None

    def draw(axes: Axes) -> None:
        for place, group in enumerate(groups):
            shift = 0.12 * (place - (len(groups) - 1) / 2)
            for position, size in enumerate(sizes):
                if size in group:
                    _draw_interval(axes, place, position + shift, group[size])
        titles = [f"{s[:-1]}+" if s.endswith("-") else s.replace("-", "–") for s in sizes]
        axes.set_xticks(range(len(sizes)), titles)
        axes.set_xlim(-0.5, len(sizes) - 0.5)
        axes.set_xlabel("virtual registers of the kernel")
        _share_axis(axes)

    reading = (
        "Each mark is pass@1 (up) over the kernels of one size (across), with its 95 % interval; "
        "marks that fall to the right say that large kernels are harder."
    )
    return Plot("Validity by size", reading, (Panel(_svg(draw, reading)),), legend=True)


def _draw_interval(axes: Axes, place: int, position: float, record: Mapping[str, Any]) -> None:
    value, low, high = (record[f"pass@1{end}"] for end in ("", "_low", "_high"))
    if value is None:
        return
    colour = mark_of(place)[0]
    if low is not None and high is not None:
        axes.plot([position] * 2, [low, high], color=colour, linewidth=1.5, alpha=0.6)
    axes.plot([position], [value], MARKS[place % len(MARKS)][0], color=colour, markersize=6)


def _bound_plot(section: ComparableRuns) -> Plot | None:
    points = [_kernels_with_answers(run) for run in section.runs]
    every = [kernel for found in points for kernel in found]
    if not every:
        return None
    frame = _Frame(
        max(kernel["bound"] for kernel in every),
        min(0, *(kernel["registers"] - kernel["bound"] for kernel in every)),
        max(max(k["registers"], k["label_registers"] or 0) - k["bound"] for k in every),
    )
    reading = (
        "Each mark is a kernel with a valid sample: how many vector registers it uses (up) beyond "
        "the fewest that must be live at once (across); at 0 there is none to save, and a grey "
        "ring is the compiler's own assignment of a kernel."
    )
    panels = tuple(
        Panel(_svg(_bound_drawing(found, place, frame), reading, square=True, key=place), place)
        for place, found in enumerate(points)
        if found
    )
    return Plot("Registers above the lower bound", reading, panels, legend=False)


@dataclass(frozen=True, slots=True)
class _Frame:
    """The scales that all panels share: the largest bound, the least and most above it."""

    bound: int
    least: int
    most: int


def _kernels_with_answers(run: ReportedRun) -> list[Mapping[str, Any]]:
    found = [k for k in run.kernels if k["registers"] is not None and k["bound"] is not None]
    if len(found) > SCATTER_POINTS:
        found = random.Random(run.document["seed"]).sample(found, SCATTER_POINTS)  # noqa: S311
    return found


def _bound_drawing(
    kernels: Sequence[Mapping[str, Any]], place: int, frame: _Frame
) -> Callable[[Axes], None]:
    def draw(axes: Axes) -> None:
        from matplotlib.ticker import MaxNLocator

        axes.axhline(0, linestyle="--", color=FAINT, linewidth=1)
        labels = [
            (k["bound"], k["label_registers"] - k["bound"])
            for k in kernels
            if k["label_registers"] is not None
        ]
        if labels:
            axes.plot(*zip(*labels, strict=True), "o", color=FAINT, fillstyle="none", markersize=7)
        own = [(k["bound"], k["registers"] - k["bound"]) for k in kernels]
        mark, colour = MARKS[place % len(MARKS)][0], mark_of(place)[0]
        axes.plot(*zip(*own, strict=True), mark, color=colour, markersize=4, alpha=0.8)
        room = 0.06 * max(1, frame.most - frame.least)
        axes.set_xlim(0, 1.06 * max(1, frame.bound))
        axes.set_ylim(frame.least - room, frame.most + room)
        axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.set_xlabel("lower bound, registers")
        axes.set_ylabel("above it, registers")

    return draw


def _draw_line(axes: Axes, place: int, xs: Sequence[float], ys: Sequence[float]) -> None:
    mark, colour = MARKS[place % len(MARKS)][0], mark_of(place)[0]
    axes.plot(xs, ys, "-", marker=mark, color=colour, linewidth=1.8, markersize=5)


def _share_axis(axes: Axes) -> None:
    axes.set_ylim(-0.03, 1.03)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0 %", "25 %", "50 %", "75 %", "100 %"])
    axes.set_ylabel("valid")


def _count_axis(axes: Axes, title: str, counts: Sequence[int]) -> None:
    most = max(counts)
    if most > CURVE_POINTS:
        axes.set_xscale("log")
    steps = [step for step in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if step <= most]
    axes.set_xticks(steps, [str(step) for step in steps])
    axes.minorticks_off()
    axes.set_xlabel(title)


def _svg(draw: Callable[[Axes], None], reading: str, *, square: bool = False, key: int = 0) -> str:
    """A picture as an SVG element: the same bytes for the same drawing."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "plot", "a report in HTML") from None
    settings = {
        "svg.fonttype": "none",
        "svg.hashsalt": "report",
        "font.family": "sans-serif",
        "font.size": 10,
        "text.color": INK,
        "axes.labelcolor": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "axes.edgecolor": FAINT,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": FAINT,
        "grid.alpha": 0.25,
    }
    with mpl.rc_context(settings):
        figure = Figure(figsize=(3.6, 3.4) if square else (6.8, 3.4), layout="constrained")
        draw(figure.subplots())
        return _clean(_written(figure), reading, key)


def _written(figure: Figure) -> str:
    text = io.StringIO()
    figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return text.getvalue()


def _clean(svg: str, reading: str, key: int) -> str:
    """Matplotlib's SVG, changed so that several can stand in one page."""
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.S)
    name = "p" + hashlib.sha256(f"{key} {svg}".encode()).hexdigest()[:8]
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(href="|url\()#', rf"\g<1>#{name}-", svg)
    svg = svg.replace(INK, "currentColor").replace(FAINT, "var(--faint)")
    label = f'<svg role="img" aria-label="{reading}" '
    return svg.replace("<svg ", label, 1).strip()
