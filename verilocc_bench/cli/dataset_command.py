"""`verilocc-bench dataset`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataset_builders.inspection.findings import CheckReport


SHOWN = 10
"""Lines of one kind that are printed; --json has all."""


def run(options: argparse.Namespace) -> int:
    """Runs the action; the status is 1 if something is wrong or different."""
    actions = {"check": _check, "stats": _stats, "rebuild": _rebuild}
    return actions[options.action](options)


def _check(options: argparse.Namespace) -> int:
    from dataset_builders.inspection.check import check_dataset
    from dataset_builders.inspection.layout import locate_dataset

    folder = locate_dataset(options.folder, hub=True)
    report = check_dataset(
        folder, jobs=options.jobs, labels=options.labels, execute=options.execute
    )
    if options.json:
        print(json.dumps(report.to_json(), indent=2))
    else:
        _print_check(report, labels=options.labels)
    return 0 if report.passed else 1


def _print_check(report: CheckReport, *, labels: bool) -> None:
    kinds: dict[str, list[str]] = {}
    for finding in report.findings:
        kinds.setdefault(finding.kind.value, []).append(str(finding))
    for kind, lines in kinds.items():
        _print_some(f"{kind}: {len(lines)}", lines)
    count = len(report.findings)
    verified = "labels verified" if labels else "labels not verified"
    verdict = f"{count} finding{'s' if count > 1 else ''}" if count else "nothing wrong"
    executed = f", {report.executed} executed" if report.executed else ""
    print(f"{report.rows} rows, {report.files} files, {verified}{executed}: {verdict}")


def _print_some(title: str, lines: Sequence[str]) -> None:
    """Prints the lines, if there are any."""
    if not lines:
        return
    print(title)
    for line in lines[:SHOWN]:
        print(f"  {line}")
    if len(lines) > SHOWN:
        print(f"  … and {len(lines) - SHOWN} more (--json has all)")


def _stats(options: argparse.Namespace) -> int:
    from dataset_builders.inspection.layout import locate_dataset
    from dataset_builders.statistics import draw_plots, statistics_of
    from dataset_builders.statistics.document import statistics_document
    from dataset_builders.statistics.tables import plain_table, statistics_tables

    folder = Path(options.folder)
    statistics = statistics_of(folder if folder.is_dir() else locate_dataset(str(folder)))
    if options.plots is not None:
        draw_plots(statistics, options.plots)
    if options.json:
        print(json.dumps(statistics_document(statistics), indent=2, sort_keys=True))
    else:
        print("\n".join(map(plain_table, statistics_tables(statistics))), end="")
    return 0


def _rebuild(options: argparse.Namespace) -> int:
    from dataset_builders.inspection.layout import locate_dataset
    from dataset_builders.inspection.rebuild import differing_versions, rebuild_rows

    folder = locate_dataset(options.folder)
    if not options.json:
        for tool, (there, here) in differing_versions(folder).items():
            print(f"{tool} is {here or 'not installed'} here, the dataset was built with {there}")
    report = rebuild_rows(
        folder,
        sample=options.sample,
        seed=options.seed,
        ids=options.ids or (),
        jobs=options.jobs,
    )
    if options.json:
        print(json.dumps(report.to_json(), indent=2))
    else:
        rows = report.rows
        different = [f"{row.id} ({row.point}): {row.difference}" for row in rows if row.difference]
        _print_some("different", different)
        print(f"{len(rows) - len(different)} of {len(rows)} rows are the same again")
    return 0 if report.equal else 1
