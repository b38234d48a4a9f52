"""The one picture of the study: opcodes, widths, pressures and loops, experts' beside ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from benchmarks.expert_study.facts import KernelFacts
from verilocc_bench.report.marks import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_OPCODES = 14
_REGISTER_BIN = 16
_LONGEST_BARS = 4

Sides = Mapping[str, Sequence[KernelFacts]]
"""The kernels by the name of their side."""


def draw(figure: Figure, sides: Sides) -> None:
    """Draws the four panels; every bar is a share, of instructions, registers or kernels."""
    panels = figure.subplots(2, 2)
    _opcodes(panels[0][0], sides)
    _widths(panels[0][1], sides)
    _pressures(panels[1][0], sides)
    _loops(panels[1][1], sides)
    panels[0][1].legend(loc="upper right", fontsize=8)


def _opcodes(axes: Axes, sides: Sides) -> None:
    counts = {name: _summed(each.opcodes for each in found) for name, found in sides.items()}
    shares = {name: _shares(count) for name, count in counts.items()}
    names = sorted(
        {opcode for share in shares.values() for opcode in share},
        key=lambda opcode: (-max(share.get(opcode, 0) for share in shares.values()), opcode),
    )[:MOST_OPCODES]
    _bars(axes, names, shares)
    axes.tick_params(axis="x", labelrotation=90, labelsize=7)
    axes.set_title("opcodes: share of instructions", loc="left", fontsize=9)


def _widths(axes: Axes, sides: Sides) -> None:
    counts = {name: _summed(each.widths for each in found) for name, found in sides.items()}
    shares = {name: _shares(count) for name, count in counts.items()}
    widths = sorted({width for share in shares.values() for width in share})
    _bars(axes, widths, shares)
    axes.set_title("lanes of a virtual register: share of registers", loc="left", fontsize=9)


def _pressures(axes: Axes, sides: Sides) -> None:
    shares = {
        name: _shares(Counter(each.bound // _REGISTER_BIN for each in found))
        for name, found in sides.items()
    }
    bins = range(max(key for share in shares.values() for key in share) + 1)
    _bars(axes, bins, shares)
    places = [place for place in bins if place % 4 == 0]
    axes.set_xticks(places, [str(place * _REGISTER_BIN) for place in places])
    axes.set_title("lower bound of registers: share of kernels", loc="left", fontsize=9)


def _loops(axes: Axes, sides: Sides) -> None:
    shares = {
        name: _shares(Counter(min(each.loop_depth, _LONGEST_BARS) for each in found))
        for name, found in sides.items()
    }
    _bars(axes, range(_LONGEST_BARS + 1), shares)
    axes.set_title("deepest loop: share of kernels", loc="left", fontsize=9)


def _bars(
    axes: Axes, names: Sequence[object], shares: Mapping[str, Mapping[object, float]]
) -> None:
    width = 0.8 / len(shares)
    for place, (side, share) in enumerate(shares.items()):
        left = [index + place * width - 0.4 + width / 2 for index in range(len(names))]
        heights = [share.get(name, 0.0) for name in names]
        axes.bar(left, heights, width, color=COLOURS[place], label=side)
    axes.set_xticks(range(len(names)), [str(name) for name in names])


def _summed(counts: object) -> Counter[object]:
    total: Counter[object] = Counter()
    for count in counts:  # type: ignore[attr-defined]
        total.update(count)
    return total


def _shares(counts: Mapping[object, int]) -> dict[object, float]:
    total = sum(counts.values())
    return {name: count / total for name, count in counts.items()}
