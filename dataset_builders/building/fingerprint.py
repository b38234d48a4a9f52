"""What decides the content of a row, besides its sweep point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dataset_builders.compilers.toolchains import check_packages, toolchains_of
from dataset_builders.compilers.triton_compiler import kernel_source_hash
from dataset_builders.experts.protocol import ExpertSource
from dataset_builders.experts.registry import SOURCES
from dataset_builders.release import RELEASE_PACKAGES
from dataset_builders.sweeps import SweepPoint
from dataset_builders.sweeps.experts import ExpertPoint
from verilocc_bench.files import files_hash
from verilocc_bench.ir.text import FORMAT_LINE

BuildPoint = SweepPoint | ExpertPoint
"""What can be built."""

_PACKAGES = Path(__file__).parents[2]


def check_compilers(points: Sequence[BuildPoint]) -> None:
    """Raises MissingExtraError if a compiler, or a package of the release, is not installed.

    The release's packages are checked now, not after hours of compiling. Raises
    InputError if the archive of a library is missing.
    """
    purpose = "building a dataset"
    own, libraries = _own_points(points), _libraries(points)
    check_packages(({"triton": "triton"} if own else {}) | RELEASE_PACKAGES, purpose)
    for toolchain in toolchains_of({point.arch for point in own}):
        toolchain.check(purpose)
    for library in libraries:
        library.check(purpose)


def fingerprint(points: Sequence[BuildPoint]) -> dict[str, Any]:
    """Versions, options and kernel sources of the compilers that these points need, as JSON."""
    own = _own_points(points)
    sources = {point.specification.module: kernel_source_hash(point) for point in own}
    names = (*(("triton",) if own else ()), "pyarrow", "verilocc-bench")
    versions = {name: version(name) for name in names}
    flags: dict[str, list[str]] = {}
    archs = {point.arch for point in own}
    for toolchain in toolchains_of(archs):
        versions |= toolchain.versions()
        flags |= {name: list(options) for name, options in toolchain.options(archs).items()}
    for library in _libraries(points):
        versions |= library.versions()
        flags |= {name: list(options) for name, options in library.flags().items()}
        sources |= library.sources()
    return {
        "format": FORMAT_LINE,
        "versions": versions,
        "flags": flags,
        "kernel_sources": dict(sorted(sources.items())),
    }


def representatives(points: Sequence[BuildPoint]) -> tuple[BuildPoint, ...]:
    """One point of each architecture and kernel source: together they have the same fingerprint."""
    found: dict[tuple[str, str], BuildPoint] = {}
    for point in points:
        source = point.library if isinstance(point, ExpertPoint) else point.specification.module
        found.setdefault((point.arch, source), point)
    return tuple(found[key] for key in sorted(found))


def _own_points(points: Sequence[BuildPoint]) -> list[SweepPoint]:
    """The points of our own kernels."""
    return [point for point in points if isinstance(point, SweepPoint)]


def _libraries(points: Sequence[BuildPoint]) -> list[ExpertSource]:
    """The libraries of the other points, in their order."""
    names = {point.library for point in points if isinstance(point, ExpertPoint)}
    return [source for name, source in SOURCES.items() if name in names]


def working_agreement(points: Sequence[BuildPoint]) -> Mapping[str, Any]:
    """What must be the same on every machine that takes part in a build of these points.

    This is the fingerprint and a hash of this package's own source, because
    several states of the source can have one version.
    """
    paths = [
        path
        for package in ("dataset_builders", "verilocc_bench")
        for path in sorted((_PACKAGES / package).rglob("*.py"))
    ]
    return {**fingerprint(points), "source code of verilocc-bench": files_hash(_PACKAGES, paths)}
