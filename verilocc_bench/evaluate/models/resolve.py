"""From what `--model` says to an allocator."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from verilocc_bench.allocators import BUILT_IN, Allocator, AnyAnswer, Assistance, Request
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.answers import read_predictions
from verilocc_bench.errors import AllocationFailed, InputError

__all__ = ["PLUG_IN_GROUP", "Predictions", "resolve_model"]

PLUG_IN_GROUP = "verilocc_bench.allocators"


def resolve_model(name: str) -> Allocator:
    """The allocator that a `--model` value names. Raises InputError where there is none."""
    if name in BUILT_IN:
        return BUILT_IN[name]
    scheme, separator, rest = name.partition(":")
    if separator and scheme == "python":
        return _from_python(rest)
    if separator and scheme == "predictions":
        return Predictions(name, Path(rest), read_predictions(Path(rest)))
    for plug_in in entry_points(group=PLUG_IN_GROUP, name=name):
        return _as_allocator(name, plug_in.load())
    known = ", ".join([*BUILT_IN, *(e.name for e in entry_points(group=PLUG_IN_GROUP))])
    raise InputError(
        f"unknown model {name!r}; known: {known}, python:MODULE:ATTRIBUTE, predictions:FILE"
    )


def _from_python(path: str) -> Allocator:
    module_name, separator, attribute = path.partition(":")
    if not separator or not module_name or not attribute:
        raise InputError(f"expected python:MODULE:ATTRIBUTE, not 'python:{path}'")
    if "" not in sys.path:
        sys.path.insert(0, "")  # as python -m does: modules of the current folder count
    try:
        with contextlib.redirect_stdout(sys.stderr):
            found = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # noqa: BLE001  a module may raise anything
        reason = f"{type(error).__name__}: {error}"
        raise InputError(f"cannot import {module_name!r}: {reason}") from None
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise InputError(f"module {module_name!r} has no attribute {attribute!r}")
        found = getattr(found, part)
    return _as_allocator(f"python:{path}", found)


def _as_allocator(name: str, found: Any) -> Allocator:
    if isinstance(found, type):
        try:
            found = found()
        except (Exception, SystemExit) as error:  # noqa: BLE001  a class may raise anything
            reason = f"{type(error).__name__}: {error}"
            raise InputError(f"cannot make the allocator {name}: {reason}") from None
    if hasattr(found, "allocate"):
        kinds = tuple(kind.value for kind in Assistance)
        assistance = getattr(found, "assistance", Assistance.TEXT)
        if assistance not in kinds:
            raise InputError(f"the allocator {name} needs an assistance of {', '.join(kinds)}")
        deterministic = bool(getattr(found, "deterministic", False))
        return _Foreign(name, found, Assistance(assistance), deterministic)
    if callable(found):
        return _Function(name, found)
    raise InputError(f"{name} is no allocator: expected allocate(request) or a function")


@dataclass(frozen=True)
class _Foreign:
    """An object with `allocate(request)`, and perhaps `assistance` and `deterministic`."""

    name: str
    allocator: Any
    assistance: Assistance
    deterministic: bool

    def allocate(self, request: Request) -> AnyAnswer:
        answer: AnyAnswer = self.allocator.allocate(request)
        return answer


@dataclass(frozen=True)
class _Function:
    """A plain function `(problem, seed) -> {"%0": "v0", …}`."""

    name: str
    function: Any
    assistance: Assistance = Assistance.TEXT
    deterministic: bool = False

    def allocate(self, request: Request) -> AnyAnswer:
        problem: AllocationProblem = request.problem
        answer: AnyAnswer = self.function(problem, request.seed)
        return answer


@dataclass(frozen=True)
class Predictions:
    """AnyAnswers from a file, in the order of their lines."""

    name: str
    path: Path
    answers: Mapping[str, list[AnyAnswer]]
    assistance: Assistance = Assistance.TEXT
    deterministic: bool = False
    _empty: list[AnyAnswer] = field(default_factory=list)

    def allocate(self, request: Request) -> AnyAnswer:
        """The answer of the request's sample. Raises AllocationFailed where there is none."""
        samples = self.answers.get(request.problem.id, self._empty)
        if request.sample >= len(samples):
            raise AllocationFailed("the file has no such sample for the function")
        return samples[request.sample]

    def check_ids(self, known: Container[str]) -> None:
        """Raises InputError for an answer to a function that the dataset does not have."""
        for identifier in self.answers:
            if identifier not in known:
                raise InputError(
                    f"there is no function {identifier[:40]!r} in the dataset", source=self.path
                )
