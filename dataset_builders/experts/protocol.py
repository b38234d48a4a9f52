"""What a library of experts' kernels must offer, so that its kernels become rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from dataset_builders.compilers.built_kernel import BuiltKernel
from dataset_builders.experts.archives import Archive
from dataset_builders.sweeps.experts import ExpertPoint


class ExpertSource(Protocol):
    """A library of kernels for one architecture."""

    @property
    def library(self) -> str:
        """Its name, as `ExpertPoint.library` and in the name of its licence's file."""
        ...

    @property
    def license(self) -> str:
        """The SPDX identifier of its licence: the column `license` of its rows."""
        ...

    @property
    def arch(self) -> str:
        """The architecture of its kernels."""
        ...

    @property
    def archive(self) -> Archive:
        """The file that holds the library."""
        ...

    @property
    def hashes(self) -> tuple[str, ...]:
        """The keys of a row's provenance that hold a SHA-256."""
        ...

    def points(self) -> Sequence[ExpertPoint]:
        """The candidates, each once, in a fixed order.

        Raises InputError if the archive is needed for that and is not there.
        """
        ...

    def build(self, point: ExpertPoint) -> BuiltKernel:
        """The row of one candidate, with its raw code.

        Raises RejectedKernel, with a kind and a reason, if there is none, and
        InputError or MissingExtraError if a tool or the archive is missing.
        """
        ...

    def versions(self) -> Mapping[str, str]:
        """The versions of the library and of the tools that make its rows."""
        ...

    def flags(self) -> Mapping[str, tuple[str, ...]]:
        """The options of these tools, by tool or stage."""
        ...

    def sources(self) -> Mapping[str, str]:
        """The SHA-256 of everything that the rows are made of besides the tools."""
        ...

    def label_source(self, versions: Mapping[str, str]) -> str:
        """The column `label_source`, from the versions in a row's provenance."""
        ...

    def check(self, purpose: str) -> None:
        """Raises InputError or MissingExtraError if a tool or the archive is missing."""
        ...
