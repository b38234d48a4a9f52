"""What decides the content of a row, besides its sweep point."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dataset_builders.compilers.toolchains import check_packages, toolchains_of
from dataset_builders.compilers.triton_compiler import kernel_source_hash
from dataset_builders.release import RELEASE_PACKAGES
from dataset_builders.sweeps import SweepPoint
from verilocc_bench.ir.text import FORMAT_LINE

_PACKAGES = Path(__file__).parents[2]


def check_compilers(points: Sequence[SweepPoint]) -> None:
    """Raises MissingExtraError if a compiler, or a package of the release, is not installed.

    The release's packages are checked now, not after hours of compiling.
    """
    purpose = "building a dataset"
    check_packages({"triton": "triton", **RELEASE_PACKAGES}, purpose)
    for toolchain in toolchains_of({point.arch for point in points}):
        toolchain.check(purpose)


def fingerprint(points: Sequence[SweepPoint]) -> dict[str, Any]:
    """Versions, options and kernel sources of the compilers that these points need, as JSON."""
    sources = {point.specification.module: kernel_source_hash(point) for point in points}
    versions = {name: version(name) for name in ("triton", "pyarrow", "verilocc-bench")}
    flags: dict[str, list[str]] = {}
    for toolchain in toolchains_of({point.arch for point in points}):
        versions |= toolchain.versions()
        flags |= {name: list(options) for name, options in toolchain.options.items()}
    return {
        "format": FORMAT_LINE,
        "versions": versions,
        "flags": flags,
        "kernel_sources": dict(sorted(sources.items())),
    }


def representatives(points: Sequence[SweepPoint]) -> tuple[SweepPoint, ...]:
    """One point of each architecture and kernel source: together they have the same fingerprint."""
    found = {(point.arch, point.specification.module): point for point in reversed(points)}
    return tuple(found[key] for key in sorted(found))


def working_agreement(points: Sequence[SweepPoint]) -> Mapping[str, Any]:
    """What must be the same on every machine that takes part in a build of these points.

    This is the fingerprint and a hash of this package's own source, because
    several states of the source can have one version.
    """
    digest = hashlib.sha256()
    for package in ("dataset_builders", "verilocc_bench"):
        for path in sorted((_PACKAGES / package).rglob("*.py")):
            name = path.relative_to(_PACKAGES).as_posix()
            digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return {**fingerprint(points), "source code of verilocc-bench": digest.hexdigest()}
