"""The runs of a report: reads and names them, and separates those that cannot be compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.schema import read_results
from verilocc_bench.evaluation.table import allocator_label

RESULTS = "results.json"
NAME_LENGTH = 120


@dataclass(frozen=True, slots=True)
class ReportedRun:
    """A results document under a name that no other run of the report has."""

    name: str
    folder: Path
    document: Mapping[str, Any]

    @property
    def results(self) -> Mapping[str, Any]:
        """The records by task, and `overall`."""
        results: Mapping[str, Any] = self.document["results"]
        return results

    @property
    def overall(self) -> Mapping[str, Any]:
        """The record of all functions."""
        record: Mapping[str, Any] = self.results["overall"]
        return record

    @property
    def kernels(self) -> Sequence[Mapping[str, Any]]:
        """The figures of each function."""
        kernels: Sequence[Mapping[str, Any]] = self.document["kernels"]
        return kernels

    @property
    def ks(self) -> tuple[int, ...]:
        """The k of its pass@k."""
        return tuple(sorted(self.document["config"]["k"]))

    @property
    def conditions(self) -> dict[str, str]:
        """What runs must have in common to stand in one table, by name, in order."""
        config, dataset = self.document["config"], self.document["dataset"]
        return {
            "dataset": plain(dataset["name"]),
            "revision": plain(dataset["revision"] or ""),
            "hash": plain(dataset["hash"]),
            "track": config["track"],
            "split": plain(config["split"]),
            "budget": config["budget"],
            "assistance": config["assistance"],
            "decoding": config["decoding"],
        }


@dataclass(frozen=True, slots=True)
class ComparableRuns:
    """Runs under the same conditions: they may be compared."""

    runs: tuple[ReportedRun, ...]

    @property
    def conditions(self) -> dict[str, str]:
        """See ReportedRun."""
        return self.runs[0].conditions

    @property
    def short_dataset(self) -> str:
        """The dataset's name with the beginning of its hash."""
        return f"{self.conditions['dataset']} ({self.conditions['hash'][:12]})"

    @property
    def title(self) -> str:
        """A heading that tells these runs from those under other conditions."""
        told = self.conditions
        budget = "" if told["budget"] == "full" else f" at budget {told['budget']}"
        return (
            f"{self.short_dataset}, {told['track']} track{budget}, {told['split']} split: "
            f"assistance {told['assistance']}, decoding {told['decoding']}"
        )


def printable(text: str) -> str:
    """Text as one line of printable characters."""
    return "".join(c if c.isprintable() else f"\\u{{{ord(c):x}}}" for c in text)


def plain(text: str) -> str:
    """Text of a file as one printable line of bounded length."""
    shown = printable(text)
    return shown if len(shown) <= NAME_LENGTH else shown[: NAME_LENGTH - 1] + "…"


def read_runs(folders: Sequence[Path]) -> tuple[ReportedRun, ...]:
    """The runs in these folders, in their order.

    A folder stands for its own results and for the folders in it that have results, in
    the order of their names. Raises InputError for a folder with neither, and
    for a run that is given twice.
    """
    found = [path for folder in folders for path in _result_folders(folder)]
    repeated = [path for path, n in Counter(path.resolve() for path in found).items() if n > 1]
    if repeated:
        raise InputError("the same run is given twice", source=repeated[0])
    documents = [read_results(folder / RESULTS) for folder in found]
    models = [plain(allocator_label(document["config"])) for document in documents]
    times = Counter(models)
    return tuple(
        ReportedRun(model if times[model] == 1 else f"{model} in {folder}", folder, document)
        for model, folder, document in zip(models, found, documents, strict=True)
    )


def _result_folders(folder: Path) -> list[Path]:
    if not folder.is_dir():
        expected = "is not a folder" if folder.exists() else "does not exist"
        raise InputError(f"expected a folder with a {RESULTS}; this {expected}", source=folder)
    within = sorted(path.parent for path in folder.glob(f"*/{RESULTS}"))
    if (folder / RESULTS).exists():
        within.insert(0, folder)
    if not within:
        raise InputError(f"expected a {RESULTS} in this folder, as evaluate writes", source=folder)
    return within


def size_order(size: str) -> int:
    """Where a group by size begins, in virtual registers: `256-511` at 256."""
    return int(size.partition("-")[0])


def make_sections(runs: Sequence[ReportedRun]) -> tuple[ComparableRuns, ...]:
    """The runs by their conditions, which are in order; else runs keep their order."""
    found: dict[tuple[str, ...], list[ReportedRun]] = {}
    for run in runs:
        found.setdefault(tuple(run.conditions.values()), []).append(run)
    return tuple(ComparableRuns(tuple(found[conditions])) for conditions in sorted(found))


def report_notes(sections: Sequence[ComparableRuns]) -> list[str]:
    """Why the runs stand in more than one section."""
    if len(sections) < 2:
        return []
    notes = [
        "Runs of different datasets, tracks, splits, assistance or decoding are never in one "
        f"table: there are {len(sections)} sections."
    ]
    datasets: dict[tuple[str, str], set[tuple[str, str, str]]] = {}
    for told in (section.conditions for section in sections):
        found = datasets.setdefault((told["track"], told["split"]), set())
        found.add((told["dataset"], told["revision"], told["hash"]))
    for (track, split), found in datasets.items():
        if len(found) > 1:
            notes.append(
                f"The runs on the {track} track, {split} split, are of {len(found)} different "
                "datasets or versions of one: their figures cannot be compared."
            )
    return notes


def section_notes(section: ComparableRuns) -> list[str]:
    """What makes runs of one section hard to compare."""
    notes = []
    covered = [{(k["split"], k["id"]) for k in run.kernels} for run in section.runs]
    if any(kernels != covered[0] for kernels in covered):
        counts = ", ".join(
            f"{run.name}: {len(kernels)}"
            for run, kernels in zip(section.runs, covered, strict=True)
        )
        common = len(set.intersection(*covered))
        notes.append(f"The runs cover different kernels ({counts}; {common} in all of them).")
    failed = [
        f"{run.name}: {run.overall['infrastructure_failures']}"
        for run in section.runs
        if run.overall["infrastructure_failures"]
    ]
    if failed:
        notes.append(
            "Samples that count nowhere, for a server, network or machine failed "
            f"({', '.join(failed)}): run evaluate again to have them asked again."
        )
    return notes
