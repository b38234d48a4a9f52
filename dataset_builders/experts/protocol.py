"""A library of experts' kernels: what each must offer, so that its kernels become rows."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dataset_builders.compilers.built_kernel import BuiltKernel, make_row
from dataset_builders.experts.archives import Archive
from dataset_builders.sweeps.experts import ExpertPoint
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import Row
from verilocc_bench.ir.text import FORMAT_LINE


@dataclass(frozen=True, slots=True)
class ExpertSource(ABC):
    """A library of kernels for one architecture.

    `library` is its name, as in `ExpertPoint` and in the name of its licence's
    file; `license` the SPDX identifier. `hashes` are the keys of a row's
    provenance that hold a SHA-256.
    """

    library: str
    license: str
    arch: str
    archive: Archive
    hashes: tuple[str, ...]

    @abstractmethod
    def points(self) -> Sequence[ExpertPoint]:
        """The candidates, each once, in a fixed order.

        Raises InputError if the archive is needed for that and is not there.
        """

    @abstractmethod
    def build(self, point: ExpertPoint) -> BuiltKernel:
        """The row of one candidate, with its raw code.

        Raises RejectedKernel, with a kind and a reason, if there is none, and
        InputError or MissingExtraError if a tool or the archive is missing.
        """

    @abstractmethod
    def versions(self) -> dict[str, str]:
        """The versions of the library and of the tools that make its rows."""

    @abstractmethod
    def flags(self) -> dict[str, tuple[str, ...]]:
        """The options of these tools, by tool or stage."""

    def sources(self) -> dict[str, str]:
        """The SHA-256 of everything that the rows are made of besides the tools."""
        return {self.library: self.archive.sha256}

    @abstractmethod
    def label_source(self, versions: Mapping[str, str]) -> str:
        """The column `label_source`, from the versions in a row's provenance."""

    @abstractmethod
    def check(self, purpose: str) -> None:
        """Raises InputError or MissingExtraError if a tool or the archive is missing."""

    def row(
        self,
        point: ExpertPoint,
        problem: AllocationProblem,
        label: Mapping[str, str],
        registers_used: Mapping[str, int] | None,
        *,
        source: bytes,
        provenance: Mapping[str, Any],
    ) -> Row:
        """The row of a candidate with this label; `provenance` is what is its own."""
        versions = self.versions()
        return make_row(
            point,
            problem,
            track="assign",
            label=label,
            label_source=self.label_source(versions),
            alternatives={},
            registers_used=registers_used,
            provenance={
                "library": self.library,
                "versions": versions,
                "flags": {name: list(options) for name, options in self.flags().items()},
                "archive_sha256": self.archive.sha256,
                "format": FORMAT_LINE,
                "point": point.key,
                "source_sha256": hashlib.sha256(source).hexdigest(),
                **provenance,
            },
            license_name=self.license,
        )
