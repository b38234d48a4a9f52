"""`verilocc-bench build`."""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec

from verilocc_bench.cuda_tools import CUDA_TOOLS, find_tool
from verilocc_bench.errors import MissingExtraError
from verilocc_bench.targets import get_target

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Builds the dataset and says what became of the points."""
    from dataset_builders.building.build import build_dataset
    from dataset_builders.sweeps import sweep_named

    sweep = sweep_named(options.sweep)
    archs = {point.arch for point in sweep.points(options.arch)[: options.limit]}
    packages = ["triton"]
    if any(get_target(arch).vendor == "amd" for arch in archs):
        packages.append("llvmlite")
    for package in packages:
        if find_spec(package) is None:
            raise MissingExtraError(package, "build", "building a dataset")
    if any(get_target(arch).vendor == "nvidia" for arch in archs):
        for tool in CUDA_TOOLS:
            find_tool(tool)
    report = build_dataset(
        sweep, options.arch, options.output, limit=options.limit, jobs=options.jobs
    )
    if report.summary is None:
        print(f"{options.output} is complete: nothing to do", file=sys.stderr)
        return 0
    for (folder, arch, family, split), count in sorted(report.summary.rows.items()):
        track = "assign" if folder == "data" else folder
        print(f"{track:8} {arch:8} {family:6} {split:12} {count:6}")
    for kind, count in sorted(report.summary.rejected.items()):
        print(f"rejected: {kind} {count}")
    timings = report.timings
    compiling = timings.triton_seconds + timings.compiler_seconds
    spent = compiling + timings.own_seconds
    if spent:
        print(
            f"{report.compiled} compiled, {report.resumed} resumed, "
            f"{report.wall_seconds:.1f} s; "
            f"{compiling / spent:.0%} of the work in Triton ({timings.triton_seconds:.1f} s) "
            f"and the vendors' compilers ({timings.compiler_seconds:.1f} s)",
            file=sys.stderr,
        )
    return 0
