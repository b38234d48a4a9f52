"""The curve of a training run, drawn from its log."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verilocc_bench.errors import InputError, MissingExtraError
from verilocc_bench.files import parse_json, read_text, write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CURVE = "loss.png"
LOG = "log.jsonl"

INK, FAINT = "#1d2733", "#8a94a0"
TRAINING, VALIDATION = "#2f7fc1", "#d9730d"


def plot_log(folder: Path) -> Path:
    """Draws loss and validation accuracy over steps from a run's log; returns the picture's path.

    Raises InputError if the log has no loss, MissingExtraError without matplotlib.
    """
    entries = _entries(folder / LOG)
    loss, validation = _series(entries, "loss"), _series(entries, "eval_loss")
    if not loss and not validation:
        raise InputError("expected lines with 'step' and 'loss'", source=folder / LOG)
    picture = _draw(loss, validation, _series(entries, "eval_accuracy"))
    write_atomically(folder / CURVE, picture)
    return folder / CURVE


def _entries(path: Path) -> list[dict[str, Any]]:
    found = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        entry = parse_json(line, path, number)
        if not isinstance(entry, dict):
            raise InputError("expected a JSON object", source=path, line=number)
        found.append(entry)
    return found


def _series(entries: Sequence[dict[str, Any]], name: str) -> list[tuple[int, float]]:
    """The (step, value) pairs of a figure by ascending step; the last entry of a step counts."""
    found = {entry["step"]: entry[name] for entry in entries if name in entry and "step" in entry}
    return sorted(found.items())


def _draw(
    loss: Sequence[tuple[int, float]],
    validation: Sequence[tuple[int, float]],
    accuracy: Sequence[tuple[int, float]],
) -> bytes:
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "plot", "drawing a training curve") from None
    with mpl.rc_context({"font.family": "DejaVu Sans", "font.size": 10, "text.color": INK}):
        figure = Figure(figsize=(8, 3.2), dpi=120, facecolor="white", layout="constrained")
        left, *others = figure.subplots(1, 2 if accuracy else 1, squeeze=False)[0]
        _lines(left, {"training": loss, "validation": validation}, "loss")
        left.set_yscale("log")
        left.legend(frameon=False)
        if others:
            # The share of wrong answers shows progress near 100 % better than the right ones do.
            wrong = [(step, 1 - share) for step, share in accuracy]
            _lines(others[0], {"validation": wrong}, "answers unlike the teacher's")
            if all(share > 0 for _, share in wrong):
                others[0].set_yscale("log")
        picture = io.BytesIO()
        figure.savefig(picture, format="png", metadata={"Software": None})
    return picture.getvalue()


def _lines(axes: Axes, series: dict[str, Sequence[tuple[int, float]]], title: str) -> None:
    colours = {"training": TRAINING, "validation": VALIDATION}
    for name, points in series.items():
        if points:
            steps, values = zip(*points, strict=True)
            axes.plot(steps, values, color=colours[name], label=name, linewidth=1.4)
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlabel("steps")
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.grid(color=FAINT, alpha=0.25)
