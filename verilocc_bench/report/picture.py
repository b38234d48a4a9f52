"""A picture of assignments: which register holds what, from entry to end.

Across: program points, in the order of the text. Down: the registers of each
file in use. Every virtual register has a colour of its own; fixed registers
are grey, and red crosses mark what the verifier found wrong. On top, the
pressure on the vector file against what is used; below, how deep in loops each
point lies. Two assignments of one function stand side by side.
"""

from __future__ import annotations

import colorsys
import io
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.errors import MissingExtraError
from verilocc_bench.report.occupation import Occupation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy import ndarray


PICTURES = (".png", ".svg", ".pdf")
GOLDEN_RATIO = 0.618033988749895
SUBTITLE_LENGTH = 170
"""What fits above a picture, in characters."""

FIXED_COLOUR = (0.55, 0.58, 0.62)

Colour = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Theme:
    """The colours of a picture, without the colours of registers."""

    ink: str
    faint: str
    accent: str
    paper: str
    empty: Colour
    line: str
    area: str


LIGHT = Theme(
    "#1d2733", "#77818c", "#b3261e", "#ffffff", (0.955, 0.96, 0.968), "#2f5d8a", "#7fa3c7"
)
DARK = Theme("#e4e8ec", "#98a2ad", "#ff6b5e", "#14181d", (0.135, 0.155, 0.18), "#8db8e2", "#3d6286")


def picture_of(
    problem: AllocationProblem,
    occupations: Sequence[Occupation],
    title: str,
    suffix: str,
    theme: Theme = LIGHT,
) -> bytes:
    """The picture of one or two answers, as a file of the format `suffix`, one of PICTURES.

    Raises MissingExtraError without matplotlib.
    """
    try:
        import matplotlib as mpl
    except ImportError:
        raise MissingExtraError("matplotlib", "plot", "drawing") from None
    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    settings = {
        "font.size": 9,
        "svg.hashsalt": problem.id,
        "axes.edgecolor": theme.faint,
        "axes.facecolor": theme.paper,
        "text.color": theme.ink,
    }
    picture = io.BytesIO()
    with mpl.rc_context(settings):
        figure = _figure(problem, occupations, title, theme)
        figure.savefig(picture, format=suffix[1:], metadata=undated.get(suffix))
    return picture.getvalue()


def register_colour(number: int) -> Colour:
    """The colour of a virtual register: neighbours in number are far apart in hue."""
    return colorsys.hls_to_rgb(number * GOLDEN_RATIO % 1, (0.46, 0.58, 0.68)[number % 3], 0.55)


def _figure(
    problem: AllocationProblem, occupations: Sequence[Occupation], title: str, theme: Theme
) -> Figure:
    """The pressure, each register file in use, and the loops, one below the other."""
    from matplotlib.figure import Figure

    used = _most_used(occupations)
    files = [file.name for file in problem.target.files if used.get(file.name)]
    heights = [max(used[name], 8) for name in files]
    ratios = [0.28 * sum(heights), *heights, max(0.02 * sum(heights), 2)]
    figure = Figure(
        figsize=(13 * len(occupations), min(6 + sum(heights) / 32, 15)),
        facecolor=theme.paper,
        dpi=140,
    )
    grid = figure.subplots(
        len(ratios),
        len(occupations),
        sharex=True,
        sharey="row",
        height_ratios=ratios,
        squeeze=False,
    )
    for column, occupation in enumerate(occupations):
        axes: list[Axes] = list(grid[:, column])
        heading = title if len(occupations) == 1 else f"{title}, registers by {occupation.source}"
        _draw_pressure(axes[0], problem, occupation, heading, theme)
        image = _image(problem, occupation, theme)
        for axis, name in zip(axes[1:-1], files, strict=True):
            _draw_file(axis, problem, name, used[name], image, theme=theme)
            _draw_clashes(axis, problem, occupation, name, theme)
        _draw_loops(axes[-1], problem, theme)
        figure.align_ylabels(axes)
    height = figure.get_figheight()
    figure.subplots_adjust(
        left=0.065 / len(occupations) ** 0.5,
        right=0.985,
        top=1 - 0.75 / height,
        bottom=0.85 / height,
        hspace=0.05,
        wspace=0.06,
    )
    _draw_key(figure, any(not each.valid for each in occupations), theme)
    return figure


def _most_used(occupations: Sequence[Occupation]) -> Mapping[str, int]:
    names = dict.fromkeys(name for each in occupations for name in each.used)
    return {name: max(each.used.get(name, 0) for each in occupations) for name in names}


def _draw_pressure(
    axis: Axes, problem: AllocationProblem, occupation: Occupation, title: str, theme: Theme
) -> None:
    from matplotlib.transforms import ScaledTranslation

    curve, used = problem.pressure.curves[VECTOR], occupation.used[VECTOR]
    axis.fill_between(range(len(curve)), curve, step="mid", color=theme.area, alpha=0.55, lw=0)
    axis.step(range(len(curve)), curve, where="mid", color=theme.line, lw=0.8)
    axis.axhline(used, color=theme.accent, lw=1)
    axis.annotate(
        f"{used} used",
        (1, used),
        xycoords=("axes fraction", "data"),
        xytext=(-3, 2),
        textcoords="offset points",
        ha="right",
        va="bottom",
        fontsize=8,
        color=theme.accent,
    )
    axis.set_ylim(0, max(used, *curve, *axis.get_ylim()) * 1.18)
    axis.set_ylabel("lanes live", color=theme.ink)
    axis.set_title(title, loc="left", fontsize=13, fontweight="bold", color=theme.ink, pad=22)
    figure = axis.get_figure()
    assert figure is not None
    axis.text(
        0,
        1.0,
        textwrap.shorten(subtitle(problem, occupation), SUBTITLE_LENGTH, placeholder=" …"),
        transform=axis.transAxes + ScaledTranslation(0, 0.08, figure.dpi_scale_trans),
        va="bottom",
        color=theme.accent if not occupation.valid else theme.faint,
    )
    _tidy(axis, theme)


def subtitle(problem: AllocationProblem, occupation: Occupation) -> str:
    """The figures of an answer on one line, or what is wrong with it."""
    parts = [
        problem.target.name,
        f"{problem.function.instruction_count:,} instructions",
        f"{len(problem.function.virtual_registers):,} virtual registers",
    ]
    if occupation.valid and occupation.occupancy is not None:
        parts.append(
            f"{occupation.used[VECTOR]} vector registers used (lower bound "
            f"{problem.pressure.maximum[VECTOR]})"
        )
        parts.append(problem.target.counted_occupancy(occupation.occupancy))
        return " · ".join(parts)
    first = occupation.clashes[0].finding.message
    count = occupation.findings_count
    parts.append(f"wrong: {count:,} {'finding' if count == 1 else 'findings, first'}: {first}")
    if occupation.unplaced:
        parts.append(f"{len(occupation.unplaced):,} registers have no place")
    return " · ".join(parts)


def _image(problem: AllocationProblem, occupation: Occupation, theme: Theme) -> ndarray[Any, Any]:
    """Colours by (unit, point): RGB from 0 to 1."""
    import numpy as np

    image = np.empty((problem.placements.unit_count, len(problem.liveness.points), 3))
    image[:] = theme.empty
    for span in occupation.spans:
        fixed = span.register is None
        colour = FIXED_COLOUR if fixed else register_colour(span.register or 0)
        image[span.unit, span.first : span.last + 1] = colour
    return image


def _draw_file(
    axis: Axes,
    problem: AllocationProblem,
    name: str,
    used: int,
    image: ndarray[Any, Any],
    *,
    theme: Theme,
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
        axis.set_ylabel(f"{name} registers", color=theme.ink)
    else:
        # These files may be small: a name that lies flat finds room beside any of them.
        axis.set_ylabel(name, rotation=0, ha="right", va="center", color=theme.ink)
    if file.unit_names:
        axis.set_yticks(range(used), [n.split("_")[-1] for n in file.unit_names[:used]])
    else:
        step = 3 if used <= 8 else 8 if used <= 32 else 16 if used <= 128 else 32
        axis.set_yticks(range(0, used, step))
    _tidy(axis, theme)
    points = problem.liveness.points
    for position in [p for p in range(1, len(points)) if points[p][0] != points[p - 1][0]]:
        axis.axvline(position - 0.5, color=theme.ink, lw=0.35, alpha=0.35)


def _draw_clashes(
    axis: Axes, problem: AllocationProblem, occupation: Occupation, name: str, theme: Theme
) -> None:
    """A cross at each collision in the file."""
    first = problem.placements.first_unit[name]
    places = sorted(
        {
            (clash.point, clash.unit - first)
            for clash in occupation.clashes
            if clash.point is not None
            and clash.unit is not None
            and first <= clash.unit < first + problem.target.file(name).count
        }
    )
    if not places:
        return
    across, down = zip(*places, strict=True)
    for colour, size, width in ((theme.paper, 9, 4), (theme.accent, 8, 2)):
        axis.plot(
            across,
            down,
            "x",
            color=colour,
            markersize=size,
            markeredgewidth=width,
            clip_on=False,
            zorder=5,
        )


def _draw_loops(axis: Axes, problem: AllocationProblem, theme: Theme) -> None:
    import numpy as np

    depths = np.array([[problem.loop_depths[block] for block, _ in problem.liveness.points]])
    axis.imshow(
        depths,
        aspect="auto",
        interpolation="nearest",
        cmap="Oranges" if theme is LIGHT else "copper",
        vmin=0,
        vmax=max(2, int(depths.max())),
        extent=(-0.5, depths.shape[1] - 0.5, 0, 1),
    )
    axis.set_yticks([])
    axis.set_ylabel("loops", rotation=0, ha="right", va="center", color=theme.ink)
    axis.set_xlabel(
        "program points, in the order of the text; vertical lines are block boundaries",
        color=theme.ink,
    )
    _tidy(axis, theme)


def _draw_key(figure: Figure, wrong: bool, theme: Theme) -> None:
    """What the colours mean, in one line at the bottom."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    mixed = [Patch(color=register_colour(number)) for number in (1, 2, 3)]
    keys: list[tuple[Any, str]] = [
        (tuple(mixed), "virtual registers, a colour each"),
        (Patch(color=FIXED_COLOUR), "registers that the function names"),
        (Patch(color=theme.empty), "free"),
        (Patch(color=theme.area), "lanes live in vector registers"),
        (Line2D([], [], color=theme.accent, lw=1.5), "vector registers used"),
        (Patch(color="#fd8d3c" if theme is LIGHT else "#c97f50"), "in a loop"),
    ]
    if wrong:
        mark = Line2D([], [], color=theme.accent, marker="x", ls="none", ms=8, mew=2)
        keys.append((mark, "a value is destroyed"))
    from matplotlib.legend_handler import HandlerTuple

    figure.legend(
        [handle for handle, _ in keys],
        [text for _, text in keys],
        loc="lower left",
        bbox_to_anchor=(0.06, 0.0),
        ncols=len(keys),
        frameon=False,
        fontsize=7.8,
        labelcolor=theme.ink,
        handlelength=1.6,
        columnspacing=1.2,
        handler_map={tuple: HandlerTuple(ndivide=None, pad=0)},
    )


def _tidy(axis: Axes, theme: Theme) -> None:
    axis.tick_params(colors=theme.faint, length=2)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    axis.margins(x=0)
