"""Verifies a submission again, from its answers alone.

    python -m leaderboard.revalidate FOLDER [--dataset DATASET] [--output DIR] [--jobs N]

The fast check and the independent checker judge every answer, and every figure
is computed anew. Writes revalidation.json, from which the page is made, and
comment.md, the same in words. The exit status is 0 if the submission is
accepted, 1 if it is refused, 2 if it cannot be judged.

A sample of the answers to gfx90a and gfx942 is executed as machine code, by an
interpreter, where llc and the extra `execute` are there. No code of a submission
runs, and files are written in the output folder alone. An interrupted run goes
on with the functions that are not judged yet.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from tqdm import tqdm

from leaderboard.code_sample import count_code
from leaderboard.comment import comment
from leaderboard.document import code_hash, document_text, refused, revalidated
from leaderboard.examining import Answers, examine
from leaderboard.executing import execute_sample
from leaderboard.folder import open_file
from leaderboard.judging import FunctionVerdict, judge_function
from verilocc_bench.dataset import Row
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.code_source import CodeSource
from verilocc_bench.evaluation.fingerprints import fingerprint
from verilocc_bench.evaluation.ledger import checked_line, read_checked
from verilocc_bench.files import write_atomically
from verilocc_bench.processes import process_pool
from verilocc_bench.settings.flags import at_least

REVALIDATION, COMMENT = "revalidation.json", "comment.md"
WORK = ".revalidating"
JUDGED = "judged.jsonl"
EXECUTED = 10
"""How many answers are executed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m leaderboard.revalidate", description=(__doc__ or "").splitlines()[0]
    )
    add = parser.add_argument
    add("folder", type=Path, help="the submission: submission.yaml and answers.jsonl[.gz]")
    add("--dataset", help="a copy of the board's dataset (default: its name on the Hub, or mini)")
    add("--revision", help="a branch, tag or commit of it on the Hub")
    add(
        "--output", type=Path, help="where results go (default: revalidated/ and the folder's name)"
    )
    add("--jobs", type=at_least(int, 1), default=1, help="processes (default: 1)")
    add(
        "--execute",
        type=at_least(int, 0),
        default=EXECUTED,
        metavar="N",
        help=f"answers that are executed as machine code (default: {EXECUTED})",
    )
    add(
        "--execute-seed",
        default="",
        metavar="SEED",
        help="draws other answers to execute (default: none; a review draws one by chance)",
    )
    add(
        "--machine-code",
        type=int,
        default=0,
        metavar="N",
        help="functions whose answers are counted as machine code beside the compiler's "
        "(default: none)",
    )
    options = parser.parse_args(arguments)
    output = options.output or Path("revalidated") / options.folder.resolve().name
    try:
        document = revalidate(
            options.folder,
            output,
            dataset=options.dataset,
            revision=options.revision,
            jobs=options.jobs,
            execute=options.execute,
            execute_seed=options.execute_seed,
            machine_code=options.machine_code,
        )
    except (InputError, OSError) as error:
        print(f"revalidate: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("revalidate: interrupted; the same command goes on", file=sys.stderr)
        return 130
    print((output / COMMENT).read_text("utf-8"), end="")
    return 0 if document["accepted"] else 1


def revalidate(
    folder: Path,
    output: Path,
    *,
    dataset: str | None = None,
    revision: str | None = None,
    jobs: int = 1,
    execute: int = 0,
    execute_seed: str = "",
    machine_code: int = 0,
    own: bool = False,
) -> dict[str, Any]:
    """The verdict on a submission, which is also written to `output`.

    `dataset` is a copy that the reviewer trusts. `execute` answers, drawn by `execute_seed`,
    are executed as machine code, and the answers to `machine_code` functions are counted as such.
    `own` entries alone have the names and the authors of the leaderboard's.
    Raises InputError if the folder is missing, or if the copy has other rows than the
    board.
    """
    if not folder.is_dir():
        raise InputError("expected the folder of a submission", source=folder)
    if output.resolve().is_relative_to(folder.resolve()):
        raise InputError("expected a folder outside of the submission", source=output)
    for name in (COMMENT, REVALIDATION):  # the words of an earlier run are not about this one
        (output / name).unlink(missing_ok=True)
    work = output / WORK
    document = _revalidated(
        folder,
        work,
        dataset,
        revision,
        jobs=jobs,
        execute=execute,
        execute_seed=execute_seed,
        machine_code=machine_code,
        own=own,
    )
    write_atomically(output / COMMENT, comment(document))
    write_atomically(output / REVALIDATION, document_text(document))
    shutil.rmtree(output / WORK, ignore_errors=True)
    return document


def _revalidated(
    folder: Path,
    work: Path,
    dataset: str | None,
    revision: str | None,
    *,
    jobs: int,
    execute: int,
    execute_seed: str,
    machine_code: int,
    own: bool,
) -> dict[str, Any]:
    found = examine(folder, work, dataset, revision, own=own)
    if found.refusals:
        return refused(found.submission, found.board, found.refusals, found.files)
    assert found.submission is not None
    assert found.board is not None
    assert found.answers is not None
    verdicts = _judge(found.answers, found.rows, work / JUDGED, jobs)
    rows = list(found.rows.values())
    examples = list(_examples(found.answers, rows, verdicts))
    executed = counted = None
    copy = found.board.copy_in(dataset)
    if execute:
        executed = execute_sample(
            found.answers,
            found.rows,
            verdicts,
            dataset=copy,
            split=found.board.split,
            revision=revision,
            count=execute,
            seed=execute_seed,
        )
    if machine_code:
        source = CodeSource(copy, (found.board.split,), revision)
        counted = count_code(found.answers, found.rows, verdicts, source, machine_code)
    return revalidated(
        found.submission,
        found.board,
        rows,
        verdicts,
        files=found.files,
        examples=examples,
        executed=executed,
        machine_code=counted,
    )


def _examples(
    answers: Answers, rows: Sequence[Row], verdicts: Mapping[str, FunctionVerdict]
) -> Iterator[dict[str, Any]]:
    """For each task, the measured answer to the smallest function that has a valid answer."""
    smallest: dict[str, Row] = {}
    for row in rows:
        task = f"{row.arch}/{row.family}"
        if row.track == "assign" and verdicts[row.id].outcome is not None:
            known = smallest.get(task, row)
            smallest[task] = min(known, row, key=lambda each: (each.n_instructions, each.id))
    with os.fdopen(open_file(answers.path), "rb") as file:
        for _, row in sorted(smallest.items()):
            outcome = verdicts[row.id].outcome
            assert outcome is not None
            offset, length = answers.lines[row.id].places[outcome.sample]
            file.seek(offset)
            answer = json.loads(file.read(length))["assignment"]
            yield {"id": row.id, "sample": outcome.sample, "assignment": answer}


def _judge(
    answers: Answers, rows: Mapping[str, Row], path: Path, jobs: int
) -> dict[str, FunctionVerdict]:
    """The verdict on every function; verdicts in the file at `path` are read from it."""
    keys = {
        identifier: fingerprint(
            [
                code_hash(),
                row.normalized,
                row.best_assignment,
                row.assignment,
                answers.lines[identifier].digest.hexdigest(),
            ]
        )
        for identifier, row in rows.items()
    }
    found = _read_judged(path, keys)
    todo = [identifier for identifier in rows if identifier not in found]
    # The longest first, so that no process is left with a long one at the end.
    todo.sort(key=lambda each: -rows[each].n_instructions * len(answers.lines[each].places))
    with (
        path.open("ab") as file,
        tqdm(
            total=len(rows), initial=len(found), unit="function", desc="revalidate", disable=None
        ) as bar,
        process_pool(jobs) as executor,
    ):
        futures = {
            executor.submit(
                judge_function, rows[each], answers.path, answers.lines[each].places
            ): each
            for each in todo
        }
        try:
            for future in as_completed(futures):
                verdict = future.result()
                found[verdict.id] = verdict
                file.write(checked_line({"key": keys[verdict.id], **verdict.to_json()}))
                file.flush()
                bar.update()
        except BrokenProcessPool:
            raise InputError(
                "a process that judges answers was killed, by the system's memory limit perhaps: "
                "the same command goes on, with fewer --jobs"
            ) from None
    return found


def _read_judged(path: Path, keys: Mapping[str, str]) -> dict[str, FunctionVerdict]:
    """The verdicts of an earlier run on the same answers by the same code.

    Reports the number of damaged lines; their functions are judged again.
    """
    found: dict[str, FunctionVerdict] = {}
    damaged = 0
    for line in path.read_bytes().split(b"\n") if path.is_file() else ():
        document = read_checked(line)
        if document is None:
            damaged += bool(line)
        elif keys.get(document["id"]) == document["key"]:
            found[document["id"]] = FunctionVerdict.from_json(document)
    if damaged:
        print(f"{path}: damaged lines, which are judged again: {damaged}", file=sys.stderr)
    return found


if __name__ == "__main__":
    sys.exit(main())
