"""Lower bounds as JSON documents, the form in which the dataset keeps a proof.

    {"group": "vector", "value": 52, "kind": "residues",
     "cliques": [{"at": [0, 57], "lanes": {"12": [0, 1]}, "fixed": {"v": [0, 1]}}],
     "refutations": [{"kind": "residues", "shapes": [{"v": 51, "a": 0}], "cliques": [0]}]}

The document lists each clique once. Shapes with the same refutation stand
together. `at` is [block, instruction] (-1: at the entry), `lanes` lists lanes by
virtual register, and `fixed` lists units by file. A refutation that a solver
found also has `solver`. The document omits the solver's time, which depends on
the machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from verilocc_bench.analysis.lower_bounds.records import (
    BoundKind,
    Clique,
    LowerBound,
    Refutation,
    Shape,
)
from verilocc_bench.analysis.pressure import VECTOR
from verilocc_bench.analysis.problem import AllocationProblem
from verilocc_bench.errors import InputError

Key = TypeVar("Key", int, str)


def to_json(bound: LowerBound) -> dict[str, Any]:
    """A bound as one JSON document."""
    numbers: dict[Clique, int] = {}
    refutations: list[dict[str, Any]] = []
    for refutation in bound.refutations:
        cliques = [numbers.setdefault(clique, len(numbers)) for clique in refutation.cliques]
        entry: dict[str, Any] = {"kind": refutation.kind.value, "shapes": [], "cliques": cliques}
        if refutation.solver:
            entry["solver"] = refutation.solver
        if not refutations or {**refutations[-1], "shapes": []} != entry:
            refutations.append(entry)
        refutations[-1]["shapes"].append(dict(refutation.shape))
    return {
        "group": bound.group,
        "value": bound.value,
        "kind": bound.kind.value,
        "cliques": [_clique_json(clique) for clique in numbers],
        "refutations": refutations,
    }


def _clique_json(clique: Clique) -> dict[str, Any]:
    lanes = {str(register): numbers for register, numbers in _grouped(clique.lanes).items()}
    entry = {"at": [clique.block, clique.instruction], "lanes": lanes}
    return {**entry, "fixed": _grouped(clique.fixed)} if clique.fixed else entry


def _grouped(pairs: Iterable[tuple[Key, int]]) -> dict[Key, list[int]]:
    found: dict[Key, list[int]] = {}
    for key, number in pairs:
        found.setdefault(key, []).append(number)
    return found


def from_json(document: Any, problem: AllocationProblem) -> LowerBound:
    """The bound of a document about `problem`; check_certificate checks its proof.

    Raises InputError if the document does not describe a bound, or names points
    or files that the problem does not have.
    """
    reader = _BoundReader(problem)
    group = reader.member(document, "group", str)
    if group != VECTOR and group not in reader.files:
        raise reader.error(f"there is no group of files {group!r}")
    kind = reader.kind(document)
    cliques = [reader.clique(entry) for entry in reader.member(document, "cliques", list)]
    refutations: list[Refutation] = []
    for entry in reader.member(document, "refutations", list):
        refutations += reader.refutations(entry, cliques)
    order = list(BoundKind)
    strongest = max((r.kind for r in refutations), key=order.index, default=BoundKind.PRESSURE)
    if kind is not strongest:
        raise reader.error(f"its kind is {kind}, but its refutations have the kind {strongest}")
    return LowerBound(group, reader.count(document, "value"), kind, tuple(refutations))


class _BoundReader:
    """Reads the parts of a document about one problem. Raises InputError for every mistake."""

    def __init__(self, problem: AllocationProblem) -> None:
        self.id = problem.id
        self.files = {file.name: file.count for file in problem.target.files}
        # An instruction with an early clobber has two points. The first has the larger
        # clique, so it stands for the instruction.
        places = list(enumerate(problem.liveness.points))
        self.points = {place: point for point, place in reversed(places)}

    def error(self, message: str) -> InputError:
        return InputError(message, source=f"bound of {self.id}")

    def member(self, document: Any, key: str, kind: type | tuple[type, ...]) -> Any:
        found = document.get(key) if isinstance(document, dict) else None
        if not isinstance(found, kind) or isinstance(found, bool):
            raise self.error(f"expected an object with {key!r}, as bounds have it")
        return found

    def count(self, document: Any, key: str) -> int:
        found: int = self.member(document, key, int)
        if found < 0:
            raise self.error(f"{key!r} is {found}: expected no negative number")
        return found

    def kind(self, document: Any) -> BoundKind:
        name = self.member(document, "kind", str)
        if name not in set(BoundKind):
            raise self.error(f"there is no kind {name[:40]!r} of bound")
        return BoundKind(name)

    def clique(self, entry: Any) -> Clique:
        at = tuple(self.member(entry, "at", list))
        if len(at) != 2 or not all(type(n) is int for n in at) or at not in self.points:
            raise self.error(f"there is no point {list(at[:4])}")
        lanes = []
        for register, number in self.pairs(self.member(entry, "lanes", dict)):
            if not (register.isascii() and register.isdecimal() and len(register) < 10):
                raise self.error(f"there is no virtual register {register[:40]!r}")
            lanes.append((int(register), number))
        fixed = tuple(self.pairs(self.member({"fixed": {}, **entry}, "fixed", dict)))
        return Clique(self.points[at], *at, tuple(lanes), fixed)

    def pairs(self, grouped: Mapping[str, Any]) -> Iterable[tuple[str, int]]:
        for key, numbers in grouped.items():
            if not isinstance(numbers, list) or not all(type(n) is int for n in numbers):
                raise self.error(f"expected a list of numbers for {key[:40]!r}")
            yield from ((key, number) for number in numbers)

    def refutations(self, entry: Any, cliques: list[Clique]) -> Iterable[Refutation]:
        kind = self.kind(entry)
        own = []
        for number in self.member(entry, "cliques", list):
            if type(number) is not int or not 0 <= number < len(cliques):
                raise self.error(f"there is no clique {str(number)[:40]}")
            own.append(cliques[number])
        solver = self.member({"solver": "", **entry}, "solver", str)
        for shape in self.member(entry, "shapes", list):
            yield Refutation(kind, self.shape(shape), tuple(own), solver)

    def shape(self, entry: Any) -> Shape:
        if not isinstance(entry, dict) or not entry.keys() <= self.files.keys():
            raise self.error("expected shapes that give numbers of units by register file")
        limits = {file: self.count(entry, file) for file in entry}
        beyond = next((file for file in limits if limits[file] > self.files[file]), None)
        if beyond is not None:
            raise self.error(f"a shape has {limits[beyond]} units of {beyond}: there are fewer")
        return tuple(limits.items())
