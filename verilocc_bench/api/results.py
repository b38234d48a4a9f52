"""The results of runs: tables, failures, comparisons, files."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tabulate import tabulate

from verilocc_bench.errors import InputError
from verilocc_bench.evaluation import TableStyle, allocator_label, results_tables
from verilocc_bench.evaluation.comparison import RunComparison, compare_runs
from verilocc_bench.evaluation.results import ANSWERS, RESULTS, SAMPLES
from verilocc_bench.evaluation.schema import read_results
from verilocc_bench.files import open_input, parse_json, write_atomically
from verilocc_bench.model.transcripts import TRANSCRIPTS, Exchange, read_transcripts

if TYPE_CHECKING:
    import pandas

FILES = (RESULTS, SAMPLES, ANSWERS)
FAILURES_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Failure:
    """A sample without a valid answer: `kind` says why, as `failures` of results.json.

    `message` is the first finding of a wrong answer, or the allocator's own
    words. `traceback` is there where an allocator in Python crashed. `exchanges` are what a
    language model was asked and said, if that was kept; `stopped_at` is the character of the last
    completion at which reading stopped.
    """

    model: str
    id: str
    task: str
    sample: int
    kind: str
    message: str
    traceback: str | None = field(default=None, repr=False)
    exchanges: tuple[Exchange, ...] = field(default=(), repr=False)
    stopped_at: int | None = None

    def __str__(self) -> str:
        told = self.traceback or self.message
        return f"{self.model} on {self.id} ({self.task}), sample {self.sample}, {self.kind}: {told}"


class Failures(list[Failure]):
    """The failures of runs, in their order; printed as a table."""

    def _table(self, form: str) -> str:
        rows = [(f.model, f.id, f.task, f.sample, f.kind, f.message) for f in self[:FAILURES_SHOWN]]
        headers = ("model", "id", "task", "sample", "kind", "message")
        return tabulate(rows, headers=headers, tablefmt=form, disable_numparse=True)

    def __repr__(self) -> str:
        if not self:
            return "no failures"
        more = len(self) - FAILURES_SHOWN
        return self._table("simple") + (f"\nand {more} more" if more > 0 else "")

    def _repr_html_(self) -> str:
        return self._table("html") if self else "<p>no failures</p>"


class TemporaryFolder:
    """A folder that goes when the last Results that need it have gone, or Python ends."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="verilocc-bench-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


class Results:
    """The results of one run or of several.

    `documents` are as results.json, and `folders` hold the files of each run.
    Prints as a table; a notebook shows it as HTML.
    """

    def __init__(
        self,
        documents: Sequence[Mapping[str, Any]],
        folders: Sequence[Path],
        temporary: TemporaryFolder | None = None,
    ) -> None:
        self.documents = tuple(dict(document) for document in documents)
        self.folders = tuple(folders)
        self._temporary = temporary  # the folders go when the results go

    @property
    def models(self) -> tuple[str, ...]:
        """The name of each run's model."""
        return tuple(str(document["config"]["model"]) for document in self.documents)

    @property
    def document(self) -> dict[str, Any]:
        """The document of the only run. Raises InputError if there are several."""
        if len(self.documents) != 1:
            raise InputError(f"there are {len(self.documents)} runs: choose one, as results[model]")
        return self.documents[0]

    def __getitem__(self, model: str) -> Results:
        """The run of one model. Raises InputError for another model."""
        if model not in self.models:
            raise InputError(f"there is no run of {model!r}, only of {', '.join(self.models)}")
        place = self.models.index(model)
        return Results([self.documents[place]], [self.folders[place]], self._temporary)

    def __len__(self) -> int:
        return len(self.documents)

    def __str__(self) -> str:
        failed = sum(sum(d["results"]["overall"]["failures"].values()) for d in self.documents)
        note = f"\n{failed} samples without a valid answer: see failures()" if failed else ""
        width = shutil.get_terminal_size().columns
        return results_tables(self.documents, TableStyle(width=width)) + note

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return results_tables(self.documents, TableStyle("html"))

    def to_pandas(self) -> pandas.DataFrame:
        """One line a function and model: the `kernels` of results.json, and `model`."""
        import pandas as pd

        records = [
            {"model": allocator_label(document["config"]), **kernel}
            for document in self.documents
            for kernel in document["kernels"]
        ]
        return pd.DataFrame.from_records(records)

    def failures(self) -> Failures:
        """Every sample without a valid answer, run after run."""
        return Failures(
            failure
            for model, folder in zip(self.models, self.folders, strict=True)
            for failure in _failures(model, folder)
        )

    def compare(self, other: Results) -> RunComparison:
        """This run and another, function by function, over those that both were asked.

        Raises InputError if one has several runs, if they are on different
        tracks or budgets, or if no function is in both.
        """
        return compare_runs(self.document, other.document)

    def save(self, path: str | Path) -> None:
        """Copies the files of the runs into a folder, several runs into a folder each.

        Raises InputError if there are results of a run already.
        """
        path = Path(path)
        targets = [path]
        if len(self.folders) > 1:
            targets = [path / folder.name for folder in self.folders]
        for target in targets:
            if (target / RESULTS).exists():
                raise InputError("holds the results of a run already", source=target)
        for folder, target in zip(self.folders, targets, strict=True):
            if (folder / TRANSCRIPTS).exists():
                write_atomically(target / TRANSCRIPTS, (folder / TRANSCRIPTS).read_bytes())
            for name in reversed(FILES):  # results.json last: it says that all is there
                write_atomically(target / name, (folder / name).read_bytes())


def load_results(path: str | Path) -> Results:
    """The results in a folder that `evaluate` or `Results.save` wrote, of one run or several.

    Raises InputError without results, or if a file is damaged.
    """
    path = Path(path)
    found = (
        [path] if (path / RESULTS).exists() else sorted(p.parent for p in path.glob(f"*/{RESULTS}"))
    )
    if not found:
        raise InputError(f"expected a folder with a {RESULTS}, as evaluate writes", source=path)
    return Results([read_results(folder / RESULTS) for folder in found], found)


def _failures(model: str, folder: Path) -> Iterator[Failure]:
    path, transcripts = folder / SAMPLES, read_transcripts(folder)
    with open_input(path) as file:
        for number, line in enumerate(file, 1):
            record = parse_json(line.decode(errors="replace"), path, number)
            try:
                if record["valid"]:
                    continue
                findings = (record["verdict"] or {}).get("findings", ())
                key = str(record.get("configuration")), record["id"], record["sample"]
                stopped = record["details"].get("stopped_at")
                yield Failure(
                    model,
                    str(record["id"]),
                    str(record["task"]),
                    int(record["sample"]),
                    str(record["failure"] or "invalid"),
                    str(findings[0]["message"] if findings else record["message"]),
                    record.get("traceback"),
                    tuple(transcripts.get(key, ())),
                    None if stopped is None else int(stopped),
                )
            except (AttributeError, IndexError, KeyError, TypeError, ValueError):
                raise InputError(
                    "expected a sample as evaluate writes", source=path, line=number
                ) from None
