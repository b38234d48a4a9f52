"""What a measurement on a GPU is made of, for the launcher that runs alone and for its readers.

A folder holds `measure.json`, with kernels and the sides of each; running it adds lines of
JSON to `results.jsonl`.
"""

from __future__ import annotations

from typing import Any

FORMAT = "verilocc-bench measurement 2"
DOCUMENT = "measure.json"
RESULTS = "results.jsonl"
OWN, SAME, OTHER, CONTROL = "own", "same", "other", "control"
"""The role of a side: the compiler's own code; expected to leave its bits; other code, which
may round in another order; expected to break."""

Line = dict[str, Any]


def verdict_of(found: Line, own: Line | None) -> str:
    """What a side's result says, beside the result of the compiler's own code."""
    if "failed" in found:
        return str(found["failed"])
    if found.get("idle"):
        return "wrote nothing"
    if found["wrong"]:
        return "wrong numbers"
    if len(set(found["digests"])) > 1:
        return "changing bits"
    if own is None or not own.get("digests"):
        return "nothing to compare with"
    return "same bits" if set(found["digests"]) == set(own["digests"]) else "other bits"


def is_right(found: Line, own: Line, role: str) -> bool:
    """True if a side may be timed: the same bits, or right numbers where bits cannot tell."""
    verdict = verdict_of(found, own)
    if verdict in {"other bits", "changing bits"} and found["errors"]:
        return role in {OWN, OTHER} or len(set(own["digests"])) > 1
    return verdict == "same bits" or (role == OWN and verdict == "changing bits")
