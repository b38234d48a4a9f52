"""The charts of a section, as specifications of Vega-Lite with their data.

Names of runs are data and nothing else: the page draws them as text. A chart
has the colours of runs alone; the page adds its own.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from verilocc_bench.evaluation.metrics import mean, pass_at_k, share_interval
from verilocc_bench.report.marks import SHAPES, mark_of
from verilocc_bench.report.runs import ComparableRuns, ReportedRun, size_order

LARGEST_K = 1000
CURVE_POINTS = 24

SCATTER_POINTS = 1500
"""The most kernels of a run in a scatter plot; of more it shows a random choice."""

MARK_PIXELS = 6
"""Between the ends of an axis and the marks next to them, which are whole so."""

Spec = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Chart:
    """A specification of Vega-Lite, with a title and how to read it."""

    title: str
    reading: str
    spec: Spec


def section_charts(section: ComparableRuns) -> list[Chart]:
    """All charts that a section has figures for, the one that answers most first."""
    charts = [
        _quality_chart(section),
        _pass_chart(section),
        _call_chart(section),
        _size_chart(section),
        _task_chart(section),
        _bound_chart(section),
    ]
    return [chart for chart in charts if chart is not None]


def _quality_chart(section: ComparableRuns) -> Chart | None:
    values = [
        {
            "run": run.name,
            "valid": record["pass@1"],
            "low": record["pass@1_low"],
            "high": record["pass@1_high"],
            "registers": record["registers_ratio"],
            "kernels": record["n"],
        }
        for run in section.runs
        for record in (run.overall,)
        if record["registers_ratio"] is not None and record["pass@1"] is not None
    ]
    if len(values) < 2:
        return None
    place = {
        "x": _share("valid", "valid (pass@1)"),
        "y": _number("registers", "registers/label"),
        **_run_encoding(section),
    }
    tooltip = [_told("run"), _share_told("valid"), _told("registers", ".3f"), _told("kernels")]
    ends = {"x": _share("low", "valid (pass@1)"), "x2": {"field": "high"}}
    interval = _interval({**place, **ends})
    points = {
        "mark": {"type": "point", "filled": True, "size": 130},
        "encoding": {**place, "tooltip": tooltip},
    }
    return Chart(
        "Validity against quality",
        "Each mark is a run: how often it is valid (to the right is better; with the 95 % "
        "interval) and how many vector registers its valid answers use against the compiler's "
        "(down is better). The best runs lie at the bottom right.",
        {"data": {"values": values}, "layer": [interval, points]},
    )


def _pass_chart(section: ComparableRuns) -> Chart | None:
    curves = {run.name: pass_curve(run) for run in section.runs}
    if max(map(len, curves.values())) < 2:
        return None
    values = [
        {"run": name, "k": k, "pass": value, "low": band and band[0], "high": band and band[1]}
        for name, curve in curves.items()
        for k, value, band in curve
    ]
    encoding = {
        "x": _count(
            "k",
            "k, samples for each kernel",
            max(k for curve in curves.values() for k, _, _ in curve),
        ),
        **_run_encoding(section),
    }
    band = {
        "transform": [{"filter": "datum.low !== null"}],
        "mark": {"type": "area", "opacity": 0.15},
        "encoding": {
            "x": encoding["x"],
            "color": encoding["color"],
            "y": _share("low", "pass@k"),
            "y2": {"field": "high"},
        },
    }
    tooltip = [
        _told("run"),
        _told("k"),
        _share_told("pass"),
        _share_told("low"),
        _share_told("high"),
    ]
    line = {
        "mark": {"type": "line", "point": {"size": 45, "filled": True}},
        "encoding": {**encoding, "y": _share("pass", "pass@k"), "tooltip": tooltip},
    }
    return Chart(
        "pass@k",
        "Each curve is the chance (up) that at least one of k samples (across) is valid, mean over "
        "kernels; higher is better, a curve that rises gains from more samples, and the shade is "
        "the 95 % interval over kernels.",
        {"data": {"values": values}, "layer": [band, line]},
    )


def pass_curve(run: ReportedRun) -> list[tuple[int, float, tuple[float, float] | None]]:
    """(k, mean pass@k, its interval) from 1 to the least number of samples of any kernel."""
    counts = [(kernel["samples"], kernel["valid"]) for kernel in run.kernels]
    most = min(LARGEST_K, min((samples for samples, _ in counts), default=0))
    curve = []
    steps = list(range(1, most + 1))
    if most > CURVE_POINTS:  # some of them, at equal ratios
        steps = sorted({round(most ** (i / (CURVE_POINTS - 1))) for i in range(CURVE_POINTS)})
    for k in steps:
        found = [pass_at_k(samples, valid, k) for samples, valid in counts]
        values = [value for value in found if value is not None]
        low, high = share_interval(values)
        band = None if low is None or high is None else (low, high)
        curve.append((k, mean(values) or 0.0, band))
    return curve


def _call_chart(section: ComparableRuns) -> Chart | None:
    values = [
        {"run": run.name, "calls": int(calls), "valid": share}
        for run in section.runs
        for calls, share in (run.overall["success_by_calls"] or {}).items()
        if share is not None
    ]
    if len({value["calls"] for value in values}) < 2:
        return None
    encoding = {
        "x": _count("calls", "verifier calls", max(v["calls"] for v in values)),
        "y": _share("valid", "valid"),
        **_run_encoding(section),
        "tooltip": [_told("run"), _told("calls"), _share_told("valid")],
    }
    return Chart(
        "Success by verifier calls",
        "Each curve is the share of samples (up) that are valid within a number of verifier calls "
        "(across); a curve that rises gains from being told what was wrong.",
        {
            "data": {"values": values},
            "mark": {"type": "line", "point": {"size": 45, "filled": True}},
            "encoding": encoding,
        },
    )


def _size_chart(section: ComparableRuns) -> Chart | None:
    groups = [run.document["groups"]["size"] for run in section.runs]
    sizes = sorted({size for group in groups for size in group}, key=size_order)
    titles = {s: f"{s[:-1]}+" if s.endswith("-") else s.replace("-", "–") for s in sizes}
    found = [
        (run, titles[size], group[size])
        for run, group in zip(section.runs, groups, strict=True)
        for size in sizes
        if size in group
    ]
    reading = (
        "Each mark is pass@1 (up) over the kernels of one size (across), with its 95 % interval; "
        "marks that fall to the right say that large kernels are harder."
    )
    return _group_chart(
        section,
        "Validity by size",
        reading,
        ("virtual registers of the kernel", list(titles.values()), found),
    )


def _task_chart(section: ComparableRuns) -> Chart | None:
    tasks = sorted({task for run in section.runs for task in run.results} - {"overall"})
    found = [
        (run, task, run.results[task])
        for run in section.runs
        for task in tasks
        if task in run.results
    ]
    reading = (
        "Each mark is pass@1 (up) over the kernels of one architecture and family (across), with "
        "its 95 % interval."
    )
    return _group_chart(section, "Validity by task", reading, ("architecture/family", tasks, found))


def _group_chart(
    section: ComparableRuns,
    title: str,
    reading: str,
    groups: tuple[str, Sequence[str], Sequence[tuple[ReportedRun, str, Mapping[str, Any]]]],
) -> Chart | None:
    """pass@1 of each run in each group; `groups` are the axis, its names, and the records."""
    axis, names, found = groups
    if len(names) < 2:
        return None
    values = [
        {
            "run": run.name,
            "group": name,
            "kernels": record["n"],
            "valid": record["pass@1"],
            "low": record["pass@1_low"],
            "high": record["pass@1_high"],
        }
        for run, name, record in found
        if record["pass@1"] is not None
    ]
    encoding = {
        "x": {
            "field": "group",
            "type": "nominal",
            "sort": list(names),
            "title": axis,
            "axis": {"labelAngle": -35},
        },
        "xOffset": {"field": "run", "sort": [run.name for run in section.runs]},
        **_run_encoding(section),
    }
    tooltip = [
        _told("run"),
        _told("group"),
        _told("kernels"),
        _share_told("valid"),
        _share_told("low"),
        _share_told("high"),
    ]
    ends = {"y": _share("low", "valid (pass@1)"), "y2": {"field": "high"}}
    interval = _interval({**encoding, **ends})
    point = {
        "mark": {"type": "point", "filled": True, "size": 60},
        "encoding": {**encoding, "y": _share("valid", "valid (pass@1)"), "tooltip": tooltip},
    }
    return Chart(title, reading, {"data": {"values": values}, "layer": [interval, point]})


def _interval(encoding: Spec) -> Spec:
    """A line from end to end; with a shape it would have a mark at one of them."""
    without = {name: each for name, each in encoding.items() if name != "shape"}
    return {"mark": {"type": "rule", "opacity": 0.6}, "encoding": without}


def _bound_chart(section: ComparableRuns) -> Chart | None:
    values = [
        {
            "run": run.name,
            "id": kernel["id"],
            "task": kernel["task"],
            "bound": kernel["bound"],
            "above": kernel["registers"] - kernel["bound"],
            "registers": kernel["registers"],
            "label": kernel["label_registers"],
        }
        for run in section.runs
        for kernel in _kernels_with_answers(run)
    ]
    if not values:
        return None
    tooltip = [_told(name) for name in ("run", "id", "task", "registers", "bound", "label")]
    encoding = {
        "x": _number("bound", "lower bound, registers"),
        "y": _number("above", "above it, registers"),
        **_run_encoding(section),
        "tooltip": tooltip,
    }
    return Chart(
        "Registers above the lower bound",
        "Each mark is a kernel with a valid sample: how many vector registers it uses (up) beyond "
        "the fewest that must be live at once (across); at 0 there is none to save. A click on a "
        "run's name shows it alone; the wheel zooms.",
        {
            "data": {"values": values},
            "params": [{"name": "place", "select": "interval", "bind": "scales"}],
            "mark": {"type": "point", "filled": True, "size": 35},
            "encoding": encoding,
        },
    )


def _kernels_with_answers(run: ReportedRun) -> list[Mapping[str, Any]]:
    found = [k for k in run.kernels if k["registers"] is not None and k["bound"] is not None]
    if len(found) > SCATTER_POINTS:
        found = random.Random(run.document["seed"]).sample(found, SCATTER_POINTS)  # noqa: S311
    return found


def _run_encoding(section: ComparableRuns) -> Spec:
    """Colour and shape by run; the legend is the section's own, on the page."""
    names = [run.name for run in section.runs]
    colours = [mark_of(place)[0] for place in range(len(names))]
    shapes = [SHAPES[place % len(SHAPES)] for place in range(len(names))]
    return {
        "color": {"field": "run", "scale": {"domain": names, "range": colours}, "legend": None},
        "shape": {"field": "run", "scale": {"domain": names, "range": shapes}, "legend": None},
    }


def _share(field: str, title: str) -> Spec:
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "axis": {"format": "%"},
        "scale": {"zero": False, "nice": True},
    }


def _number(field: str, title: str) -> Spec:
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": {"zero": False, "nice": True, "padding": MARK_PIXELS},
    }


def _count(field: str, title: str, most: int) -> Spec:
    scale = {"type": "log"} if most > CURVE_POINTS else {"zero": False}
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": scale,
        "axis": {"tickMinStep": 1, "format": "d"},
    }


def _told(field: str, form: str | None = None) -> Spec:
    return {"field": field, **({} if form is None else {"format": form})}


def _share_told(field: str) -> Spec:
    return {"field": field, "format": ".1%"}
