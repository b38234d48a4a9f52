"""The commands of the study; see the package."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import benchmarks.allocation_study as study
from benchmarks.commands import run_command
from dataset_builders.execution.tasks import Execution
from dataset_builders.sweeps.splits import SPLITS
from verilocc_bench.cli.argument_types import positive

KERNELS_PER_CELL = 60
TIME_LIMIT_SECONDS = 600.0


def main(arguments: list[str] | None = None) -> int:
    return run_command(_parser(), arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="allocation_study", description=study.__doc__)
    commands = parser.add_subparsers(required=True)
    measure = commands.add_parser("measure", help="ask every allocator about a sample")
    measure.add_argument("--dataset", type=Path, required=True, help="a folder")
    measure.add_argument("--kernels-per-cell", type=positive, default=KERNELS_PER_CELL)
    measure.add_argument("--jobs", type=positive, default=1)
    measure.add_argument("--time-limit", type=float, default=TIME_LIMIT_SECONDS)
    measure.add_argument(
        "--split", action="append", choices=SPLITS, help="of this split alone; may be given again"
    )
    measure.add_argument("-o", "--output", type=Path, required=True, help="a file of JSON lines")
    measure.set_defaults(action=_measure)
    copy = commands.add_parser("copy", help="make a dataset of the measured kernels")
    copy.add_argument("study", type=Path, help="what measure has written")
    copy.add_argument("--dataset", type=Path, required=True, help="the same folder")
    copy.add_argument("-o", "--output", type=Path, required=True, help="a folder")
    copy.set_defaults(action=_copy)
    times = commands.add_parser("compiler-times", help="ask llc how long its allocation takes")
    times.add_argument("sample", type=Path, help="the folder that copy has made")
    times.add_argument("-o", "--output", type=Path, required=True, help="a file of JSON lines")
    times.set_defaults(action=_compiler_times)
    report = commands.add_parser("report", help="write the document and its plots")
    report.add_argument("study", type=Path, help="what measure has written")
    report.add_argument("--runnable", type=Path, help="what benchmarks.runnable has written")
    report.add_argument(
        "--machine-code", type=Path, help="what benchmarks.machine_code has written"
    )
    report.add_argument("--compiler-times", type=Path, help="what compiler-times has written")
    report.add_argument("-o", "--output", type=Path, required=True, help="a Markdown file")
    report.add_argument("--images", type=Path, required=True, help="a folder for plots")
    report.set_defaults(action=_report)
    return parser


def _measure(options: argparse.Namespace) -> None:
    from benchmarks.allocation_study.running import measure

    execution = Execution(options.jobs, time_limit_seconds=options.time_limit)
    splits = options.split or SPLITS
    measure(options.dataset, options.output, options.kernels_per_cell, execution, splits)


def _copy(options: argparse.Namespace) -> None:
    from benchmarks.allocation_study.copying import copy_sample

    copy_sample(options.dataset, options.study, options.output)


def _compiler_times(options: argparse.Namespace) -> None:
    from benchmarks.allocation_study.compiler_times import measure_compiler

    measure_compiler(options.sample, options.output)


def _report(options: argparse.Namespace) -> None:
    from benchmarks.allocation_study.document import Sources, report

    sources = Sources(
        options.study,
        options.runnable,
        options.machine_code,
        options.compiler_times,
    )
    report(sources, options.output, options.images)


if __name__ == "__main__":
    sys.exit(main())
