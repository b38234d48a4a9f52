"""What the judges say of small wrong answers, word by word, as it was last looked at.

The cases stand in golden/*.txt: a function, an answer, perhaps edits, and what is said of them.
`python -m tests.verification.test_golden` writes anew what is said; read the difference before you
keep it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from verilocc_bench.analysis import AllocationProblem, parse_register_name
from verilocc_bench.edits import edit_function, parse_edits
from verilocc_bench.edits.findings import Finding
from verilocc_bench.ir import parse_function
from verilocc_bench.verification import FastVerifier
from verilocc_bench.verification.smt import SMTVerifier
from verilocc_bench.verification.symbolic import SymbolicChecker
from verilocc_bench.verification.value_walk import ValueWalk

FILES = sorted(Path(__file__).with_name("golden").glob("*.txt"))
RUNS = 12
ANSWER, EDITS = "answer: ", "edits: "


def say(problem: AllocationProblem, answer: dict[str, str], edits: Any) -> Iterator[str]:
    """All that the judges say of one case, a line each."""
    checker = SymbolicChecker(problem.function)
    if edits is None:
        yield from _findings("fast", FastVerifier(problem).verify(answer).findings)
        yield from _findings("symbolic", checker.check(answer))
        yield from _findings("constraints", SMTVerifier(problem, cores=2).verify(answer).findings)
        yield from _run(problem, answer, None)
    else:
        yield from _findings("symbolic", checker.check(answer, parse_edits(edits)))
        yield from _run(problem, answer, edits)


def _findings(judge: str, findings: Iterable[Finding]) -> Iterator[str]:
    for finding in findings:
        document = finding.to_json()
        yield f"{judge}: {document.pop('message')}"
        yield f"  {json.dumps(document)}"


def _run(problem: AllocationProblem, answer: dict[str, str], edits: Any) -> Iterator[str]:
    """The first difference that some runs show, where there is one to be shown."""
    registers, edited = dict(enumerate(problem.function.virtual_registers)), None
    if edits is not None:
        edited, refused = edit_function(problem.function, problem.target, parse_edits(edits))
        registers = edited.registers
        if refused:
            return
    bases = {}
    for number in registers:
        base = parse_register_name(problem.target, answer.get(f"%{number}", ""))
        if base is None:
            return
        bases[number] = base.file, base.index
    walk = ValueWalk(problem.function, problem.target, bases, edited)
    for seed in range(RUNS):
        toward = seed % (len(problem.function.blocks) + 1) - 1
        difference = walk.run(seed, 40, None if toward < 0 else toward)
        if difference is not None:
            yield f"run {seed}: {difference}"
            yield f"  {json.dumps(difference.to_json())}"
            return


def _case(text: str) -> tuple[str, list[str]]:
    """What is asked, and what is said of it."""
    lines = text.splitlines()
    end = next(n for n, line in enumerate(lines) if line.startswith(ANSWER)) + 1
    asked = end + (end < len(lines) and lines[end].startswith(EDITS))
    function = "\n".join(lines[: end - 1]) + "\n"
    answer = json.loads(lines[end - 1].removeprefix(ANSWER))
    edits = json.loads(lines[end].removeprefix(EDITS)) if asked > end else None
    said = "\n".join(
        say(AllocationProblem(parse_function(function, canonical=False)), answer, edits)
    )
    return "\n".join(lines[:asked]), said.splitlines()


def _cases(file: Path) -> list[str]:
    return file.read_text().rstrip("\n").split("\n\n")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_is_said_is_what_was_said(file: Path) -> None:
    for case in _cases(file):
        asked, said = _case(case)
        assert case.removeprefix(asked + "\n").splitlines() == said


if __name__ == "__main__":
    for each in FILES:
        made = ["\n".join([asked, *said]) for asked, said in map(_case, _cases(each))]
        each.write_text("\n\n".join(made) + "\n")
