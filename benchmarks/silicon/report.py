"""Tables and the picture of a measurement.

verilocc-bench measure FOLDER --json > FILE.json
python -m benchmarks.silicon.report FILE.json [--picture FILE.svg]
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from verilocc_bench.evaluation.metrics import geometric_mean
from verilocc_bench.files import write_atomically
from verilocc_bench.report.picture import LIGHT

Side = dict[str, Any]
_SAME_CODE = re.compile(r"own-larger-count|best-runnable.*|permuted.*|linear-runnable")


def sides_of(document: dict[str, Any]) -> Iterator[tuple[dict[str, Any], Side, Side]]:
    """Each kernel, its first side, and each side."""
    for kernel in document["kernels"]:
        own = kernel["sides"][0]
        for side in kernel["sides"]:
            yield kernel, own, side


def by_kind(document: dict[str, Any]) -> list[str]:
    """What the sides of each kind leave, and how long they take, for each way to sm_90."""
    groups: dict[tuple[str, str], list[Side]] = defaultdict(list)
    for kernel, _, side in sides_of(document):
        kind = re.sub(r"-\d+$", "", side["name"])
        groups[kernel["key"].rsplit("-", 1)[1], kind].append(side)
    lines = [
        "| way | side | kernels | same bits | other or changing bits | wrong or nothing | fault "
        "| timed | ratio | least | most | faster | slower |",
        "|---|---|" + "---:|" * 11,
    ]
    for (way, kind), sides in sorted(groups.items()):
        said = Counter(side["verdict"] for side in sides if "verdict" in side)
        other = said["other bits"] + said["changing bits"]
        wrong = said["wrong numbers"] + said["wrote nothing"]
        faults = said.total() - said["same bits"] - other - wrong
        timed = [side for side in sides if "ratio" in side]
        lines.append(
            f"| {way} | {kind} | {said.total()} | {said['same bits']} | {other} | {wrong} "
            f"| {faults} | {_ratios(timed)} |"
        )
    return lines


def _ratios(timed: list[Side]) -> str:
    if not timed:
        return "0 | | | | | "
    ratios = [side["ratio"] for side in timed]
    faster, slower = (
        sum(side[end] * sign < sign for side in timed)
        for end, sign in (("ratio_high", 1), ("ratio_low", -1))
    )
    return (
        f"{len(timed)} | {geometric_mean(ratios):.3f} | {min(ratios):.3f} | {max(ratios):.3f} "
        f"| {faster} | {slower}"
    )


def steps(document: dict[str, Any]) -> list[tuple[str, str, int, int, Side]]:
    """The same instructions at other blocks a multiprocessor: kernel, side, before, after."""
    return sorted(
        (
            (kernel["key"], side["name"], own["blocks"], side["blocks"], side)
            for kernel, own, side in sides_of(document)
            if _SAME_CODE.fullmatch(side["name"])
            and "ratio" in side
            and side["blocks"] != own["blocks"]
        ),
        key=lambda each: (each[3] / each[2], each[0]),
    )


def step_lines(document: dict[str, Any]) -> list[str]:
    """The steps as a table."""
    lines = ["| kernel | side | blocks | ratio | interval |", "|---|---|---|---:|---|"]
    lines += [
        f"| {key} | {name} | {before} → {after} | {side['ratio']:.3f} | {_interval(side)} |"
        for key, name, before, after, side in steps(document)
    ]
    return lines


def rivals(document: dict[str, Any]) -> list[str]:
    """ptxas at its best cap, our best answer, and the vendor's library, kernel by kernel."""
    lines = [
        "| kernel | own: registers, blocks | ptxas at its best cap | our best answer | library |",
        "|---|---|---|---|---|",
    ]
    for kernel in document["kernels"]:
        own, *others = kernel["sides"]
        timed = [side for side in others if "ratio" in side]
        caps = [side for side in timed if side["name"].startswith("ptxas-")]
        ours = [side for side in timed if side["name"].startswith(("best-", "linear-"))]
        if "ratio" in own:
            library = kernel["library"] or {}
            shown = f"{library['ratio']:.3f} {library['name']}" if "ratio" in library else ""
            lines.append(
                f"| {kernel['key']} | {own['registers']}, {own['blocks']} | {_least(caps)} "
                f"| {_least(ours)} | {shown} |"
            )
    return lines


def _least(sides: list[Side]) -> str:
    if not sides:
        return "–"
    side = min(sides, key=lambda each: float(each["ratio"]))
    return f"{side['ratio']:.3f} {_interval(side)} {side['name']}, {side['blocks']} blocks"


def _interval(side: Side) -> str:
    return f"[{side['ratio_low']:.3f}, {side['ratio_high']:.3f}]"


def disagreements(document: dict[str, Any]) -> list[str]:
    """Sides of which the driver says something else than we do, and local memory that appeared."""
    counted, found = 0, []
    for kernel, own, side in sides_of(document):
        for what in ("registers", "blocks"):
            if what in side and f"said_{what}" in side:
                counted += 1
                if side[what] != side[f"said_{what}"]:
                    said = side[f"said_{what}"]
                    found.append(f"{kernel['key']} {side['name']}: {side[what]} {what}, not {said}")
        if _SAME_CODE.fullmatch(side["name"]) and side.get("local_bytes") != own.get("local_bytes"):
            found.append(f"{kernel['key']} {side['name']}: {side.get('local_bytes')} local bytes")
    return [f"The driver agrees with {counted - len(found)} of {counted} counts.", *found]


def picture(document: dict[str, Any]) -> str:
    """Ratios with intervals at each step of blocks, as SVG."""
    rows = [each for each in steps(document) if each[1] != "linear-runnable"]
    height = 60 + 18 * len(rows)
    low, high, left, width = 0.8, 1.9, 430, 440

    def x(ratio: float) -> float:
        return left + width * (min(max(ratio, low), high) - low) / (high - low)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 {height}" width="900" '
        f'height="{height}" role="img" font-family="Helvetica, Arial, sans-serif" font-size="12">',
        "<title>Time of the same code at other blocks a multiprocessor</title>",
        f'<rect width="900" height="{height}" fill="{LIGHT.paper}"/>',
    ]
    parts += [
        f'<path d="M{x(mark):.1f} 20V{height - 24}" stroke="{LIGHT.line}" '
        f'stroke-width="{1.5 if mark == 1 else 0.4}"/>'
        f'<text x="{x(mark):.1f}" y="{height - 8}" text-anchor="middle">{mark:g}</text>'
        for mark in (0.8, 1.0, 1.2, 1.4, 1.6, 1.8)
    ]
    for place, (key, _, before, after, side) in enumerate(rows):
        y = 32 + 18 * place
        ends = x(side["ratio_low"]), x(side["ratio_high"])
        parts.append(
            f'<text x="{left - 10}" y="{y + 4}" text-anchor="end">{key}: {before} → {after}</text>'
            f'<path d="M{ends[0]:.1f} {y}H{ends[1]:.1f}" stroke="{LIGHT.accent}" stroke-width="2"/>'
            f'<circle cx="{x(side["ratio"]):.1f}" cy="{y}" r="3.5" fill="{LIGHT.accent}"/>'
        )
    return "\n".join([*parts, "</svg>", ""])


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    document = json.loads(options.file.read_text())
    for lines in (
        by_kind(document),
        step_lines(document),
        rivals(document),
        disagreements(document),
    ):
        print("\n".join([*lines, ""]))
    if options.picture is not None:
        write_atomically(options.picture, picture(document))
    return 0


if __name__ == "__main__":
    sys.exit(main())
