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

from verilocc_bench.allocators import (
    Allocator,
    Answer,
    Assistance,
    LabelUse,
    Request,
    SingleAllocator,
)
from verilocc_bench.allocators.single import describe_exception
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.fingerprints import UNKNOWN
from verilocc_bench.evaluation.models.local_sources import sources_fingerprint
from verilocc_bench.settings.allocator import AllocatorSettings


def from_python(path: str, settings: AllocatorSettings) -> Allocator:
    """The allocator that `MODULE:ATTRIBUTE` names. Raises InputError without one."""
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
    return allocator_from_object(f"python:{path}", found, _module_revision(module), settings)


def from_plug_in(name: str, entry_point: EntryPoint, settings: AllocatorSettings) -> Allocator:
    """The allocator of an entry point. Raises InputError if it cannot be loaded."""
    found = _foreign(f"load the plug-in {name!r}", entry_point.load)
    revision = _module_revision(sys.modules.get(entry_point.module))
    if entry_point.dist is not None:
        revision = f"{entry_point.dist.name} {entry_point.dist.version} {revision}"
    return allocator_from_object(name, found, revision, settings)


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
        return UNKNOWN
    return sources_fingerprint(module.__name__, Path(path).resolve())


def allocator_from_object(
    name: str, found: Any, revision: str, settings: AllocatorSettings
) -> ForeignAllocator:
    """The allocator of a function, an object with `allocate`, or a class of such objects.

    Raises InputError for anything else.
    """
    if isinstance(found, type):
        found = _foreign(f"make the allocator {name}", found)
    allocator: ForeignAllocator = _foreign(
        f"use the allocator {name}", lambda: _wrapped(name, found, revision, settings)
    )
    return allocator


def _wrapped(name: str, found: Any, revision: str, settings: AllocatorSettings) -> ForeignAllocator:
    """Makes an allocator of whatever a user's module has.

    A plain function is asked as `(problem, seed) -> {"%0": "v0", …}`. An object
    has `allocate(request)`, and may say its `assistance` and whether it is
    `deterministic`.
    """
    if hasattr(found, "allocate"):
        kinds = tuple(kind.value for kind in Assistance)
        assistance = getattr(found, "assistance", Assistance.TEXT)
        if assistance not in kinds:
            raise InputError(f"the allocator {name} needs an assistance of {', '.join(kinds)}")
        deterministic = bool(getattr(found, "deterministic", False))
        return ForeignAllocator(
            name, found.allocate, revision, settings, Assistance(assistance), deterministic
        )
    if callable(found):
        return ForeignAllocator(
            name, lambda request: found(request.problem, request.seed), revision, settings
        )
    raise InputError(f"{name} is not an allocator: expected allocate(request) or a function")


@dataclass(frozen=True)
class ForeignAllocator(SingleAllocator):
    """Other people's code; `answer` gives anything at all, which is judged as an answer."""

    name: str
    answer: Callable[[Request], Any]
    revision: str
    settings: AllocatorSettings
    assistance: Assistance = Assistance.TEXT
    deterministic: bool = False

    foreign: ClassVar[bool] = True
    label_use: ClassVar[LabelUse] = LabelUse.NONE

    def allocate(self, request: Request) -> Answer:
        """See Allocator."""
        found: Answer = self.answer(request)
        return found
