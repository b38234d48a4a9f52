"""`verilocc-bench verify`."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.analysis.lower_bounds import lower_bound
from verilocc_bench.api.answers import answer_of_file
from verilocc_bench.api.problems import Problem
from verilocc_bench.api.working import FINDINGS, opinion
from verilocc_bench.cli.instance import load_instance
from verilocc_bench.edits import Answer
from verilocc_bench.errors import InputError
from verilocc_bench.settings.judges import MACHINE_CODE
from verilocc_bench.verification import Verdict, Verifier
from verilocc_bench.verification.judges import Word

LINE_LENGTH = 500
"""How many characters of an instruction are shown; instructions of kernels are shorter."""

_BLOCK_HEAD = re.compile(r"bb\d")


def run(options: argparse.Namespace) -> int:
    """Prints the verdict; the status is 0 for a valid answer, 1 for a wrong one."""
    if options.tiles is not None and options.judge != MACHINE_CODE:
        raise InputError(f"--tiles is for --judge {MACHINE_CODE}")
    problem = load_instance(options)
    answer = answer_of_file(problem, options.answer)
    if options.judge == MACHINE_CODE:
        return _execute(problem, answer, options)
    if options.judge is not None:
        words = opinion(problem, answer, options.judge).words
        for word in words:
            if not word.asked:
                print(f"verilocc-bench verify: {word.judge} {word.note}", file=sys.stderr)
        _print_words(problem, words, edited=answer.has_edits, as_json=options.json)
        return 0 if all(word.accepts for word in words if word.asked) else 1
    verdict = Verifier(problem).verify(answer, FINDINGS)
    if options.json:
        print(json.dumps(verdict.to_json(), indent=2))
    else:
        _print_verdict(problem, verdict, edited=answer.has_edits)
    return 0 if verdict.valid else 1


def _execute(problem: Problem, answer: Answer, options: argparse.Namespace) -> int:
    """Runs the answer's machine code; the status is 1 where another result comes out."""
    from verilocc_bench.cli.run_command import execution_word, executor_for, lines_of

    done = executor_for(problem, options).execute(answer)
    if options.json:
        document = {"id": problem.id, "judges": [execution_word(done)]}
        print(json.dumps(document, indent=2))
    else:
        print("\n".join(f"{MACHINE_CODE}: {line}" for line in lines_of(done)))
    return 0 if done.accepted else 1


def _print_words(
    problem: AllocationProblem, words: Sequence[Word], *, edited: bool, as_json: bool
) -> None:
    if as_json:
        document = {"id": problem.id, "judges": [word.to_json() for word in words]}
        print(json.dumps(document, indent=2))
        return
    for word in words:
        print(f"{word.judge}: ", end="")
        if word.verdict is None:
            print(word if word.asked else "not asked")
        else:
            _print_verdict(problem, word.verdict, edited=edited)


def _print_verdict(problem: AllocationProblem, verdict: Verdict, *, edited: bool) -> None:
    if not verdict.valid:
        _print_findings(problem, verdict)
        return
    print(words_of_valid(problem, verdict, edited=edited))


def words_of_valid(problem: AllocationProblem, verdict: Verdict, *, edited: bool) -> str:
    """What a valid answer uses, on one line."""
    if verdict.registers_used is None or verdict.occupancy is None:
        return "valid"
    files = ", ".join(f"{k} {v}" for k, v in verdict.registers_used.items() if k != "vector")
    bound = lower_bound(problem, solver=False).value
    # Spills take values out of registers: they may go below the bound of the function itself.
    needs = "without edits it needs" if edited else "it needs"
    return (
        f"valid{' with edits' if edited else ''}: {verdict.registers_used[VECTOR]} vector "
        f"registers ({files}), {problem.target.counted_occupancy(verdict.occupancy)}; "
        f"{needs} at least {bound} (`bound` may prove more)"
    )


def _print_findings(problem: AllocationProblem, verdict: Verdict) -> None:
    """Prints counts by kind, then a line for each finding, below it its instruction."""
    findings = verdict.findings
    counts = Counter(finding.kind for finding in findings)
    counts.update(verdict.untold)
    kinds = ", ".join(f"{count} {kind.value}" for kind, count in counts.most_common())
    least = "at least " if verdict.uncounted else ""
    total = counts.total()
    first = f"; the first {len(findings)}:" if verdict.untold else ""
    print(f"wrong: {least}{total} finding{'s' if total != 1 else ''} ({kinds}){first}")
    lines = _instruction_lines(problem.normalized)
    for place, group in groupby(findings, lambda finding: (finding.block, finding.instruction)):
        for finding in group:
            print(f"  {finding.kind.value}: {finding.message}")
        if place in lines:
            line = lines[place]
            more = "" if len(line) <= LINE_LENGTH else "…"
            print(f"    bb{place[0]} instruction {place[1]} is {line[:LINE_LENGTH]}{more}")


def _instruction_lines(normalized: str) -> dict[tuple[int | None, int | None], str]:
    """The line of each instruction, by block and index."""
    lines: dict[tuple[int | None, int | None], str] = {}
    block, index = -1, 0
    for line in normalized.splitlines():
        if _BLOCK_HEAD.match(line):
            block, index = block + 1, 0
        elif block >= 0:
            lines[block, index] = line
            index += 1
    return lines
