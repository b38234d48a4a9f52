"""The revision of a function or object that only this process has: a hash of what it is made of.

Two models whose answers may differ must not have one revision, as a run that is gone on with
keeps the samples of the same one. So code counts with the values that it holds and the names
of its own package that it uses; and where a value cannot be looked into, the revision is
unknown, and nothing is kept.
"""

from __future__ import annotations

import functools
import json
import sys
import sysconfig
from abc import ABC
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from pathlib import Path, PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Generic, Protocol

from verilocc_bench.evaluation.fingerprints import UNKNOWN, fingerprint
from verilocc_bench.evaluation.models.local_sources import sources_fingerprint

_PLAIN = (type(None), bool, int, float, complex, str, bytes)
_STATELESS: tuple[Any, ...] = (object, ABC, Generic, Protocol)
_HELD: Mapping[type, Callable[[Any], Iterable[Any]]] = {
    list: iter,
    tuple: iter,
    dict: lambda value: value.items(),
    functools.partial: lambda value: (value.func, value.args, value.keywords),
    MethodType: lambda value: (value.__func__, value.__self__),
    staticmethod: lambda value: (value.__func__,),
    classmethod: lambda value: (value.__func__,),
    property: lambda value: (value.fget, value.fset),
    functools.cached_property: lambda value: (value.func,),
}
"""What a value of a type holds, in its order."""

_MACHINERY = {"_abc_impl"}
"""Names in a class, beside those with underscores all around, that say nothing of answers."""


def revision_of_object(model: object) -> str:
    """The model's own text `revision` if it has one, else a hash of its code and values."""
    stated = getattr(model, "revision", None)
    if isinstance(stated, str):
        return stated
    named: Any = model if hasattr(model, "__module__") else type(model)
    package = str(named.__module__).partition(".")[0]
    try:
        return fingerprint([_Description(package).of(model), *_sources(model)])
    except (_OpaqueError, RecursionError, ValueError):  # an empty cell of a closure
        return UNKNOWN


def _sources(model: Any) -> list[str]:
    """A hash of the files that define a model, and of what they import from the same folder."""
    while isinstance(model, functools.partial | MethodType):
        model = model.func if isinstance(model, functools.partial) else model.__self__
    name = str(getattr(model, "__module__", None) or type(model).__module__)
    path = Path(getattr(sys.modules.get(name), "__file__", None) or "")
    installed = path.is_relative_to(sysconfig.get_path("stdlib")) or "-packages" in str(path)
    if name == "__main__" or installed or not path.is_file():
        return []
    return [sources_fingerprint(name, path.resolve())]


class _OpaqueError(Exception):
    """A value of which only itself knows what it is made of."""


class _Description:
    """Describes values as JSON that differs where they do.

    Functions and classes of other packages than `package` count by their names.
    """

    def __init__(self, package: str) -> None:
        self._package = package
        # Values are kept: another one could have the address of one that is gone.
        self._seen: dict[int, tuple[int, object]] = {}

    def of(self, value: Any) -> Any:
        """What a value is made of. Raises _OpaqueError."""
        kind = type(value)
        if kind in _PLAIN or isinstance(value, PurePath):
            return [kind.__name__, repr(value)]
        if id(value) in self._seen:
            return ["again", self._seen[id(value)][0]]
        self._seen[id(value)] = len(self._seen), value
        return [kind.__name__, *self._parts(value, kind)]

    def _parts(self, value: Any, kind: type) -> Iterator[Any]:
        if kind in _HELD:
            yield from map(self.of, _HELD[kind](value))
        elif kind in (set, frozenset):
            if not all(type(each) in _PLAIN for each in value):
                raise _OpaqueError
            yield sorted(map(self.of, value), key=json.dumps)
        elif kind is ModuleType or kind is BuiltinFunctionType or self._foreign(value):
            yield f"{getattr(value, '__module__', '')}.{value.__name__}"
        elif kind is FunctionType:
            yield from self._function(value)
        elif isinstance(value, type):
            yield from self._class(value)
        elif isinstance(value, Enum):
            yield f"{kind.__module__}.{kind.__qualname__}.{value.name}"
        elif hasattr(value, "__dict__") and self._is_its_values(kind):
            yield from map(self.of, (kind, vars(value)))
        else:
            raise _OpaqueError

    def _is_its_values(self, kind: type) -> bool:
        """Whether objects of a class hold nothing but what `vars` has of them."""
        return all(
            each in _STATELESS or (not self._foreign(each) and not vars(each).get("__slots__"))
            for each in kind.mro()
        )

    def _foreign(self, value: Any) -> bool:
        if not isinstance(value, FunctionType | type):
            return False
        return str(value.__module__).partition(".")[0] != self._package

    def _function(self, function: FunctionType) -> Iterator[Any]:
        names: set[str] = set()
        yield _code(function.__code__, names)
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        held = (function.__defaults__, function.__kwdefaults__, cells, vars(function))
        yield from map(self.of, held)
        known = function.__globals__
        yield from ([name, self.of(known[name])] for name in sorted(names) if name in known)

    def _class(self, found: type) -> Iterator[Any]:
        for each in found.mro():
            yield f"{each.__module__}.{each.__qualname__}"
            if self._foreign(each):
                continue
            for name, value in vars(each).items():
                if name in ("__init__", "__call__") or not (
                    name in _MACHINERY or (name.startswith("__") and name.endswith("__"))
                ):
                    yield [name, self.of(value)]


def _code(code: CodeType, names: set[str]) -> Any:
    """What the code does; adds the names that it looks up, as globals or attributes."""
    names.update(code.co_names)
    constants = [_constant(each, names) for each in code.co_consts]
    return [code.co_code.hex(), code.co_exceptiontable.hex(), list(code.co_names), constants]


def _constant(value: Any, names: set[str]) -> Any:
    if isinstance(value, CodeType):
        return _code(value, names)
    if isinstance(value, tuple | frozenset):
        parts = [json.dumps(_constant(each, names)) for each in value]
        # Sets of texts have another order in each process.
        return [type(value).__name__, *(parts if isinstance(value, tuple) else sorted(parts))]
    return repr(value)
