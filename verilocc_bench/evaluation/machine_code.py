"""What valid answers are worth as machine code, beside the compiler's own.

The back end takes the first valid answer of each function and the compiler's label to
machine code, and counts both, as `verilocc-bench compare` does. llc must be there for
gfx90a and gfx942. What was found is kept in machine-code.jsonl, so an interrupted run
goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from verilocc_bench.allocators import Answer
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.edits.answer_files import answer_to_json
from verilocc_bench.errors import InputError, MissingExtraError
from verilocc_bench.evaluation.code_source import CodeSource
from verilocc_bench.evaluation.fingerprints import code_fingerprint, fingerprint
from verilocc_bench.evaluation.ledger import checked_line, read_checked
from verilocc_bench.evaluation.records import RowResult
from verilocc_bench.evaluation.storing import AllocatorRun
from verilocc_bench.processes import process_pool
from verilocc_bench.targets import get_target

MACHINE_CODE = "machine-code.jsonl"

FIGURES = (
    "loop_instructions",
    "loop_waits",
    "loop_wait_states",
    "loop_register_moves",
    "bank_conflicts",
    "loop_cycles",
)
"""What is counted, by the names of `verilocc-bench compare`; a target may not count some."""

EQUAL_CYCLES = 0.005
"""Estimates of cycles this close, of the label's, count as equal."""

Figures = Mapping[str, float | None]
_Wanted = tuple[str, str, Answer, Mapping[str, str] | None]
"""The text, the id, the answer and the label of a function."""


@dataclass(frozen=True, slots=True)
class CountedCode:
    """The figures of an answer's machine code and of the compiler's.

    A figure is None if the target does not count it. `runnable` is False for code with
    hazards; sm_80 alone has such code. `refused` is the reason why code is missing, and
    then the other fields are None.
    """

    answer: Figures | None = None
    label: Figures | None = None
    runnable: bool | None = None
    refused: str | None = None


def check_machine_code(archs: Sequence[str], folder: Path | None) -> None:
    """Raises InputError, before any work, if a tool is missing or nothing can be kept."""
    if folder is None:
        raise InputError("--machine-code is for --output-path: the answers are read from there")
    from verilocc_bench.backends import backend_of

    for arch in dict.fromkeys(archs):
        backend_of(get_target(arch)).check_comparison()


def compare_code(
    problem: AllocationProblem,
    code: CodeSource,
    answer: Answer,
    label: Mapping[str, str] | None,
) -> CountedCode:
    """An answer and the label of a problem as machine code.

    Without a label the other side is the compiler's allocation in the same compile.
    Raises InputError if the dataset does not have the compiled code.
    """
    from verilocc_bench.backends import ComparedAllocation, backend_of

    backend = backend_of(problem.target)
    kernel = code.kernel(problem)
    other = ComparedAllocation("label", None if label is None else Answer(label))
    try:
        backend.check_answer(answer, f"function {problem.id}")
        sides = (ComparedAllocation("answer", answer), other)
        document = backend.compare(kernel, sides, with_files=False).document
    except MissingExtraError:
        raise
    except InputError as error:
        return CountedCode(refused=str(error))
    own, beside = document["answer"]["metrics"], document["other"]["metrics"]
    return CountedCode(
        {name: own.get(name) for name in FIGURES},
        {name: beside.get(name) for name in FIGURES},
        bool(own.get("runnable", True)),
    )


def measure_machine_code(
    run: AllocatorRun,
    results: Sequence[RowResult],
    folder: Path,
    jobs: int,
    progress: Callable[[int], object],
) -> dict[str, CountedCode]:
    """The machine code of the first valid answer of each function, by the function's id.

    `jobs` is a number of processes. `progress` is told of each function that is done.
    """
    from verilocc_bench.backends import backend_of

    assert run.ledger is not None
    run.ledger.refresh()
    configuration = run.configuration
    code = CodeSource(configuration.dataset, configuration.splits, configuration.revision)
    path = folder / MACHINE_CODE
    known = _read(path)
    found: dict[str, CountedCode] = {}
    wanted: dict[str, _Wanted] = {}
    keys: dict[str, str] = {}
    tools: dict[str, dict[str, str]] = {}
    for result in results:
        if result.outcome is None:
            continue
        row = result.row
        answer, _ = run.ledger.read(run.ledger.entries[row.id, result.outcome.sample])
        assert answer is not None
        document = answer_to_json(row.id, answer)
        if row.arch not in tools:
            tools[row.arch] = dict(backend_of(get_target(row.arch)).check_comparison())
        made_by = code_fingerprint(), tools[row.arch]
        key = keys[row.id] = fingerprint([made_by, document, row.assignment])
        if key in known:
            found[row.id] = known[key]
            progress(1)
        else:
            wanted[row.id] = row.normalized, row.id, answer, row.label
    with path.open("ab") as file:
        for row_id, each in _compared(wanted, code, jobs):
            found[row_id] = each
            # What was refused is tried again: another llc may take it.
            if each.refused is None:
                file.write(checked_line({"key": keys[row_id], "id": row_id, **asdict(each)}))
            file.flush()
            progress(1)
    return found


def _compared(
    wanted: Mapping[str, _Wanted], code: CodeSource, jobs: int
) -> Iterator[tuple[str, CountedCode]]:
    if jobs == 1 or len(wanted) < 2:
        for row_id, each in wanted.items():
            yield row_id, _compare(code, each)
        return
    try:
        with process_pool(jobs) as pool:
            tasks = {pool.submit(_compare, code, each): row_id for row_id, each in wanted.items()}
            for task in as_completed(tasks):
                yield tasks[task], task.result()
    except BrokenProcessPool:
        raise InputError(
            "a process that makes machine code was killed, by the system's memory limit perhaps: "
            "the same command goes on, with fewer --jobs"
        ) from None


def _compare(code: CodeSource, wanted: _Wanted) -> CountedCode:
    text, row_id, answer, label = wanted
    problem = AllocationProblem.from_text(text, f"row {row_id}")
    return compare_code(problem, code, answer, label)


def _read(path: Path) -> dict[str, CountedCode]:
    """What the file has, by key. Damaged lines are passed over: their code is made again."""
    if not path.is_file():
        return {}
    known = {}
    for line in path.read_bytes().splitlines():
        document = read_checked(line)
        if document is not None:
            key = document.pop("key")
            del document["id"]
            known[key] = CountedCode(**document)
    return known


def summarise_machine_code(found: Sequence[CountedCode | None]) -> dict[str, Any]:
    """The record of some functions; those without a valid answer are None, and count nowhere.

    Sums are over the functions of which both sides have the figure.
    """
    measured = [each for each in found if each is not None]
    compared: dict[str, dict[str, float]] = {}
    for name in FIGURES:
        pairs = [
            (own, label)
            for each in measured
            if each.answer is not None and each.label is not None
            if (own := each.answer.get(name)) is not None
            and (label := each.label.get(name)) is not None
        ]
        if pairs:
            compared[name] = _compared_sums(pairs, EQUAL_CYCLES if name == "loop_cycles" else 0.0)
    return {
        "kernels": len(measured),
        "refused": sum(each.refused is not None for each in measured),
        "runnable": sum(each.runnable is True for each in measured),
        "figures": compared,
    }


def _compared_sums(pairs: Sequence[tuple[float, float]], tolerance: float) -> dict[str, float]:
    equal = sum(abs(own - label) <= tolerance * label for own, label in pairs)
    more = sum(own - label > tolerance * label for own, label in pairs)
    return {
        "answer": sum(own for own, _ in pairs),
        "label": sum(label for _, label in pairs),
        "less": len(pairs) - equal - more,
        "equal": equal,
        "more": more,
    }
