"""Mutants of functions, as mutmut makes them, and how one takes the place of its function.

mutmut leaves out functions that have a decorator; here those of `PLAIN` are mutated too. What
stands outside functions (constants, patterns, defaults of records) is not mutated. Nor is
`strict=True` of a zip: it only says that the sequences have one length.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import libcst as cst
from mutmut.mutation.file_mutation import create_mutations, deep_replace, group_by_top_level_node

PLAIN = ("cached_property", "property", "cache")
_BESIDE_STRICT = re.compile(r"\s+|\bstrict=(True|False|None),?")
_DECORATOR = re.compile(rf"^( *)@(?:{'|'.join(PLAIN)})$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one function (`Class.name` or `name`).

    `change` is what it replaces and by what, with a number where a function has several of one
    wording. `source` is the mutated function alone: none here needs its class around it.
    """

    module: str
    function: str
    change: str
    source: str

    @property
    def name(self) -> str:
        """How a list of mutants names it."""
        return f"{self.module} {self.function}: {self.change}"

    @property
    def key(self) -> str:
        """Changes with the function, not with its place in the file."""
        return hashlib.sha256(f"{self.name}\n{self.source}".encode()).hexdigest()[:16]

    def plant(self) -> None:
        """Gives the function of this process the mutant's code and defaults."""
        module = importlib.import_module(self.module)
        namespace: dict[str, Any] = dict(module.__dict__)
        exec(compile(self.source, f"<mutant of {self.function}>", "exec"), namespace)
        mutated = function_of(namespace, self.function.rpartition(".")[2])
        target = function_of(module.__dict__, self.function)
        target.__code__ = mutated.__code__
        target.__defaults__ = mutated.__defaults__
        target.__kwdefaults__ = mutated.__kwdefaults__


def function_of(namespace: Any, name: str) -> FunctionType:
    """The function of a name, without what decorators made of it."""
    *owners, last = name.split(".")
    found = namespace
    for owner in owners:
        found = found[owner].__dict__
    found = found[last]
    for attribute in ("__func__", "fget", "func", "__wrapped__"):
        found = getattr(found, attribute, found)
    assert isinstance(found, FunctionType), name
    return found


def module_name(path: Path) -> str:
    """The module of a file, by its path from the root."""
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def mutants_of(path: Path) -> Iterator[Mutant]:
    """All mutants of a file, in the order of its functions; none twice."""
    text = _DECORATOR.sub(r"\1#", path.read_text())
    module, mutations, _, _ = create_mutations(str(path), text)
    name, seen, wordings = module_name(path), set(), Counter[str]()
    for function, group in group_by_top_level_node(mutations).items():
        if not isinstance(function, cst.FunctionDef):
            continue
        owner = _owner(module, function)
        before = module.code_for_node(function)
        for mutation in group:
            mutated = deep_replace(function, mutation.original_node, mutation.mutated_node)
            assert isinstance(mutated, cst.FunctionDef)
            after = module.code_for_node(mutated)
            if after == before or (owner, after) in seen or _is_less_strict(before, after):
                continue
            seen.add((owner, after))
            qualified = f"{owner}.{function.name.value}" if owner else function.name.value
            change = _change(before, after)
            wordings[f"{qualified} {change}"] += 1
            if (number := wordings[f"{qualified} {change}"]) > 1:
                change += f" (number {number})"
            yield Mutant(name, qualified, change, after)


def _is_less_strict(before: str, after: str) -> bool:
    """True if a mutant differs by a `strict=True` that is lost."""
    return after.count("strict=True") < before.count("strict=True") and (
        _BESIDE_STRICT.sub("", before) == _BESIDE_STRICT.sub("", after)
    )


def _owner(module: cst.Module, function: cst.FunctionDef) -> str:
    """The class that a function stands in; nothing for one of the module."""
    for each in module.body:
        if isinstance(each, cst.ClassDef) and function in each.body.body:
            return each.name.value
    return ""


def _change(before: str, after: str) -> str:
    removed, added = [], []
    for line in difflib.ndiff(before.splitlines(), after.splitlines()):
        if line.startswith("- "):
            removed.append(line[2:].strip())
        elif line.startswith("+ "):
            added.append(line[2:].strip())
    return f"{' '.join(removed)} => {' '.join(added)}"


def code_objects(function: FunctionType) -> Iterator[CodeType]:
    """The code of a function and of all that is defined in it."""
    pending = [function.__code__]
    while pending:
        code = pending.pop()
        yield code
        pending += [each for each in code.co_consts if isinstance(each, CodeType)]
