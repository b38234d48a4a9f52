"""Judges one function of a submission: two checkers judge every sample, and it is measured.

This runs in a process of its own and reads the lines alone. Its result is
plain JSON, so that it can be kept and read again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from leaderboard.folder import open_file
from verilocc_bench.allocators import FailureKind, Response
from verilocc_bench.dataset import Row
from verilocc_bench.edits import Answer
from verilocc_bench.edits.answer_files import answer_to_json
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation import PredictedFailure, parse_prediction
from verilocc_bench.evaluation.judging import judge
from verilocc_bench.evaluation.outcome import measure_outcome
from verilocc_bench.evaluation.prepared import PreparedRow
from verilocc_bench.evaluation.records import Outcome, RowResult, Sample
from verilocc_bench.settings.judges import FAST, INDEPENDENT
from verilocc_bench.verification.judges import Opinion, Word

NEARLY_ALL = 0.95
"""The share of equal registers from which on an answer counts as a copy of a label."""

EITHER = "either"
"""The name for the sum of samples that copy one label or the other."""

EDITS_AN_INSTRUCTION = 2
"""The most edits for each instruction: checking takes time. Spilling all of `mini` needs 0.35."""


@dataclass(frozen=True, slots=True)
class FunctionVerdict:
    """The verdict on the samples of one function.

    `outcome` is the quality of the middle one of the valid samples, sorted by
    the cost of edits, registers, then bank conflicts: the order of samples
    decides nothing. `distinct` counts different answers, `repeated` counts the
    most frequent one, `labels` counts samples that copy a compiler's label, the
    dataset's best answer, or EITHER. `label_conflicts` are the bank conflicts
    of the compiler's label. `disagreements` counts samples on which the two
    checkers disagree.
    """

    id: str
    samples: tuple[Sample, ...]
    outcome: Outcome | None
    distinct: int
    repeated: int
    labels: Mapping[str, int]
    label_conflicts: int | None
    disagreements: int

    def to_json(self) -> dict[str, Any]:
        """All fields by name."""
        return asdict(self) | {"samples": [sample.to_json() for sample in self.samples]}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> FunctionVerdict:
        """The inverse of to_json. Raises KeyError, TypeError or ValueError for another form."""
        outcome, conflicts = document["outcome"], document["label_conflicts"]
        return cls(
            str(document["id"]),
            tuple(map(Sample.from_json, document["samples"])),
            None if outcome is None else Outcome.from_json(outcome),
            int(document["distinct"]),
            int(document["repeated"]),
            {str(key): int(value) for key, value in document["labels"].items()},
            None if conflicts is None else int(conflicts),
            int(document["disagreements"]),
        )

    def row_result(self, row: Row, split: str) -> RowResult:
        """The same as `evaluate` records it."""
        return RowResult(row, split, self.samples, self.outcome)


@dataclass(slots=True)
class _Known:
    """What is kept of a judged answer: it may come again, but is long."""

    sample: Sample
    outcome: Outcome | None
    agreed: bool
    copies: tuple[str, ...]
    count: int = 0


def judge_function(row: Row, path: Path, places: Sequence[tuple[int, int]]) -> FunctionVerdict:
    """The verdict on the samples of a function; `places` are its lines in the file."""
    prepared = PreparedRow(row)
    known: dict[str, _Known] = {}
    order: list[_Known] = []
    with os.fdopen(open_file(path), "rb") as file:
        for offset, length in places:
            file.seek(offset)
            found = _sample(prepared, file.read(length), path, known)
            found.count += 1
            order.append(found)
    copies: Counter[str] = Counter()
    for each in known.values():
        for name in each.copies:
            copies[name] += each.count
        copies[EITHER] += each.count if each.copies else 0
    return FunctionVerdict(
        row.id,
        tuple(replace(each.sample, index=index) for index, each in enumerate(order)),
        _middle(order),
        len(known),
        max(each.count for each in known.values()),
        dict(copies),
        _label_conflicts(prepared),
        sum(each.count for each in known.values() if not each.agreed),
    )


def _sample(prepared: PreparedRow, line: bytes, path: Path, known: dict[str, _Known]) -> _Known:
    """The verdict on a line, or the earlier one on the same answer."""
    identifier, said = _read(line, path)
    # The line has a second "id", or one that a search does not find.
    if identifier != prepared.row.id:
        message = "the line has another id than it begins with"
        said = PredictedFailure(FailureKind.UNPARSABLE, message)
    if isinstance(said, Answer) and said.has_edits:
        count = sum(len(insertion.transfers) for insertion in said.edits.insertions)
        limit = EDITS_AN_INSTRUCTION * prepared.row.n_instructions
        if count > limit:
            message = f"{count:,} edits, more than the {limit:,} that are judged"
            said = PredictedFailure(FailureKind.UNPARSABLE, message)
    if isinstance(said, PredictedFailure):
        key = f"{said.kind}: {said.message}"
        response = Response(None, said.kind, said.message)
    else:
        text = json.dumps(answer_to_json("", said), sort_keys=True)
        key, response = hashlib.sha256(text.encode()).hexdigest(), Response(said)
    if key not in known:
        known[key] = _judged(prepared, response)
    return known[key]


def _read(line: bytes, path: Path) -> tuple[str, Answer | PredictedFailure]:
    try:
        text = line.decode()
    except UnicodeDecodeError:
        identifier, _ = parse_prediction(line.decode(errors="replace"), path)
        return identifier, PredictedFailure(FailureKind.UNPARSABLE, "expected UTF-8 text")
    return parse_prediction(text, path)


def _judged(prepared: PreparedRow, response: Response) -> _Known:
    """A sample with its quality, and true if the independent checker agrees."""
    judged = judge(prepared.verifier, response, 0)
    sample = replace(judged.sample, verify_seconds=0.0)
    answer, verdict = judged.answer, judged.verdict
    if answer is None or verdict is None:
        return _Known(sample, None, True, ())
    agreed = True
    if not answer.has_edits:  # the independent checker alone judges edits
        first = Word(FAST, verdict)
        try:
            second = prepared.judges.word(INDEPENDENT, answer)
        except InputError:  # beyond the bounds of the independent checker alone
            agreed = False
        else:
            agreed = not Opinion((first, second)).disagreements()
    outcome = measure_outcome(prepared, answer, verdict, 0) if verdict.valid else None
    labels = {"compiler": prepared.row.label, "best": prepared.row.best_label}
    copies = [name for name, label in labels.items() if _is_copy(answer, label)]
    return _Known(sample, outcome, agreed, tuple(copies))


def _is_copy(answer: Answer, label: Mapping[str, str] | None) -> bool:
    """True if nearly all virtual registers have the register that they have in a label.

    Whatever its name: a copy with renamed registers is one. Where few share a register, the
    names decide, as whoever shares none has the same groups.
    """
    if label is None or answer.has_edits:
        return False
    if 2 * len(set(label.values())) > len(label):
        same = sum(answer.assignment.get(name) == base for name, base in label.items())
        return same >= NEARLY_ALL * len(label)
    together = Counter((answer.assignment.get(name), base) for name, base in label.items())
    for place in (0, 1):
        most: dict[str | None, int] = {}
        for pair, count in together.items():
            most[pair[place]] = max(count, most.get(pair[place], 0))
        if sum(most.values()) < NEARLY_ALL * len(label):
            return False
    return True


def _label_conflicts(prepared: PreparedRow) -> int | None:
    label, verdict = prepared.row.label, prepared.label
    if label is None or verdict is None:
        return None
    return measure_outcome(prepared, Answer(label), verdict, 0).bank_conflicts.any


def _middle(samples: Sequence[_Known]) -> Outcome | None:
    """The quality of the middle one of the valid samples; of two middle ones the worse."""
    found = [
        (_quality(each.outcome), index)
        for index, each in enumerate(samples)
        if each.outcome is not None
    ]
    if not found:
        return None
    index = sorted(found)[len(found) // 2][1]
    outcome = samples[index].outcome
    assert outcome is not None
    return replace(outcome, sample=index)


def _quality(outcome: Outcome) -> tuple[Any, ...]:
    """The key that sorts the samples of a kernel, the best first.

    Spill cost comes first, then move cost, registers and bank conflicts. All
    other figures follow: they break ties, so that the order in which samples
    were submitted never decides which of them is shown.
    """
    costs = (outcome.spill_cost or 0, outcome.move_cost or 0)
    rest = json.dumps(asdict(outcome))
    return (*costs, outcome.registers, outcome.bank_conflicts.any, rest)
