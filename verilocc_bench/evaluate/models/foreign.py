"""Allocators in Python: `python:MODULE:ATTRIBUTE`, and plug-ins by entry point.

They run in this process, with no limits of time or memory; whoever needs
these asks a program (`command:`).
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

from verilocc_bench.allocators import Allocator, Answer, Assistance, Request
from verilocc_bench.errors import InputError
from verilocc_bench.evaluate.asking import describe_exception
from verilocc_bench.evaluate.models.local_sources import sources_fingerprint

__all__ = ["from_plug_in", "from_python"]


def from_python(path: str) -> Allocator:
    """The allocator that `MODULE:ATTRIBUTE` names. Raises InputError where there is none."""
    module_name, separator, attribute = path.partition(":")
    if not separator or not module_name or not attribute:
        raise InputError(f"expected python:MODULE:ATTRIBUTE, not 'python:{path}'")
    if "" not in sys.path:
        sys.path.insert(0, "")  # as python -m does: modules of the current folder count
    module = _foreign(f"import {module_name!r}", lambda: importlib.import_module(module_name))
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise InputError(f"module {module_name!r} has no attribute {attribute!r}")
        found = getattr(found, part)
    return _as_allocator(f"python:{path}", found, _module_revision(module))


def from_plug_in(name: str, entry_point: EntryPoint) -> Allocator:
    """The allocator of an entry point. Raises InputError where it cannot be loaded."""
    found = _foreign(f"load the plug-in {name!r}", entry_point.load)
    revision = _module_revision(sys.modules.get(entry_point.module))
    if entry_point.dist is not None:
        revision = f"{entry_point.dist.name} {entry_point.dist.version} {revision}"
    return _as_allocator(name, found, revision)


def _foreign(what: str, run: Callable[[], Any]) -> Any:
    """What foreign code gives back; what it prints goes to standard error."""
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return run()
    except InputError:
        raise
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  foreign code may raise anything
        raise InputError(f"cannot {what}: {describe_exception(error)}") from None


def _module_revision(module: Any) -> str:
    """A hash of the module's source files, as far as they lie together."""
    path = getattr(module, "__file__", None)
    if not path or not Path(path).is_file():
        return "unknown"
    return sources_fingerprint(module.__name__, Path(path).resolve())


def _as_allocator(name: str, found: Any, revision: str) -> Allocator:
    if isinstance(found, type):
        found = _foreign(f"make the allocator {name}", found)
    allocator: Allocator = _foreign(
        f"use the allocator {name}", lambda: _wrapped(name, found, revision)
    )
    return allocator


def _wrapped(name: str, found: Any, revision: str) -> Allocator:
    if hasattr(found, "allocate"):
        kinds = tuple(kind.value for kind in Assistance)
        assistance = getattr(found, "assistance", Assistance.TEXT)
        if assistance not in kinds:
            raise InputError(f"the allocator {name} needs an assistance of {', '.join(kinds)}")
        deterministic = bool(getattr(found, "deterministic", False))
        return _Foreign(name, found, Assistance(assistance), deterministic, revision)
    if callable(found):
        return _Function(name, found, revision)
    raise InputError(f"{name} is no allocator: expected allocate(request) or a function")


@dataclass(frozen=True)
class _Foreign:
    """An object with `allocate(request)`, and perhaps `assistance` and `deterministic`."""

    foreign: ClassVar[bool] = True
    name: str
    allocator: Any
    assistance: Assistance
    deterministic: bool
    revision: str

    def allocate(self, request: Request) -> Answer:
        answer: Answer = self.allocator.allocate(request)
        return answer


@dataclass(frozen=True)
class _Function:
    """A plain function `(problem, seed) -> {"%0": "v0", …}`."""

    foreign: ClassVar[bool] = True
    name: str
    function: Any
    revision: str
    assistance: Assistance = Assistance.TEXT
    deterministic: bool = False

    def allocate(self, request: Request) -> Answer:
        answer: Answer = self.function(request.problem, request.seed)
        return answer
