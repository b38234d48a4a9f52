"""The state of a run over the small scope, and its file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from verilocc_bench.errors import InputError
from verilocc_bench.files import read_json, write_atomically
from verilocc_bench.selftest.small_scope.small_scope_judging import JudgingOutcome

FORMAT = "verilocc-bench small scope 1"


@dataclass(frozen=True, slots=True)
class EnumerationState:
    """The outcome of the first `done` parts, by family; `seconds` of processor time."""

    done: int = 0
    seconds: float = 0.0
    families: Mapping[str, JudgingOutcome] = field(default_factory=dict)

    def plus(self, family: str, outcome: JudgingOutcome, seconds: float) -> EnumerationState:
        """The state with one more part."""
        families = self.families
        if outcome.counts:
            before = self.families.get(family, JudgingOutcome())
            families = {**self.families, family: before + outcome}
        return EnumerationState(self.done + 1, self.seconds + seconds, families)

    @property
    def total(self) -> JudgingOutcome:
        """The outcome of all families together."""
        total = JudgingOutcome()
        for outcome in self.families.values():
            total += outcome
        return total


def read_state(path: Path, scope: str) -> EnumerationState:
    """The state in a file. Raises InputError for another scope or a file without a state."""
    document = read_json(path)
    try:
        if document["format"] != FORMAT:
            raise ValueError
        if document["scope"] != scope:
            raise InputError(
                "the state of another scope, of other options, or of another version: "
                "name another file, or remove this one",
                source=path,
            )
        families = {
            str(name): JudgingOutcome(
                counts=_counter(each["counts"]),
                accepted=_counter(each["accepted"]),
                disagreements=_counter(each["disagreements"]),
                questions={str(question) for question in each["questions"]},
                told=[(str(kind), str(text)) for kind, text in each["told"]],
            )
            for name, each in document["families"].items()
        }
        return EnumerationState(int(document["done"]), float(document["seconds"]), families)
    except (AttributeError, KeyError, TypeError, ValueError):
        message = "expected what selftest --small-scope --resume has written"
        raise InputError(message, source=path) from None


def write_state(path: Path, scope: str, state: EnumerationState) -> None:
    """Replaces the file as a whole."""
    families = {
        name: {
            "counts": dict(sorted(outcome.counts.items())),
            "accepted": dict(sorted(outcome.accepted.items())),
            "disagreements": dict(sorted(outcome.disagreements.items())),
            "questions": sorted(outcome.questions),
            "told": outcome.told,
        }
        for name, outcome in state.families.items()
    }
    document = {
        "format": FORMAT,
        "scope": scope,
        "done": state.done,
        "seconds": state.seconds,
        "families": families,
    }
    write_atomically(path, json.dumps(document, indent=1) + "\n")


def _counter(document: Any) -> Counter[str]:
    return Counter({str(name): int(count) for name, count in document.items()})
