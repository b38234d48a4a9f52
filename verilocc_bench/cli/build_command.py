"""`verilocc-bench build`."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from verilocc_bench.errors import InputError

if TYPE_CHECKING:
    from dataset_builders.building.build import BuildReport


def run(options: argparse.Namespace) -> int:
    """Builds the dataset and says what became of the points."""
    from dataset_builders.building.build import build_dataset
    from dataset_builders.execution.tasks import Execution
    from dataset_builders.experts.expert_sweep import EXPERT_SWEEPS_BY_NAME
    from dataset_builders.sweeps import sweep_named
    from dataset_builders.sweeps.experts import EXPERT
    from dataset_builders.sweeps.fresh import FRESH, fresh_sweep

    experts = EXPERT_SWEEPS_BY_NAME.get(options.sweep)
    fresh = options.sweep == FRESH
    if fresh is (options.seed is None):
        raise InputError(f"the sweep {FRESH!r} needs --seed, and no other takes it")
    if options.beside is not None and experts is None and not fresh:
        raise InputError(f"--beside is for the sweeps {FRESH!r} and {EXPERT!r}")
    sweep = experts or (fresh_sweep(options.seed) if fresh else sweep_named(options.sweep))
    execution = Execution(options.jobs, options.scheduler, options.time_limit)
    report = build_dataset(
        sweep,
        options.arch,
        options.output,
        limit=options.limit,
        every=options.every,
        execution=execution,
        beside=options.beside,
    )
    if report.summary is None:
        print(f"{options.output} is complete: nothing to do", file=sys.stderr)
        return 0
    for (folder, arch, family, split), count in sorted(report.summary.rows.items()):
        track = "assign" if folder == "data" else folder
        print(f"{track:8} {arch:8} {family:6} {split:12} {count:6}")
    for kind, count in sorted(report.summary.rejected.items()):
        print(f"rejected: {kind} {count}")
    print(_times(report), file=sys.stderr)
    return 0


def _times(report: BuildReport) -> str:
    timings = report.timings
    compiling = timings.triton_seconds + timings.compiler_seconds
    words = f"{report.compiled} compiled, {report.resumed} resumed, {report.wall_seconds:.1f} s"
    if report.compiled and report.compile_seconds:
        words += f", {60 * report.compiled / report.compile_seconds:.1f} kernels/min"
    if compiling + timings.own_seconds:
        words += (
            f"; {compiling / (compiling + timings.own_seconds):.0%} of the work in Triton "
            f"({timings.triton_seconds:.1f} s) and the vendors' compilers "
            f"({timings.compiler_seconds:.1f} s)"
        )
    return words
