"""The document of `verilocc-bench compare` as a table for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tabulate import tabulate


def comparison_text(document: Mapping[str, Any]) -> str:
    """The document for people: numbers side by side, loops, and what to make of them."""
    sides = [document[side] for side in ("answer", "other")]
    names = [side["name"] for side in sides]
    lines = [f"{document['function']} {document['id']} on {document['arch']}", ""]
    numbers = [
        (name, *map(_shown, (here, there)), _difference(here, there))
        for name, here in sides[0]["metrics"].items()
        for there in (sides[1]["metrics"][name],)
    ]
    lines.append(_table(numbers, ("", *names, "difference")))
    loops = [
        (loop["label"], side["name"], loop["instructions"], *map(_shown, figures))
        for side in sides
        for loop in side.get("loops", ())
        for figures in ((loop["cycles"], loop["throughput"]),)
    ]
    kinds = _kinds(sides)
    if loops:
        lines += ["", _table(loops, ("innermost loop", "", "instructions", "cycles", "throughput"))]
    if kinds:
        lines += ["", _table(kinds, ("instructions", *names, "difference"))]
    if "executed" in document:
        both = [document["executed"][side] for side in ("answer", "other")]
        executed: list[tuple[object, ...]] = [
            (kind, _shown(here), _shown(there), _difference(here, there))
            for kind in sorted({*both[0], *both[1]})
            for here, there in ((both[0].get(kind, 0), both[1].get(kind, 0)),)
        ]
        lines += ["", _table(executed, ("executed by all waves", *names, "difference"))]
    if "measured" in document:
        lines += ["", _measured(document["measured"])]
    lines += ["", *document["words"]]
    versions = ", ".join(f"{name} {version}" for name, version in document["versions"].items())
    lines.append(f"by {versions}")
    return "\n".join(lines)


def _measured(measured: Mapping[str, Any]) -> str:
    medians = measured["median_milliseconds"]
    return (
        f"measured on {measured['device']}, not verified: {medians['answer']:.6f} ms for "
        f"{medians['other']:.6f} ms, ratio {measured['ratio']:.4f} "
        f"[{measured['ratio_low']:.4f}, {measured['ratio_high']:.4f}]"
    )


def _kinds(sides: list[dict[str, Any]]) -> list[tuple[object, ...]]:
    counts = [side["code"]["kinds"] if "code" in side else {} for side in sides]
    names = dict.fromkeys([*counts[0], *counts[1]])
    return [
        (name, *map(str, each), _difference(*each))
        for name in names
        for each in ((counts[0].get(name, 0), counts[1].get(name, 0)),)
    ]


def _table(rows: list[tuple[object, ...]], headers: tuple[str, ...]) -> str:
    align = ["left", *["right"] * (len(headers) - 1)]
    return tabulate(rows, headers, disable_numparse=True, colalign=align)


def _shown(value: object, sign: str = "") -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return format(value, f"{sign},.2f" if isinstance(value, float) else f"{sign},")


def _difference(here: float | None, there: float | None) -> str:
    if here is None or there is None or isinstance(here, bool):
        return ""
    change = here - there
    if not change:
        return "0"
    share = f" ({100 * change / there:+.1f} %)" if there else ""
    return _shown(change, "+") + share
