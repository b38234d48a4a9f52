"""The entries that the page shows, and their figures for every choice of kernels."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from leaderboard.document import FORMAT, KS
from leaderboard.document_schema import document_schema
from leaderboard.measured import read_figure
from leaderboard.packing import ROOT, path_of
from leaderboard.submission import OWN
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.metrics import (
    bootstrap_interval,
    geometric_mean,
    mean,
    pass_at_k,
    share_interval,
)
from verilocc_bench.evaluation.schema import check_schema
from verilocc_bench.evaluation.score import bound_of, kernel_score
from verilocc_bench.evaluation.summary import SIZES
from verilocc_bench.files import read_json

ALL = "all"

KernelRecord = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Scope:
    """A choice of kernels; ALL leaves a question open."""

    architecture: str = ALL
    family: str = ALL
    size: str = ALL

    @property
    def key(self) -> str:
        """The name of the choice in the page's script."""
        return f"{self.architecture}|{self.family}|{self.size}"

    def has(self, kernel: KernelRecord) -> bool:
        """True if the choice contains a kernel."""
        architecture, family = kernel["task"].split("/")
        return (
            self.architecture in (ALL, architecture)
            and self.family in (ALL, family)
            and self.size in (ALL, size_of(kernel))
        )


@dataclass(frozen=True, slots=True)
class EntryFigures:
    """Figures over some kernels; None if a figure cannot be computed.

    `passed` has (k, share, low, high). `valid` counts kernels with a valid
    answer; the other figures are over these. `registers` is the geometric mean
    of vector registers over the label's, `conflicts` is bank conflicts over the
    label's, `above_bound` is registers above the lower bound, `gained` and
    `lost` count kernels with another occupancy, `spill_cost` and `move_cost`
    are means on the split track. `score` has the mean score and its interval.
    """

    kernels: int
    valid: int
    passed: tuple[tuple[int, float, float | None, float | None], ...]
    registers: float | None
    conflicts: float | None
    above_bound: float | None
    gained: int | None
    lost: int | None
    spill_cost: float | None
    move_cost: float | None
    score: tuple[float, float | None, float | None] | None = None


def size_of(kernel: KernelRecord) -> str:
    """The size group of a kernel, by its number of virtual registers."""
    below = 1
    for size in SIZES:
        if kernel["n_virtual_registers"] < size:
            return f"{below}–{size - 1}"
        below = size
    return f"{below} and more"


@dataclass(frozen=True)
class BoardEntry:
    """One revalidated submission."""

    document: Mapping[str, Any]

    @property
    def submission(self) -> Mapping[str, Any]:
        """The submission's description of itself."""
        found: Mapping[str, Any] = self.document["submission"]
        return found

    @property
    def board(self) -> str:
        """The name of its board."""
        return str(self.document["board"]["name"])

    @property
    def hash(self) -> str:
        """The frozen revision of its board."""
        return str(self.document["board"]["hash"])

    @cached_property
    def path(self) -> str:
        """The path of its page, from the root of the site."""
        place = path_of(self.submission["name"], self.board).removeprefix(f"{ROOT}/")
        return f"entries/{place}.html"

    @property
    def kernels(self) -> Sequence[KernelRecord]:
        """Its kernels."""
        found: Sequence[KernelRecord] = self.document["kernels"]
        return found

    @property
    def kind(self) -> tuple[str, str]:
        """Assistance and decoding: only entries that agree in both are compared."""
        return self.submission["assistance"], self.submission["decoding"]

    def figures(self, scope: Scope, count: int) -> EntryFigures | None:
        """Its figures for the `count` kernels of a scope; None if some are not answered."""
        kernels = [kernel for kernel in self.kernels if scope.has(kernel)]
        if not kernels or len(kernels) < count:
            return None
        passed = []
        for k in KS:
            shares = [pass_at_k(each["samples"], each["valid"], k) for each in kernels]
            known = [share for share in shares if share is not None]
            share = mean(known)
            if share is not None and len(known) == len(shares):
                passed.append((k, share, *share_interval(known)))
        valid = [each for each in kernels if each["registers"] is not None]
        pairs = [(each["registers"], each["label_registers"]) for each in valid]
        conflicts = [
            (each["bank_conflicts"], each["label_bank_conflicts"])
            for each in valid
            if each["label_bank_conflicts"] is not None
        ]
        theirs = sum(label for _, label in conflicts)
        waves = [
            each["occupancy"] - each["label_occupancy"]
            for each in valid
            if each["label_occupancy"] is not None
        ]
        # With spills an answer may use fewer registers than were live at once.
        gaps = [
            float(each["registers"] - bound_of(each)) for each in (() if self.is_split else valid)
        ]
        costs = [
            mean([float(each[name]) for each in valid]) if self.is_split else None
            for name in ("spill_cost", "move_cost")
        ]
        return EntryFigures(
            len(kernels),
            len(valid),
            tuple(passed),
            geometric_mean([own / label for own, label in pairs if own and label]),
            sum(own for own, _ in conflicts) / theirs if theirs else None,
            mean(gaps),
            sum(each > 0 for each in waves) if waves else None,
            sum(each < 0 for each in waves) if waves else None,
            costs[0],
            costs[1],
            None if self.is_split else _score(kernels),
        )

    @property
    def tokens(self) -> str:
        """The tokens of the whole run and their cost, as its authors state them."""
        told = [
            f"{self.submission[key]:,} tokens {where}"
            for key, where in (("prompt_tokens", "in"), ("completion_tokens", "out"))
            if key in self.submission
        ]
        if "cost" in self.submission:
            told.append(f"cost {self.submission['cost']:,.4g}")
        return ", ".join(told)

    @property
    def is_base_line(self) -> bool:
        """True for the leaderboard's own entries, which are there to be compared with."""
        return list(self.submission["authors"]) == [OWN]

    @property
    def date(self) -> str | None:
        """The day of its run, if it is stated."""
        found: str | None = self.submission.get("date")
        return found

    @property
    def executed(self) -> tuple[int, int] | None:
        """(answers with the right numbers, answers that ran as machine code); None if none ran."""
        found = self.document.get("executed") or {}
        count = int(found.get("executed", 0))
        return (count - len(found["wrong"]), count) if count else None

    @property
    def machine_code(self) -> dict[str, Any] | None:
        """Its sample of machine code, counted; None if no answer of it was."""
        found: dict[str, Any] = self.document.get("machine_code") or {}
        return found if found and found["record"]["kernels"] else None

    @property
    def measured(self) -> Sequence[Mapping[str, Any]]:
        """What the submitter measured, and nobody has verified."""
        found: Sequence[Mapping[str, Any]] = self.submission.get("measured") or ()
        return found

    @property
    def is_split(self) -> bool:
        """True if its answers may have edits."""
        return bool(self.document["board"]["track"] == "split")


def _score(kernels: Sequence[KernelRecord]) -> tuple[float, float | None, float | None]:
    scores = [kernel_score(kernel) or 0.0 for kernel in kernels]
    return math.fsum(scores) / len(scores), *bootstrap_interval(scores, 0)


def scopes(entries: Sequence[BoardEntry], functions: int) -> list[tuple[Scope, int]]:
    """Every choice that leaves some kernels of these entries, with their number; all come first.

    `functions` is the number of functions on the board. Entries answer whole
    architectures: if no entry answers an architecture, no entry answers all.
    """
    kernels = {kernel["id"]: kernel for entry in entries for kernel in entry.kernels}.values()
    tasks = {kernel["task"] for kernel in kernels}
    architectures = sorted({task.split("/")[0] for task in tasks})
    families = sorted({task.split("/")[1] for task in tasks})
    sizes = sorted({size_of(kernel) for kernel in kernels}, key=_lower_end)
    found = []
    for choice in product((ALL, *architectures), (ALL, *families), (ALL, *sizes)):
        scope = Scope(*choice)
        count = sum(scope.has(kernel) for kernel in kernels)
        if scope.architecture == ALL and len(kernels) < functions:
            count = functions
        if count:
            found.append((scope, count))
    return found


def _lower_end(size: str) -> int:
    found = re.match(r"\d+", size)
    assert found is not None
    return int(found[0])


def read_entries(folder: Path) -> list[BoardEntry]:
    """The accepted entries in a folder and its subfolders, by board and name.

    Raises InputError for a file that is not a document of revalidation, and for
    two entries with one name.
    """
    found: dict[str, BoardEntry] = {}
    for path in sorted(folder.rglob("*.json")):
        document = read_json(path)
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise InputError("expected a document of leaderboard.revalidate", source=path)
        if not document.get("accepted"):
            continue
        check_schema(document, document_schema, path)
        for figure in document["submission"].get("measured", ()):
            if isinstance(wrong := read_figure(figure), str):
                raise InputError(f"at /submission/measured: {wrong}", source=path)
        entry = BoardEntry(document)
        if entry.path in found:
            raise InputError(f"a second entry named {entry.submission['name']!r}", source=path)
        found[entry.path] = entry
    return [found[path] for path in sorted(found)]
