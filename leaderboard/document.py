"""The verdict on a submission as one JSON document, from which the page is made."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from leaderboard.boards import Board
from leaderboard.code_sample import CodeSample
from leaderboard.executing import ExecutedSample
from leaderboard.judging import EITHER, FunctionVerdict
from leaderboard.submission import Refusal, Submission
from verilocc_bench.dataset import Row
from verilocc_bench.evaluation.fingerprints import code_fingerprint
from verilocc_bench.evaluation.results import versions
from verilocc_bench.evaluation.summary import kernel_record, summarise_by_group, summarise_by_task

FORMAT = 1
KS = (1, 10, 100)
REPEATED = 0.9
"""The share of one answer among a function's samples from which on they count as repeated."""

TOLERANCE = 0.0005
"""Claims are compared to three digits."""

RevalidationDocument = dict[str, Any]


def refused(
    submission: Submission | None, board: Board | None, refusals: Sequence[Refusal], files: Any
) -> RevalidationDocument:
    """The document of a refused submission."""
    return _document(submission, board, files) | {
        "accepted": False,
        "refusals": [asdict(refusal) for refusal in refusals],
    }


def revalidated(
    submission: Submission,
    board: Board,
    rows: Sequence[Row],
    verdicts: Mapping[str, FunctionVerdict],
    *,
    files: Mapping[str, str],
    examples: Sequence[RevalidationDocument] = (),
    executed: ExecutedSample | None = None,
    machine_code: CodeSample | None = None,
) -> RevalidationDocument:
    """The document of a submission whose answers were all judged.

    `examples` are answers for pictures: id, sample and assignment. `executed` is
    None where no answer was to be executed, and so is `machine_code` where none was counted.
    """
    found = [verdicts[row.id].row_result(row, board.split) for row in rows]
    ks = tuple(k for k in KS if k <= submission.samples)
    how: dict[str, Any] = {
        "assistance": submission.assistance,
        "decoding": submission.decoding,
        "track": board.track,
        "ks": ks,
    }
    results = summarise_by_task(found, **how)
    judged = [verdicts[row.id] for row in rows]
    refusals = [asdict(each) for each in _disagreements(judged, executed)]
    claims = _compare(submission, results)
    return _document(submission, board, files) | {
        "accepted": not refusals,
        "refusals": refusals,
        "marks": list(_marks(submission, judged, claims)),
        "answered": len(found),
        "results": results,
        "groups": summarise_by_group(found, **how),
        "kernels": [
            kernel_record(result, guided=False)
            | {"label_bank_conflicts": verdicts[result.row.id].label_conflicts}
            for result in found
        ],
        "answers": {
            "samples": sum(len(verdict.samples) for verdict in judged),
            "distinct": sum(verdict.distinct for verdict in judged),
            "compiler": sum(verdict.labels.get("compiler", 0) for verdict in judged),
            "best": sum(verdict.labels.get("best", 0) for verdict in judged),
        },
        "claims": claims,
        "examples": list(examples),
        "executed": {} if executed is None else executed.to_json(),
        "machine_code": {} if machine_code is None else asdict(machine_code),
    }


def _disagreements(
    judged: Sequence[FunctionVerdict], executed: ExecutedSample | None
) -> Iterator[Refusal]:
    """Refusals for which the submission is not to blame: judges contradict each other."""
    count = sum(verdict.disagreements for verdict in judged)
    if count:
        message = (
            f"the two checkers disagree about {count} samples; this is not the submission's "
            "fault, and must be looked into before it counts"
        )
        yield Refusal("checkers-disagree", message, "answers")
    if executed is not None and executed.wrong:
        message = (
            f"{len(executed.wrong)} of {executed.executed} executed answers give other numbers, "
            f"the first to {executed.wrong[0]}, though both checkers accept them; this must be "
            "looked into before the submission counts"
        )
        yield Refusal("execution-disagrees", message, "answers")


def _document(
    submission: Submission | None, board: Board | None, files: Any
) -> RevalidationDocument:
    return {
        "format": FORMAT,
        "accepted": False,
        "refusals": [],
        "marks": [],
        "submission": None if submission is None else submission.to_json(),
        "board": None
        if board is None
        else {
            "name": board.name,
            "dataset": board.dataset,
            "track": board.track,
            "split": board.split,
            "hash": board.hash,
            "functions": board.functions,
            **({} if board.limit is None else {"limit": board.limit}),
        },
        "files": dict(files),
        "versions": versions(language_model=False),
        "checkers": code_hash(),
        "answered": 0,
        "results": {},
        "groups": {},
        "kernels": [],
        "answers": {},
        "claims": [],
        "examples": [],
        "executed": {},
        "machine_code": {},
    }


def _compare(submission: Submission, results: Mapping[str, Any]) -> list[RevalidationDocument]:
    """Each claim beside the figure that was found; `found` is None without such a figure."""
    compared = []
    for task, figures in submission.claims.items():
        for figure, claimed in figures.items():
            found = results.get(task, {}).get(figure)
            same = found is not None and abs(found - claimed) <= TOLERANCE
            compared.append(
                {"task": task, "figure": figure, "claimed": claimed, "found": found, "same": same}
            )
    return compared


def _marks(
    submission: Submission,
    judged: Sequence[FunctionVerdict],
    claims: Sequence[RevalidationDocument],
) -> Any:
    """Remarks for readers of the answers; no remark makes an answer worse."""
    total = sum(len(verdict.samples) for verdict in judged)
    marked = False
    for name, words in (
        ("compiler", "the compiler's own assignment, or nearly so"),
        ("best", "the best assignment that the dataset has, or nearly so"),
        (EITHER, "the compiler's own assignment or the best that the dataset has, or nearly so"),
    ):
        copies = sum(verdict.labels.get(name, 0) for verdict in judged)
        if 2 * copies >= total and not (marked and name == EITHER):
            marked = True
            message = f"{copies:,} of {total:,} answers are {words}"
            yield {"kind": f"{name}-label", "message": message}
    if submission.samples > 1:
        same = sum(verdict.repeated >= REPEATED * submission.samples for verdict in judged)
        if 2 * same >= len(judged):
            message = (
                f"nearly all of the {submission.samples} samples are the same for {same:,} of "
                f"{len(judged):,} kernels"
            )
            yield {"kind": "repeated-samples", "message": message}
    differ = [claim for claim in claims if not claim["same"]]
    if differ:
        message = f"{len(differ)} of {len(claims)} claims are not what was found"
        yield {"kind": "claims-differ", "message": message}


@cache
def code_hash() -> str:
    """A hash of all code that judges: the package's, and the leaderboard's own."""
    digest = hashlib.sha256(code_fingerprint().encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def document_text(document: Mapping[str, Any]) -> str:
    """The text of the document's file: one line for each kernel, task, claim and so on."""
    fields = ",\n".join(f" {json.dumps(key)}: {_lines(value)}" for key, value in document.items())
    return f"{{\n{fields}\n}}\n"


def _lines(value: Any) -> str:
    """A value as JSON; a value with parts has one line for each part."""
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(f"  {_json(each)}" for each in value) + "\n ]"
    if isinstance(value, Mapping) and value:
        parts = ",\n".join(f"  {_json(key)}: {_json(each)}" for key, each in value.items())
        return f"{{\n{parts}\n }}"
    return _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, allow_nan=False)
