"""INSTANCE on the command line: an id of a dataset, or a file."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from verilocc_bench.allocators import Answer, AnyAnswer, answer_from_assignment
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.answers import parse_answer, read_answer
from verilocc_bench.dataset import Row, check_row, load_rows
from verilocc_bench.edits import SplitAnswer
from verilocc_bench.errors import InputError, RejectedKernel
from verilocc_bench.files import decode_text, parse_json, read_data
from verilocc_bench.ir import parse_function
from verilocc_bench.parse.cubin import is_cubin
from verilocc_bench.parse.mir import MirFile
from verilocc_bench.parse.normalize import NormalizedFunction, normalize_function
from verilocc_bench.parse.sass import NormalizedSass
from verilocc_bench.parse.sass.load import normalize_cubin, normalize_kernels
from verilocc_bench.targets import get_target

__all__ = ["Instance", "list_functions", "load_instance", "normalize_data", "read_answer_for"]

NORMALIZED_START = "verilocc-bench "
_PTX = re.compile(r"^\s*\.version\s+\d+\.\d+\s*$.*?^\s*\.target\s+sm_", re.MULTILINE | re.DOTALL)


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
    if not path.is_file() and (path.suffix or path.name != options.instance):
        raise InputError("there is no such file", source=path)
    data = read_data(path) if path.is_file() else b""
    if is_cubin(data):
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
    normalized = normalize_data(path, data, options)
    problem = AllocationProblem(normalized.function)
    title = f"{path.name}: {normalized.name}"
    if isinstance(normalized, NormalizedSass):
        label = answer_from_assignment(problem, normalized.assignment)
        return Instance(problem, title, label, "the compiler")
    return Instance(problem, title)


def read_answer_for(problem: AllocationProblem, path: Path) -> AnyAnswer:
    """The answer in an answer file. Raises InputError for another function's answer."""
    identifier, answer = read_answer(path)
    if identifier is not None and identifier != problem.id:
        raise InputError(
            f"the answer is for {identifier[:40]!r}, the instance is {problem.id!r}", source=path
        )
    return answer


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
        _, parsed = parse_answer({"assignment": label}, path)
        assert not isinstance(parsed, SplitAnswer)
        label = parsed
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
            return Instance(problem, title, row.label, row.label_source, row.other_labels)
    raise InputError(
        f"{options.instance!r} is neither a file nor an id of the dataset "
        f"{options.dataset!r}, split {options.split!r}"
    )


def normalize_data(
    path: Path, data: bytes, options: argparse.Namespace
) -> NormalizedFunction | NormalizedSass:
    """The one function, or the one that --function names, of machine IR or a cubin."""
    if is_cubin(data):
        _check_cubin(path, options)
        return _normalize_kernel(path, data, options.function, options)
    file = _read_mir(path, data, options)
    return _normalize_machine_ir(path, file, options.function, options)


def list_functions(
    path: Path, data: bytes, options: argparse.Namespace
) -> Iterator[tuple[str, NormalizedFunction | NormalizedSass | str]]:
    """Each function of machine IR or a cubin with its name, or with the reason why there is none.

    Raises InputError where the whole file is none that can be read.
    """
    if not is_cubin(data):
        file = _read_mir(path, data, options)
        for name in file.names:
            try:
                yield name, _normalize_machine_ir(path, file, name, options)
            except InputError as error:
                yield name, f"line {error.line}: {error.message}" if error.line else error.message
        return
    _check_cubin(path, options)
    yield from normalize_kernels(data, path, options.max_threads)


def _read_mir(path: Path, data: bytes, options: argparse.Namespace) -> MirFile:
    text = decode_text(data, path)
    if _PTX.search(text):
        raise InputError(
            "this is PTX: assemble it (ptxas --gpu-name=sm_80) and name the cubin", source=path
        )
    if options.arch is None:
        raise InputError("machine IR needs --arch", source=path)
    target = get_target(options.arch)
    if target.vendor != "amd":
        raise InputError(f"expected a cubin for {target.name}, this is text", source=path)
    return MirFile(text, str(path))


def _normalize_machine_ir(
    path: Path, file: MirFile, name: str | None, options: argparse.Namespace
) -> NormalizedFunction:
    return normalize_function(
        file.function(name),
        file.module,
        get_target(options.arch),
        max_threads=options.max_threads,
        source=str(path),
    )


def _check_cubin(path: Path, options: argparse.Namespace) -> None:
    if options.arch is not None and get_target(options.arch).vendor != "nvidia":
        raise InputError(f"expected machine IR for {options.arch}, this is a cubin", source=path)


def _normalize_kernel(
    path: Path, data: bytes, name: str | None, options: argparse.Namespace
) -> NormalizedSass:
    try:
        return normalize_cubin(data, path, name, options.max_threads)
    except RejectedKernel as rejection:
        raise InputError(rejection.reason, source=path) from None
    except InputError as error:
        raise error.located(path) from None
