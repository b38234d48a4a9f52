"""Makes the figures of the README: `python -m benchmarks.figures docs/images` (`make figures`).

Each is made twice, for light and for dark pages. The same code gives the same bytes.
"""

from __future__ import annotations

import argparse
from html import escape
from pathlib import Path

from verilocc_bench.api.problems import load_problem
from verilocc_bench.api.working import usual_assignment
from verilocc_bench.files import write_atomically
from verilocc_bench.report.occupation import occupation_of
from verilocc_bench.report.picture import DARK, LIGHT, Theme, picture_of

THEMES = {"light": LIGHT, "dark": DARK}
KERNEL = "3f265eecaeacb336"
"""A kernel of the embedded dataset with 278 instructions: its picture can be read when small."""

BOXES = (
    (16, 30, 150, ("a GPU kernel", "Triton, LLVM IR,", "PTX, cubin")),
    (206, 30, 150, ("a problem", "instructions over", "virtual registers")),
    (396, 30, 150, ("an allocator", "function, program,", "search, model")),
    (586, 30, 150, ("an answer", "a register for each", "virtual register")),
    (776, 30, 168, ("a verifier", "valid, or what is", "wrong where")),
    (586, 190, 150, ("machine code", "with the answer,", "run on the CPU")),
    (776, 190, 168, ("scores", "pass@k, registers,", "bank conflicts, bound")),
)
"""(x, y, width, lines) of each box; the first line is its title."""

HEIGHT = 92
ARROWS = (
    ((166, 76), (206, 76)),
    ((356, 76), (396, 76)),
    ((546, 76), (586, 76)),
    ((736, 76), (776, 76)),
    ((860, 122), (860, 190)),
    ((661, 122), (661, 190)),
    ((736, 236), (776, 236)),
)
BACK = ((850, 30), (850, 12), (471, 12), (471, 30))
"""The way of the verifier's findings back to the allocator."""


def pipeline(theme: Theme) -> str:
    """How a kernel becomes a score, as SVG."""
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 300" width="960" height="300" '
        'role="img" font-family="Helvetica, Arial, sans-serif">',
        "<title>From a GPU kernel to a score</title>",
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" '
        f'markerHeight="8" orient="auto"><path d="M0 1 9 5 0 9z" fill="{theme.line}"/></marker>'
        "</defs>",
        f'<rect width="960" height="300" fill="{theme.paper}"/>',
    ]
    fill = "#{:02x}{:02x}{:02x}".format(*(round(255 * part) for part in theme.empty))
    for x, y, width, (title, *lines) in BOXES:
        parts.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{HEIGHT}" rx="8" fill="{fill}" '
            f'stroke="{theme.line}" stroke-width="1.5"/>'
        )
        middle = x + width / 2
        parts.append(_text(middle, y + 28, title, theme.ink, size=16, weight="bold"))
        for place, line in enumerate(lines):
            parts.append(_text(middle, y + 51 + 19 * place, line, theme.ink, size=14))
    for (x, y), (to_x, to_y) in ARROWS:
        parts.append(_line(f"M{x} {y} L{to_x} {to_y}", theme.line))
    way = " L".join(f"{x} {y}" for x, y in BACK)
    parts.append(_line(f"M{way}", theme.accent, dashed=True))
    parts.append(_text(661, 25, "findings, with --decoding guided", theme.accent, size=12))
    for place, line in enumerate(
        (
            "6,310 GEMM and attention kernels",
            "for gfx90a, gfx942 and sm_80,",
            "each with the compiler's own answer",
        )
    ):
        parts.append(_text(206, 222 + 20 * place, line, theme.faint, size=14))
    return "\n".join([*parts, "</svg>", ""])


def _text(x: float, y: float, text: str, colour: str, *, size: int, weight: str = "normal") -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" font-weight="{weight}" fill="{colour}" '
        f'text-anchor="middle">{escape(text)}</text>'
    )


def _line(path: str, colour: str, *, dashed: bool = False) -> str:
    dashes = ' stroke-dasharray="5 4"' if dashed else ""
    return (
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2"{dashes} '
        'marker-end="url(#tip)"/>'
    )


def shown(theme: Theme) -> bytes:
    """What `show` draws of a small kernel, as SVG."""
    problem = load_problem(KERNEL)
    source, assignment = usual_assignment(problem)
    occupation = occupation_of(problem, assignment, source)
    title = f"{problem.title}, registers by {source}"
    return picture_of(problem, [occupation], title, ".svg", theme)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the figures go")
    folder: Path = parser.parse_args().folder
    for name, theme in THEMES.items():
        write_atomically(folder / f"pipeline-{name}.svg", pipeline(theme))
        write_atomically(folder / f"show-{name}.svg", shown(theme))


if __name__ == "__main__":
    main()
