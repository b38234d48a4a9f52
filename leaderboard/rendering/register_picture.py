"""A valid answer as a picture in SVG: which register holds what, from entry to end.

It shows what `verilocc-bench show -o FILE.svg` does, and is drawn in milliseconds, without
matplotlib: a site has hundreds of pictures.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from xml.sax.saxutils import escape

from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.report.occupation import Occupation
from verilocc_bench.report.picture import FIXED_COLOUR, LIGHT, Colour, register_colour, subtitle

WIDTH, LEFT, RIGHT = 1300, 66, 14
TOP, PRESSURE, GAP, LOOPS, KEY = 56, 110, 6, 12, 40
ROW, HIGHEST = 6.0, 900
"""The height of a register's row, and of all rows at most."""

LOOP = "#fd8d3c"
KEYS = (
    (LIGHT.empty, "free"),
    (FIXED_COLOUR, "registers that the function names"),
    (LIGHT.area, "lanes live in vector registers"),
    (LIGHT.accent, "vector registers used"),
    (LOOP, "in a loop"),
)


def register_picture(problem: AllocationProblem, occupation: Occupation, title: str) -> str:
    """The picture, as a document of SVG."""
    files = [file.name for file in problem.target.files if occupation.used.get(file.name)]
    rows = sum(occupation.used[name] for name in files)
    row = min(ROW, HIGHEST / max(rows, 1))
    points = len(problem.liveness.points)
    height = TOP + PRESSURE + len(files) * GAP + rows * row + GAP + LOOPS + KEY
    body = [
        _text(LEFT, 24, title, "font-weight='bold' font-size='17'"),
        _text(LEFT, 44, subtitle(problem, occupation), f"fill='{LIGHT.faint}'"),
    ]
    across = (WIDTH - LEFT - RIGHT) / max(points, 1)
    body += _pressure(problem, occupation, across)
    top = float(TOP + PRESSURE)
    for name in files:
        top += GAP
        body += _file(problem, occupation, name, (top, row, across))
        top += occupation.used[name] * row
    body += _loops(problem, top + GAP, across)
    body += _keys(height - 12)
    style = f"font-family='sans-serif' font-size='12' fill='{LIGHT.ink}'"
    size = f"width='{WIDTH}' height='{height:g}' viewBox='0 0 {WIDTH} {height:g}'"
    paper = _box(0, 0, WIDTH, height, LIGHT.paper)
    head = f"<svg xmlns='http://www.w3.org/2000/svg' {size} {style}>"
    return "\n".join([head, paper, *body, "</svg>", ""])


def _pressure(problem: AllocationProblem, occupation: Occupation, across: float) -> Iterator[str]:
    """The lanes that live at each point, and the registers in use above them."""
    curve, used = problem.pressure.curves[VECTOR], occupation.used[VECTOR]
    base, scale = TOP + PRESSURE, PRESSURE / (1.15 * max(used, *curve, 1))
    place, steps = 0, f"M{LEFT} {base}"
    for lanes, run in groupby(curve):
        place += len(list(run))
        steps += f"V{base - lanes * scale:.1f}H{LEFT + place * across:.1f}"
    yield f"<path fill='{LIGHT.area}' d='{steps}V{base}Z'/>"
    line = base - used * scale
    yield _box(LEFT, line, WIDTH - LEFT - RIGHT, 1, LIGHT.accent)
    end = f"text-anchor='end' fill='{LIGHT.accent}'"
    yield _text(WIDTH - RIGHT, line - 3, f"{used} used", end)
    yield _text(LEFT - 6, TOP + 12, "lanes live", "text-anchor='end'")


def _file(
    problem: AllocationProblem, occupation: Occupation, name: str, at: tuple[float, float, float]
) -> Iterator[str]:
    """The rows of a register file, from its first register down; `at`: top, row, and point."""
    top, row, across = at
    first, used = problem.placements.first_unit[name], occupation.used[name]
    yield _box(LEFT, top, WIDTH - LEFT - RIGHT, used * row, _colour(LIGHT.empty))
    shapes: dict[str, list[str]] = {}
    for span in occupation.spans:
        if first <= span.unit < first + used:
            fixed = span.register is None
            colour = _colour(FIXED_COLOUR if fixed else register_colour(span.register or 0))
            left, wide = LEFT + span.first * across, (span.last + 1 - span.first) * across
            upper = top + (span.unit - first) * row
            shape = f"M{left:.1f} {upper:.1f}h{wide:.1f}v{row:g}h-{wide:.1f}z"
            shapes.setdefault(colour, []).append(shape)
    for colour, each in shapes.items():
        yield f"<path fill='{colour}' d='{''.join(each)}'/>"
    blocks = [block for block, _ in problem.liveness.points]
    lines = [p for p in range(1, len(blocks)) if blocks[p] != blocks[p - 1]]
    drawn = "".join(f"M{LEFT + p * across:.1f} {top:.1f}v{used * row:.1f}" for p in lines)
    yield f"<path stroke='{LIGHT.ink}' stroke-opacity='.35' stroke-width='.5' d='{drawn}'/>"
    step = 8 if used <= 32 else 16 if used <= 128 else 32
    marks = range(0, used, step) if name in problem.target.vector_files else (0,)
    for number in marks:
        words = f"{name} {number}" if len(marks) > 1 else name
        yield _text(LEFT - 6, top + number * row + 9, words, "text-anchor='end'")


def _loops(problem: AllocationProblem, top: float, across: float) -> Iterator[str]:
    """A strip below: the deeper in loops, the darker."""
    yield _text(LEFT - 6, top + 10, "loops", "text-anchor='end'")
    depths = [problem.loop_depths[block] for block, _ in problem.liveness.points]
    place = 0
    for depth, run in groupby(depths):
        count = len(list(run))
        if depth:
            opacity = f"{round(255 * depth / max(2, *depths)):02x}"
            yield _box(LEFT + place * across, top, count * across, LOOPS, LOOP + opacity)
        place += count


def _keys(bottom: float) -> Iterator[str]:
    """What the colours mean."""
    left = float(LEFT)
    named: Iterable[tuple[Colour | str, str]] = [
        (register_colour(1), "virtual registers, a colour each"),
        *KEYS,
    ]
    for colour, words in named:
        told = colour if isinstance(colour, str) else _colour(colour)
        yield _box(left, bottom - 10, 12, 10, told)
        yield _text(left + 17, bottom, words)
        left += 45 + 6.2 * len(words)


def _box(left: float, top: float, width: float, height: float, fill: str) -> str:
    place = f"x='{left:.1f}' y='{top:.1f}' width='{width:.1f}' height='{height:.1f}'"
    return f"<rect {place} fill='{fill}'/>"


def _text(left: float, bottom: float, words: str, more: str = "") -> str:
    return f"<text x='{left:.1f}' y='{bottom:.1f}' {more}>{escape(words)}</text>"


def _colour(colour: Colour) -> str:
    return "#" + "".join(f"{round(255 * part):02x}" for part in colour)
