"""Plots how the learning of a text model depends on steps, parameters and functions, as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.allocation_study.plots import svg
from benchmarks.model_study.trainings import Trained, Validation
from benchmarks.model_study.variants import BY_FUNCTIONS, BY_PARAMETERS
from verilocc_bench.files import write_atomically
from verilocc_bench.report.marks import MARKS, mark_of
from verilocc_bench.report.picture import LIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SCALING = "reference-text-scaling.svg"

HEIGHT_INCHES = 5.2

Points = Sequence[tuple[int, Validation]]


def draw_scaling(trained: Mapping[str, Trained], path: Path) -> None:
    """Draws trainings by name, in the given order; those without validation are left out.

    The left panels have all, the others the ends of those of BY_PARAMETERS and
    BY_FUNCTIONS. Raises MissingExtraError without matplotlib.
    """
    shown = [each for each in trained.values() if each.curve]
    ends = {each.name: each.curve[-1] for each in shown}
    sizes = [(trained[name].parameters, ends[name]) for name in BY_PARAMETERS if name in ends]
    counts = [(trained[name].functions[0], ends[name]) for name in BY_FUNCTIONS if name in ends]

    def draw(figure: Figure, _: object) -> None:
        losses, answers = figure.subplots(2, 3, sharex="col")
        for row in (losses, answers):  # the ends of short trainings, on their own scale
            row[2].sharey(row[1])
        for (steps, parameters, functions), rights in ((losses, False), (answers, True)):
            for place, each in enumerate(shown):
                points = [(seen.step, seen) for seen in each.curve]
                _line(steps, points, mark_of(place)[0], each.name, place=place, rights=rights)
            _line(parameters, sizes, LIGHT.ink, rights=rights)
            _line(functions, counts, LIGHT.ink, rights=rights)
        _name_axes(losses, answers)
        steps_named = {each.curve[-1].step for each in shown}
        steps_named |= {min(each.curve[0].step for each in shown)} if shown else set()
        _ticks(answers[0], {count: f"{count:,}" for count in sorted(steps_named)})
        _ticks(answers[1], {count: f"{count / 1e6:.2g} M" for count, _ in sizes})
        _ticks(answers[2], {count: f"{count:,}" for count, _ in counts})
        handles, names = losses[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper center", ncols=3, fontsize=8)

    write_atomically(path, svg(draw, (), HEIGHT_INCHES))


def _line(
    axes: Axes,
    points: Points,
    colour: str,
    name: str | None = None,
    *,
    place: int = 0,
    rights: bool,
) -> None:
    across = [x for x, _ in points]
    up = [seen.right if rights else seen.loss for _, seen in points]
    mark = MARKS[place % len(MARKS)][0]
    axes.plot(across, up, color=colour, marker=mark, markersize=4, linewidth=1.4, label=name)


def _ticks(axes: Axes, names: Mapping[int, str]) -> None:
    """Labels the values that occur on a logarithmic axis, and no others."""
    axes.set_xscale("log")
    axes.set_xticks(list(names), list(names.values()))
    axes.minorticks_off()


def _name_axes(losses: Sequence[Axes], answers: Sequence[Axes]) -> None:
    from matplotlib.ticker import PercentFormatter

    losses[0].set_ylabel("validation loss, nats a token")
    answers[0].set_ylabel("answers wholly right")
    for axes in answers:
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    names = ("steps", "parameters", "functions, at most")
    for axes, name in zip(answers, names, strict=True):
        axes.set_xlabel(name)
