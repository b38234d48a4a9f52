"""Plots in one style, with reproducible bytes."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from verilocc_bench.errors import MissingExtraError
from verilocc_bench.report.picture import LIGHT

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot(
    drawing: Callable[[Figure], None],
    size_inches: tuple[float, float],
    faint: str,
    settings: Mapping[str, Any],
    **saved: Any,
) -> bytes:
    """A drawing as a file; `saved` are what `Figure.savefig` takes, such as its format.

    `settings` go before those of the style, which has `faint` lines. Raises
    MissingExtraError without matplotlib.
    """
    try:
        import matplotlib as mpl
        from matplotlib import style
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "plot", "drawing plots") from None
    common = {
        "font.family": "DejaVu Sans",
        "font.size": 10,
        "text.color": LIGHT.ink,
        "axes.labelcolor": LIGHT.ink,
        "axes.edgecolor": faint,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "axes.grid": True,
        "grid.color": faint,
        "grid.alpha": 0.25,
    }
    with mpl.rc_context(), style.context(["default", {**common, **settings}]):
        figure = Figure(figsize=size_inches, facecolor=LIGHT.paper, layout="constrained")
        drawing(figure)
        picture = io.BytesIO()
        figure.savefig(picture, **saved)
    return picture.getvalue()
