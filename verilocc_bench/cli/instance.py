"""INSTANCE on the command line, an id of a dataset or a file, and the answers to it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.backends import (
    BACKENDS,
    Backend,
    Kernel,
    ReadOptions,
    backend_of,
    backend_of_file,
)
from verilocc_bench.dataset import Row, check_row, load_raw_row, load_rows
from verilocc_bench.edits import Answer, NamedAssignment
from verilocc_bench.edits.answer_files import parse_answer, read_answer
from verilocc_bench.errors import InputError
from verilocc_bench.files import decode_text, parse_json, read_data
from verilocc_bench.ir import parse_function
from verilocc_bench.verification import Verifier

LABEL_OF_CODE = "the compiler"
"""What the label is called that compiled code itself has."""

NORMALIZED_START = "verilocc-bench "


@dataclass(frozen=True, slots=True)
class Instance:
    """A problem, with the compilers' answers if the instance is a row."""

    problem: AllocationProblem
    title: str
    label: NamedAssignment | None = None
    label_source: str = "label"
    alternatives: Mapping[str, NamedAssignment] | None = None
    row: Row | None = None


def load_instance(options: argparse.Namespace) -> Instance:
    """The instance that the options name. Raises InputError if there is none."""
    path = Path(options.instance)
    if not path.is_file() and (path.suffix or path.name != options.instance):
        raise InputError("there is no such file", source=path)
    data = read_data(path) if path.is_file() else b""
    if any(backend.holds(data) for backend in BACKENDS):
        return _from_compiled(path, data, options)
    text = decode_text(data, path)
    start = text.lstrip()
    if not path.is_file() or path.suffix == ".json" or start.startswith(("{", NORMALIZED_START)):
        for name in ("arch", "function", "max_threads"):
            if getattr(options, name) is not None:
                option = "--" + name.replace("_", "-")
                raise InputError(f"{option} is for compiled code, this is none", source=path)
    if not path.is_file():
        return _from_dataset(options)
    if start.startswith(NORMALIZED_START):
        return Instance(_located(path, text), path.name)
    if path.suffix == ".json" or start.startswith("{"):
        return _from_row_json(path, text)
    return _from_compiled(path, data, options)


def _from_compiled(path: Path, data: bytes, options: argparse.Namespace) -> Instance:
    kernel = backend_of_file(data).read(data, path, read_options(options))
    return _of_kernel(path, kernel)


def _of_kernel(path: Path, kernel: Kernel[Any]) -> Instance:
    title = f"{path.name}: {kernel.name}"
    return Instance(kernel.problem, title, kernel.label, LABEL_OF_CODE)


def read_answer_for(problem: AllocationProblem, path: Path) -> Answer:
    """The answer in an answer file. Raises InputError for another function's answer."""
    identifier, answer = read_answer(path)
    if identifier is not None and identifier != problem.id:
        raise InputError(
            f"the answer is for {identifier[:40]!r}, the instance is {problem.id!r}", source=path
        )
    return answer


def is_wrong(
    problem: AllocationProblem,
    answer: Answer,
    options: argparse.Namespace,
    source: str | Path | None = None,
) -> bool:
    """True if the answer is wrong. Then it prints why; with --json, the whole verdict.

    `source` names the answer if it is another than the options' own.
    """
    verdict = Verifier(problem).verify(answer)
    if verdict.valid:
        return False
    if options.json:
        print(json.dumps(verdict.to_json(), indent=2))
    first, count = verdict.findings[0], len(verdict.findings)
    print(
        f"verilocc-bench {options.command}: {source or options.answer}: "
        f"a wrong answer for {options.instance}, {count} finding{'s' if count != 1 else ''}, "
        f"first: {first.kind.value}: {first.message}",
        file=sys.stderr,
    )
    return True


def _located(path: Path, text: str) -> AllocationProblem:
    try:
        problem = AllocationProblem(parse_function(text, str(path)), text)
    except InputError as error:
        raise error.located(path) from None
    try:
        _ = problem.liveness  # every command needs it, and it can refuse the function
    except InputError as error:
        raise InputError(error.message, source=path) from None
    return problem


def _from_row_json(path: Path, text: str) -> Instance:
    row = parse_json(text, path)
    normalized = row.get("normalized") if isinstance(row, dict) else None
    if not isinstance(normalized, str):
        raise InputError("expected a row with its column 'normalized'", source=path)
    problem = _located(path, normalized)
    check_row(row, path)
    label = row.get("assignment")
    if isinstance(label, str):
        label = parse_json(label, f"{path}, column assignment")
    if label is not None:
        label = parse_answer({"assignment": label}, path)[1].assignment
    source = str(row.get("label_source", "label"))
    return Instance(problem, path.name, label, source)


def _from_dataset(options: argparse.Namespace) -> Instance:
    rows: list[Row] = []
    for track in ("assign", "split"):
        try:
            rows += load_rows(
                options.dataset, split=options.split, track=track, revision=options.revision
            ).rows
        except InputError:
            if track == "assign":
                raise
    for row in rows:
        if row.id == options.instance:
            problem = AllocationProblem.from_text(row.normalized, f"row {row.id}")
            title = f"{row.kernel} {row.id}"
            return Instance(problem, title, row.label, row.label_source, row.other_labels, row)
    raise InputError(
        f"{options.instance!r} is neither a file nor an id of the dataset "
        f"{options.dataset!r}, split {options.split!r}"
    )


def read_options(options: argparse.Namespace) -> ReadOptions:
    """The options for reading compiled code, from flags that all such commands have."""
    return ReadOptions(options.arch, options.function, options.max_threads)


def load_code(
    options: argparse.Namespace, check: Callable[[Backend[Any]], None]
) -> tuple[Backend[Any], Kernel[Any], Instance]:
    """The compiled code that the options name, in a file or as a row, and its back end.

    `check` is called with the back end before any work.
    """
    path = Path(options.instance)
    if path.is_file():
        data = read_data(path)
        backend = backend_of_file(data)
        check(backend)
        kernel = backend.read(data, path, read_options(options))
        return backend, kernel, _of_kernel(path, kernel)
    instance = load_instance(options)
    backend = backend_of(instance.problem.target)
    check(backend)
    return backend, _raw_kernel(backend, instance.problem, options), instance


def read_raw_kernel(instance: Instance, options: argparse.Namespace) -> Kernel[Any]:
    """The compiled code of a row of the dataset, from its raw config.

    Raises InputError if the dataset has none, or it is another function's.
    """
    return _raw_kernel(backend_of(instance.problem.target), instance.problem, options)


def _raw_kernel(
    backend: Backend[Any], problem: AllocationProblem, options: argparse.Namespace
) -> Kernel[Any]:
    raw = load_raw_row(options.dataset, problem.id, split=options.split, revision=options.revision)
    source = f"row {raw.id}"
    if raw.format != backend.raw_format:
        raise InputError(
            f"expected raw code in the format {backend.raw_format!r}, "
            f"the dataset has {raw.format[:40]!r}",
            source=source,
        )
    return backend.read_raw(raw.content, problem, source)
