"""Problems to work on: rows of a dataset, files of normalized text, and compiled code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from verilocc_bench.dataset import EMBEDDED, Row, check_row, load_raw_row, load_rows, no_rows
from verilocc_bench.edits import NamedAssignment
from verilocc_bench.edits.answer_files import parse_answer
from verilocc_bench.errors import InputError
from verilocc_bench.files import decode_text, parse_json, read_data
from verilocc_bench.ir import Function, parse_function
from verilocc_bench.targets import get_target

LABEL_OF_CODE = "the compiler"
"""The `label_source` of the assignment that compiled code itself has."""

NORMALIZED_START = "verilocc-bench "
SHORTEST_PREFIX = 4
"""The fewest characters of an id that name it, where they begin no other."""

TRACKS = ("assign", "split")


@dataclass(frozen=True, slots=True)
class DatasetPlace:
    """The dataset that a problem comes from, as `load_rows` takes it."""

    name: str = EMBEDDED
    split: str = "test"
    revision: str | None = None


class Problem(AllocationProblem):
    """An allocation problem, with the compilers' answers and the code where they are known.

    `title` is for people. `alternatives` has further assignments by source.
    `row` is the row of the dataset that it comes from. All analyses of
    AllocationProblem are there: `function`, `normalized`, `id`, `target`,
    `liveness`, `pressure`, `placements`.
    """

    def __init__(
        self,
        function: Function,
        normalized: str | None = None,
        *,
        title: str = "function",
        label: NamedAssignment | None = None,
        label_source: str = "label",
        alternatives: Mapping[str, NamedAssignment] | None = None,
        row: Row | None = None,
        place: DatasetPlace | None = None,
        kernel: Kernel[Any] | None = None,
    ) -> None:
        super().__init__(function, normalized)
        self.title = title
        self._label, self._label_source = label, label_source
        self._label_absence: str | None = None
        self.alternatives = dict(alternatives or {})
        self.row, self.place = row, place
        self._kernel = kernel

    @property
    def label(self) -> NamedAssignment | None:
        """The compiler's own assignment, or None, see `label_absence`.

        For machine IR or LLVM IR of one's own it is read off llc's output, once.
        """
        self._ask_the_compiler()
        return self._label

    @property
    def label_source(self) -> str:
        """The compiler that the label is from, such as `llvm-greedy 22.1.8`."""
        self._ask_the_compiler()
        return self._label_source

    @property
    def label_absence(self) -> str | None:
        """The reason why code of one's own has no label: llc is missing, or splits live ranges."""
        self._ask_the_compiler()
        return self._label_absence

    @property
    def remarks(self) -> tuple[str, ...]:
        """What to know of code of one's own, one line each: that it is from too early, say."""
        if self.row is not None or self._kernel is None:
            return ()
        return backend_of(self.target).remarks(self._kernel)

    def _ask_the_compiler(self) -> None:
        if self._label is not None or self._label_absence is not None:
            return
        if self.row is not None or self._kernel is None:
            return
        try:
            found = backend_of(self.target).compiler_answer(self._kernel)
        except InputError as error:
            self._label_absence = error.message
        else:
            self._label, self._label_source = found

    @property
    def arch(self) -> str:
        """The name of the target, such as `gfx942`."""
        return self.target.name

    @property
    def family(self) -> str | None:
        """The family of the row's kernel, such as `gemm`; None for a file."""
        return None if self.row is None else self.row.family

    def kernel(self) -> Kernel[Any]:
        """The compiled code: of the file, or of the dataset's raw config.

        Raises InputError without one, or if it is another function's.
        """
        if self._kernel is None:
            if self.place is None:
                raise InputError(
                    f"{self.title}: there is no compiled code, only normalized text: "
                    "expected a row of a dataset, machine IR or a cubin"
                )
            self._kernel = _raw_kernel(self, self.place)
        return self._kernel

    def __repr__(self) -> str:
        function = self.function
        facts = (
            self.arch,
            *(() if self.family is None else (self.family,)),
            f"{function.instruction_count} instructions",
            f"{len(function.virtual_registers)} virtual registers",
        )
        return f"<Problem {self.id} {self.title!r}: {', '.join(facts)}>"


def load_problems(
    dataset: str | Path = EMBEDDED,
    *,
    split: str = "test",
    track: str = "assign",
    arch: str | Sequence[str] | None = None,
    family: str | Sequence[str] | None = None,
    limit: int | None = None,
    revision: str | None = None,
) -> list[Problem]:
    """The problems of a dataset, in its order.

    `dataset` is `mini`, which comes along, a folder, or an id of the Hugging
    Face Hub, there at `revision`. `arch` and `family` choose some; `limit` is
    the most of all. Raises InputError for a dataset, split or architecture that
    there is not, and if no row is left.
    """
    if limit is not None and limit < 0:
        raise InputError(f"limit: expected a number from 0, not {limit}")
    place = DatasetPlace(str(dataset), split, revision)
    archs, families = names(arch), names(family)
    for name in archs or ():
        get_target(name)
    rows = load_rows(
        place.name, split=split, track=track, revision=revision, check_texts=False
    ).rows
    chosen = [
        row
        for row in rows
        if (archs is None or row.arch in archs) and (families is None or row.family in families)
    ][:limit]
    if not chosen and limit != 0:
        raise no_rows(place.name, archs)
    return [_of_row(row, place) for row in chosen]


def load_problem(
    source: str | Path,
    *,
    dataset: str | Path = EMBEDDED,
    split: str = "test",
    revision: str | None = None,
    arch: str | None = None,
    function: str | None = None,
    max_threads: int | None = None,
) -> Problem:
    """One problem: by the id of a row of `dataset`, or its beginning, or from a file.

    A kernel's name does as well, where the dataset has one row of it.

    A file holds normalized text, a row as JSON, LLVM IR or machine IR for AMD
    (`.ll`, `.mir`), PTX or a cubin. llc and ptxas are run where they are needed.
    For compiled code `arch` names the target where the code does not, `function`
    chooses one of several kernels, and `max_threads` replaces the code's own
    size of a block. Raises InputError, with the place, for anything else.
    """
    place = DatasetPlace(str(dataset), split, revision)
    return read_problem(str(source), place, ReadOptions(arch, function, max_threads))


def read_problem(
    source: str,
    place: DatasetPlace,
    options: ReadOptions,
    check: Callable[[Backend[Any]], object] = lambda _: None,
) -> Problem:
    """See `load_problem`. `check` is called with the back end before any code is read."""
    path = Path(source)
    if not path.is_file():
        if path.is_dir():
            raise InputError("expected a file, this is a folder", source=path)
        if path.suffix or path.name != source:
            raise InputError("there is no such file", source=path)
        problem = _by_id(source, place)
        _refuse_code_options(options, path)
        check(backend_of(problem.target))
        return problem
    data = read_data(path)
    if not any(backend.holds(data) for backend in BACKENDS):
        text = decode_text(data, path)
        start = text.lstrip()
        if path.suffix == ".json" or start.startswith(("{", NORMALIZED_START)):
            _refuse_code_options(options, path)
            normalized = start.startswith(NORMALIZED_START)
            return _of_text(path, text) if normalized else _of_row_json(path, text)
    backend = backend_of_file(data)
    check(backend)
    kernel = backend.read(data, path, options)
    return Problem(
        kernel.problem.function,
        kernel.problem.normalized,
        title=f"{path.name}: {kernel.name}",
        label=kernel.label,
        label_source=LABEL_OF_CODE,
        kernel=kernel,
    )


def _refuse_code_options(options: ReadOptions, path: Path) -> None:
    for name, value in (
        ("arch", options.arch),
        ("function", options.function),
        ("max_threads", options.max_threads),
    ):
        if value is not None:
            option = "--" + name.replace("_", "-")
            raise InputError(f"{option} is for compiled code, this is none", source=path)


def names(chosen: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """One name, several, or None for all, as a tuple."""
    if chosen is None:
        return None
    return (chosen,) if isinstance(chosen, str) else tuple(chosen)


def _of_row(row: Row, place: DatasetPlace) -> Problem:
    check_row(vars(row), place.name)
    return Problem(
        parse_function(row.normalized, f"row {row.id}"),
        row.normalized,
        title=f"{row.kernel} {row.id}",
        # Copies: rows are kept for all who load them.
        label=None if row.label is None else dict(row.label),
        label_source=row.label_source,
        alternatives={source: dict(each) for source, each in row.other_labels.items()},
        row=row,
        place=place,
    )


def _by_id(identifier: str, place: DatasetPlace) -> Problem:
    found: list[Row] = []
    named: list[Row] = []
    for track in TRACKS:
        try:
            rows = load_rows(
                place.name,
                split=place.split,
                track=track,
                revision=place.revision,
                check_texts=False,
            ).rows
        except InputError:
            if track == TRACKS[0]:
                raise
            break
        found += [row for row in rows if row.id.startswith(identifier)]
        named += [row for row in rows if row.kernel == identifier]
    if len({row.id for row in named}) == 1:
        return _of_row(named[0], place)
    if named:
        ids = ", ".join(f"{row.id} ({row.arch})" for row in named[:3])
        raise InputError(f"{len(named)} rows are of the kernel {identifier!r}: {ids}")
    if len({row.id for row in found}) == 1 and len(identifier) >= SHORTEST_PREFIX:
        return _of_row(found[0], place)
    if len(identifier) >= SHORTEST_PREFIX and found:
        ids = ", ".join(sorted({row.id for row in found})[:3])
        raise InputError(f"{identifier!r} begins {len(found)} ids: {ids}")
    raise InputError(
        f"{identifier!r} is neither a file nor an id of the dataset "
        f"{place.name!r}, split {place.split!r}"
    )


def _of_text(
    path: Path, text: str, label: NamedAssignment | None = None, label_source: str = "label"
) -> Problem:
    try:
        problem = Problem(
            parse_function(text, str(path)),
            text,
            title=path.name,
            label=label,
            label_source=label_source,
        )
    except InputError as error:
        raise error.located(path) from None
    try:
        _ = problem.liveness  # every use needs it, and it can refuse the function
    except InputError as error:
        raise InputError(error.message, source=path) from None
    return problem


def _of_row_json(path: Path, text: str) -> Problem:
    row = parse_json(text, path)
    normalized = row.get("normalized") if isinstance(row, dict) else None
    if not isinstance(normalized, str):
        raise InputError("expected a row with its column 'normalized'", source=path)
    label = row.get("assignment")
    if isinstance(label, str):
        label = parse_json(label, f"{path}, column assignment")
    if label is not None:
        label = parse_answer({"assignment": label}, path)[1].assignment
    problem = _of_text(path, normalized, label, str(row.get("label_source", "label")))
    check_row(row, path)
    return problem


def _raw_kernel(problem: Problem, place: DatasetPlace) -> Kernel[Any]:
    backend = backend_of(problem.target)
    raw = load_raw_row(place.name, problem.id, split=place.split, revision=place.revision)
    source = f"row {raw.id}"
    if raw.format != backend.raw_format:
        raise InputError(
            f"expected raw code in the format {backend.raw_format!r}, "
            f"the dataset has {raw.format[:40]!r}",
            source=source,
        )
    return backend.read_raw(raw.content, problem, source)
