"""A picture of an assignment: which register holds what, from entry to end.

Across: program points, in the order of the text. Down: the registers of each
file in use. Every virtual register has a colour of its own; fixed registers
are grey. On top, the pressure on the vector file against what is used and
what may be used; below, how deep in loops each point lies.
"""

from __future__ import annotations

import colorsys
import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verilocc_bench.allocators import NamedAssignment
from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.errors import InputError, MissingExtraError
from verilocc_bench.files import is_stream, write_output
from verilocc_bench.verification import FastVerifier

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy import ndarray


FORMATS = (".png", ".svg", ".pdf")
GOLDEN_RATIO = 0.618033988749895
INK, FAINT, ACCENT, PAPER = "#1d2733", "#8a94a0", "#b3261e", "#ffffff"
FIXED_COLOUR = (0.55, 0.58, 0.62)
EMPTY_COLOUR = (0.955, 0.96, 0.968)


def draw_assignment(
    problem: AllocationProblem, answer: NamedAssignment, title: str, path: Path
) -> None:
    """Draws a valid answer to `path`, whose suffix says the format; PNG to standard output (`-`),
    devices and pipes whose names do not say one.

    Raises InputError for another suffix, and what `picture_of_assignment` raises.
    """
    suffix = path.suffix
    if suffix not in FORMATS and is_stream(path):
        suffix = ".png"
    if suffix not in FORMATS:
        raise InputError(f"expected a file name ending in {', '.join(FORMATS)}", source=path)
    write_output(path, picture_of_assignment(problem, answer, title, suffix))


def picture_of_assignment(
    problem: AllocationProblem, answer: NamedAssignment, title: str, suffix: str
) -> bytes:
    """The picture of a valid answer, as a file of the format `suffix`, one of FORMATS.

    Raises InputError for an answer that is wrong (see `verify` for why), and
    MissingExtraError without matplotlib.
    """
    verdict = FastVerifier(problem).verify(answer)
    if not verdict.valid or verdict.registers_used is None:
        raise InputError(
            f"the answer is wrong ({len(verdict.findings)} findings, "
            f"first: {verdict.findings[0].message}): only valid answers can be drawn"
        )
    figure = _figure(problem, answer, title, verdict.registers_used, verdict.occupancy)
    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    picture = io.BytesIO()
    figure.savefig(picture, format=suffix[1:], metadata=undated.get(suffix))
    return picture.getvalue()


def _figure(
    problem: AllocationProblem,
    answer: NamedAssignment,
    title: str,
    used: Mapping[str, int],
    occupancy: int | None,
) -> Figure:
    """The pressure, each register file in use, and the loops, one below the other."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
        from matplotlib.transforms import ScaledTranslation
    except ImportError:
        raise MissingExtraError("matplotlib", "plot", "drawing") from None
    files = [file.name for file in problem.target.files if used.get(file.name)]
    heights = [max(used[name], 8) for name in files]
    ratios = [0.28 * sum(heights), *heights, max(0.02 * sum(heights), 2)]
    mpl.rcParams.update({"font.size": 9, "svg.hashsalt": problem.id, "axes.edgecolor": FAINT})
    figure = Figure(figsize=(13, min(6 + sum(heights) / 32, 15)), facecolor=PAPER, dpi=140)
    axes: list[Axes] = list(
        figure.subplots(len(ratios), 1, sharex=True, height_ratios=ratios, squeeze=False)[:, 0]
    )
    _draw_pressure(axes[0], problem, used)
    units = {
        f"%{number}": problem.placements.by_name[c][answer[f"%{number}"]]
        for number, c in enumerate(problem.function.virtual_registers)
    }
    image = _image(problem, units)
    for axis, name in zip(axes[1:-1], files, strict=True):
        _draw_file(axis, problem, name, used[name], image)
    _draw_loops(axes[-1], problem)
    count = problem.function.instruction_count
    axes[0].set_title(title, loc="left", fontsize=13, fontweight="bold", color=INK, pad=22)
    axes[0].text(
        0,
        1.0,
        f"{problem.target.name} · {count} instructions · {len(units)} virtual registers · "
        f"{used[VECTOR]} vector registers used (lower bound "
        f"{problem.pressure.maximum[VECTOR]}) · {occupancy} "
        f"{problem.target.occupancy_unit}",
        transform=axes[0].transAxes + ScaledTranslation(0, 0.08, figure.dpi_scale_trans),
        va="bottom",
        color=FAINT,
    )
    figure.align_ylabels(axes)
    height = figure.get_figheight()
    figure.subplots_adjust(
        left=0.065, right=0.985, top=1 - 0.75 / height, bottom=0.55 / height, hspace=0.05
    )
    return figure


def _draw_pressure(axis: Axes, problem: AllocationProblem, used: Mapping[str, int]) -> None:
    curve = problem.pressure.curves[VECTOR]
    axis.fill_between(range(len(curve)), curve, step="mid", color="#7fa3c7", alpha=0.55, lw=0)
    axis.step(range(len(curve)), curve, where="mid", color="#2f5d8a", lw=0.8)
    axis.axhline(used[VECTOR], color=ACCENT, lw=1)
    axis.annotate(
        f"{used[VECTOR]} used",
        (1, used[VECTOR]),
        xycoords=("axes fraction", "data"),
        xytext=(-3, 2),
        textcoords="offset points",
        ha="right",
        va="bottom",
        fontsize=8,
        color=ACCENT,
    )
    axis.set_ylim(0, max(used[VECTOR], *curve) * 1.18)
    axis.set_ylabel("lanes live", color=INK)
    _tidy(axis)


def _image(problem: AllocationProblem, units: Mapping[str, int]) -> ndarray[Any, Any]:
    """Colours by (unit, point): RGB from 0 to 1."""
    import numpy as np

    liveness = problem.liveness
    image = np.empty((problem.placements.unit_count, len(liveness.points), 3))
    image[:] = EMPTY_COLOUR
    lane_unit: dict[int, int] = {}
    colours: dict[int, tuple[float, float, float]] = {}
    for number, (offset, register_class) in enumerate(
        zip(liveness.lane_offsets, problem.function.virtual_registers, strict=True)
    ):
        for lane in range(register_class.width):
            lane_unit[offset + lane] = units[f"%{number}"] + lane
            hue = number * GOLDEN_RATIO % 1
            colours[offset + lane] = colorsys.hls_to_rgb(hue, (0.46, 0.58, 0.68)[number % 3], 0.55)
    for lane, (file, index) in enumerate(liveness.fixed_lanes, liveness.virtual_lane_count):
        lane_unit[lane] = problem.placements.first_unit[file] + index
        colours[lane] = FIXED_COLOUR
    for lane, first, last, _ in liveness.segments:
        image[lane_unit[lane], first : last + 1] = colours[lane]
    return image


def _draw_file(
    axis: Axes, problem: AllocationProblem, name: str, used: int, image: ndarray[Any, Any]
) -> None:
    first = problem.placements.first_unit[name]
    axis.imshow(
        image[first : first + used],
        aspect="auto",
        interpolation="nearest",
        extent=(-0.5, image.shape[1] - 0.5, used - 0.5, -0.5),
    )
    file = problem.target.file(name)
    if name in problem.target.vector_files:
        axis.set_ylabel(f"{name} registers", color=INK)
    else:
        # These files may be small: a name that lies flat finds room beside any of them.
        axis.set_ylabel(name, rotation=0, ha="right", va="center", color=INK)
    if file.unit_names:
        axis.set_yticks(range(used), [n.split("_")[-1] for n in file.unit_names[:used]])
    else:
        step = 3 if used <= 8 else 8 if used <= 32 else 16 if used <= 128 else 32
        axis.set_yticks(range(0, used, step))
    _tidy(axis)
    points = problem.liveness.points
    for position in [p for p in range(1, len(points)) if points[p][0] != points[p - 1][0]]:
        axis.axvline(position - 0.5, color=INK, lw=0.35, alpha=0.35)


def _draw_loops(axis: Axes, problem: AllocationProblem) -> None:
    import numpy as np

    depths = np.array([[problem.loop_depths[block] for block, _ in problem.liveness.points]])
    axis.imshow(
        depths,
        aspect="auto",
        interpolation="nearest",
        cmap="Oranges",
        vmin=0,
        vmax=max(2, int(depths.max())),
        extent=(-0.5, depths.shape[1] - 0.5, 0, 1),
    )
    axis.set_yticks([])
    axis.set_ylabel("loops", rotation=0, ha="right", va="center", color=INK)
    axis.set_xlabel(
        "program points, in the order of the text; vertical lines are block boundaries", color=INK
    )
    _tidy(axis)


def _tidy(axis: Axes) -> None:
    axis.tick_params(colors=FAINT, length=2)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    axis.margins(x=0)
