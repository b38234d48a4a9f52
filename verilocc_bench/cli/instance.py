"""INSTANCE on the command line: an id of a dataset, or a file."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from verilocc_bench.allocators import Answer
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import Row, load_rows
from verilocc_bench.errors import InputError
from verilocc_bench.evaluate import parse_answer, read_answer
from verilocc_bench.files import parse_json, read_text
from verilocc_bench.ir import parse_function
from verilocc_bench.parse.machine import MachineFunction, MachineModule
from verilocc_bench.parse.mir import parse_mir
from verilocc_bench.parse.normalize import NormalizedFunction, normalize_function
from verilocc_bench.targets import get_target

__all__ = ["Instance", "load_instance", "normalize_file", "read_answer_for"]

NORMALIZED_START = "verilocc-bench "


@dataclass(frozen=True, slots=True)
class Instance:
    """A problem, with the compilers' answers where the instance is a row."""

    problem: AllocationProblem
    title: str
    label: Answer | None = None
    label_source: str = "label"
    alternatives: Mapping[str, Answer] | None = None


def load_instance(options: argparse.Namespace) -> Instance:
    """The instance that the options name. Raises InputError where there is none."""
    path = Path(options.instance)
    text = read_text(path) if path.is_file() else ""
    start = text.lstrip()
    if not path.is_file() or path.suffix == ".json" or start.startswith(("{", NORMALIZED_START)):
        for name in ("arch", "function", "max_threads"):
            if getattr(options, name) is not None:
                option = "--" + name.replace("_", "-")
                raise InputError(f"{option} is for machine IR, this is none", source=path)
    if not path.is_file():
        return _from_dataset(options)
    if start.startswith(NORMALIZED_START):
        return Instance(_located(path, text), path.name)
    if path.suffix == ".json" or start.startswith("{"):
        return _from_row_json(path, text)
    normalized = normalize_text(path, text, options)
    problem = AllocationProblem(normalized.function)
    return Instance(problem, f"{path.name}: {normalized.name}")


def read_answer_for(problem: AllocationProblem, path: Path) -> Answer:
    """The assignment in an answer file. Raises InputError for another function's answer."""
    identifier, answer = read_answer(path)
    if identifier is not None and identifier != problem.id:
        raise InputError(
            f"the answer is for {identifier[:40]!r}, the instance is {problem.id!r}", source=path
        )
    return answer


def _located(path: Path, text: str) -> AllocationProblem:
    try:
        return AllocationProblem(parse_function(text, str(path)), text)
    except InputError as error:
        raise error.located(path) from None


def _from_row_json(path: Path, text: str) -> Instance:
    row = parse_json(text, path)
    normalized = row.get("normalized") if isinstance(row, dict) else None
    if not isinstance(normalized, str):
        raise InputError("expected a row with its column 'normalized'", source=path)
    label = row.get("assignment")
    if isinstance(label, str):
        label = parse_json(label, f"{path}, column assignment")
    if label is not None:
        _, label = parse_answer({"assignment": label}, path)
    source = str(row.get("label_source", "label"))
    return Instance(_located(path, normalized), path.name, label, source)


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
            return Instance(problem, title, row.label, row.label_source, row.other_labels)
    raise InputError(
        f"{options.instance!r} is neither a file nor an id of the dataset "
        f"{options.dataset!r}, split {options.split!r}"
    )


def normalize_file(path: Path, options: argparse.Namespace) -> NormalizedFunction:
    """The one function, or the one that --function names, of a machine IR file."""
    return normalize_text(path, read_text(path), options)


def normalize_text(path: Path, text: str, options: argparse.Namespace) -> NormalizedFunction:
    """As normalize_file, of text that is read already."""
    if options.arch is None:
        raise InputError("machine IR needs --arch", source=path)
    target = get_target(options.arch)
    module = parse_mir(text, str(path))
    machine = _choose(module, options.function, path)
    try:
        return normalize_function(
            machine, module, target, max_threads=options.max_threads, source=str(path)
        )
    except InputError as error:
        raise error.located(path) from None


def _choose(module: MachineModule, name: str | None, path: Path) -> MachineFunction:
    names = [function.name for function in module.functions]
    if name is None:
        if len(names) > 1:
            raise InputError(
                f"the file has several functions, choose one with --function: {', '.join(names)}",
                source=path,
            )
        return module.functions[0]
    for function in module.functions:
        if function.name == name:
            return function
    raise InputError(f"there is no function {name!r}; there are {', '.join(names)}", source=path)
