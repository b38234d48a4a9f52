"""The chosen assignments as machine code: tables and sentences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.allocation_study.tables import markdown

Comparisons = Sequence[Mapping[str, Any]]

_COLUMNS = {
    "registers": "vector_registers",
    "occupancy": "occupancy",
    "conflicts": "bank_conflicts",
    "instructions": "instructions",
    "s_waitcnt": "waits",
    "wait states": "wait_states",
    "bytes": "code_bytes",
    "loop cycles": "loop_cycles",
}


def machine_code_table(comparisons: Comparisons) -> str:
    """The figures of the compiler's code and of the answer's, for gfx90a and gfx942."""
    rows = [
        (
            *_named(each),
            *(
                _change(each["compiler"]["metrics"].get(key), each["answer"]["metrics"].get(key))
                for key in _COLUMNS.values()
            ),
        )
        for each in _amd(comparisons)
    ]
    return markdown(("kernel", "chosen for", *_COLUMNS), rows, 2)


def cubin_table(comparisons: Comparisons) -> str:
    """The same for sm_80, with the hazards of the result by kind."""
    rows = []
    for each in _nvidia(comparisons):
        before, after = each["compiler"]["metrics"], each["answer"]["metrics"]
        keys = ("vector_registers", "occupancy", "bank_conflicts", "identity_copies")
        hazards = Counter(hazard["kind"] for hazard in each["answer"]["hazards"])
        listed = ", ".join(f"{kind} {count}" for kind, count in sorted(hazards.items()))
        changed = f"{after['changed_instructions']} of {after['instructions']}"
        runnable = "yes" if after["runnable"] else "no"
        changes = (_change(before[key], after[key]) for key in keys)
        rows.append((*_named(each), *changes, changed, listed or "none", runnable))
    headers = ("registers", "occupancy", "conflicts", "identity copies", "changed instructions")
    return markdown(("kernel", "chosen for", *headers, "hazards", "runnable"), rows, 2)


def disagreements(comparisons: Comparisons) -> list[str]:
    """Kernels where counts and estimate disagree in the comparison: a sentence for each."""
    found = []
    for each in _amd(comparisons):
        said = [word for word in each["words"] if "llvm-mca" in word and "cycles" in word]
        if said:
            found.append(f"`{each['id'][:8]}` ({each['arch']}): {_joined(said)}.")
    return found


def _joined(words: Sequence[str]) -> str:
    """Words of the comparison; what llvm-mca says of several counts is said once."""
    counts: dict[str, list[str]] = {}
    for word in words:
        for joint in (", but ", ", and "):
            count, found, estimate = word.partition(joint)
            if found:
                counts.setdefault(joint + estimate.partition(";")[0], []).append(count)
                break
    return "; ".join(", ".join(listed) + estimate for estimate, listed in counts.items())


def versions(comparisons: Comparisons) -> str:
    """The versions of the tools, each once."""
    found = {f"{name} {v}" for each in comparisons for name, v in each["versions"].items()}
    return ", ".join(sorted(found))


def reasons(comparisons: Comparisons) -> list[str]:
    """The reasons why results cannot be run, each once and without numbers."""
    found = {reason for each in _nvidia(comparisons) for reason in each["answer"]["reasons"]}
    return sorted({re.sub(r"^\d+ (hazard|pair)s?", r"\1s", reason) for reason in found})


def _amd(comparisons: Comparisons) -> list[Mapping[str, Any]]:
    return [each for each in comparisons if each["arch"] != "sm_80"]


def _nvidia(comparisons: Comparisons) -> list[Mapping[str, Any]]:
    return [each for each in comparisons if each["arch"] == "sm_80"]


def _named(each: Mapping[str, Any]) -> tuple[str, str]:
    return f"`{each['id'][:8]}` {each['arch']} {each['family']}", each["measure"]


def _change(before: float | None, after: float | None) -> str:
    if before is None or after is None:
        return "–"
    if before == after:
        return _number(after)
    return f"{_number(before)} → {_number(after)}"


def _number(value: float) -> str:
    return f"{value:,.1f}" if value % 1 else f"{value:,.0f}"
