"""A page that shows one kernel under one or two answers: picture and text, side by side.

One HTML file that loads nothing. The picture is drawn by its own script
(kernel_page.js) from the data in the page, so that a kernel of 5,000
instructions is drawn in milliseconds.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from itertools import groupby
from typing import Any

from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.report.occupation import Occupation
from verilocc_bench.report.picture import subtitle


def kernel_page(problem: AllocationProblem, occupations: Sequence[Occupation], title: str) -> str:
    """The page, as HTML."""
    folder = files("verilocc_bench.report")
    document = _document(problem, occupations, title)
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    # JSON that cannot end the element it stands in.
    text = text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    parts = {
        "title": escape(title),
        "style": (folder / "kernel_page.css").read_text("utf-8"),
        "script": (folder / "kernel_page.js").read_text("utf-8"),
        "data": text,
    }
    page = (folder / "kernel_page.html").read_text("utf-8")
    # One pass, so that nothing in a part is taken for a place.
    pieces = page.split("@")
    return "".join(parts[piece] if place % 2 else piece for place, piece in enumerate(pieces))


def _document(
    problem: AllocationProblem, occupations: Sequence[Occupation], title: str
) -> dict[str, Any]:
    lines = problem.normalized.splitlines()
    points = problem.liveness.points
    line_of = _line_of_instructions(lines)
    blocks = [p for p in range(1, len(points)) if points[p][0] != points[p - 1][0]]
    return {
        "title": title,
        "text": lines,
        "points": [line_of[point] for point in points],
        "blocks": blocks,
        "files": _files(problem, occupations),
        "registers": [[each.name, each.width] for each in problem.function.virtual_registers],
        "pressure": list(problem.pressure.curves[VECTOR]),
        "loops": _loops(problem),
        "copies": list(occupations[0].copies),
        "answers": [_answer(problem, each) for each in occupations],
    }


def _line_of_instructions(lines: Sequence[str]) -> dict[tuple[int, int], int]:
    """The line of each (block, instruction), from 0; the line of a block's head for -1."""
    found: dict[tuple[int, int], int] = {}
    block = instruction = -1
    for number, line in enumerate(lines):
        if line.startswith("bb"):
            block, instruction = block + 1, -1
        elif block >= 0:
            instruction += 1
        if block >= 0:
            found[block, instruction] = number
    return found


def _files(problem: AllocationProblem, occupations: Sequence[Occupation]) -> list[dict[str, Any]]:
    found = []
    for file in problem.target.files:
        used = max(each.used.get(file.name, 0) for each in occupations)
        if used:
            found.append(
                {
                    "name": file.name,
                    "first": problem.placements.first_unit[file.name],
                    "count": file.count,
                    "used": used,
                    "names": list(file.unit_names),
                }
            )
    return found


def _loops(problem: AllocationProblem) -> list[tuple[int, int, int]]:
    """(first point, last point, depth) of the runs of points in loops."""
    depths = [problem.loop_depths[block] for block, _ in problem.liveness.points]
    runs, first = [], 0
    for depth, points in groupby(depths):
        count = len(list(points))
        if depth:
            runs.append((first, first + count - 1, depth))
        first += count
    return runs


def _answer(problem: AllocationProblem, occupation: Occupation) -> dict[str, Any]:
    spans: list[int] = []
    for span in occupation.spans:
        register = -1 if span.register is None else span.register
        spans += (register, span.lane, span.unit, span.first, span.last)
    return {
        "source": occupation.source,
        "subtitle": subtitle(problem, occupation),
        "valid": occupation.valid,
        "used": occupation.used[VECTOR],
        "bases": {str(number): base for number, base in occupation.bases.items()},
        "spans": spans,
        "conflicts": list(occupation.conflicts),
        "findings": occupation.findings_count,
        "clashes": [
            (
                clash.point,
                clash.unit,
                clash.finding.message,
                _first_register(clash.finding.registers),
            )
            for clash in occupation.clashes
        ],
    }


def _first_register(names: Sequence[str]) -> int | None:
    """The number of the first virtual register among names."""
    numbers = [name[1:] for name in names if name.startswith("%")]
    return int(numbers[0]) if numbers and numbers[0].isdecimal() else None
