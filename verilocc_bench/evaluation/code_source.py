"""The compiled code of the rows of a run, from the dataset's raw config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import RawRow, load_raw_rows
from verilocc_bench.errors import InputError

if TYPE_CHECKING:  # reading code needs half of the package, and runs over rows need no code
    from verilocc_bench.backends import Kernel


@dataclass(frozen=True, slots=True)
class CodeSource:
    """The dataset and the splits that a run takes its rows from, as `load_rows` takes them."""

    dataset: str
    splits: tuple[str, ...]
    revision: str | None = None

    def kernel(self, problem: AllocationProblem) -> Kernel[Any]:
        """The compiled code of a row's problem.

        Raises InputError if the dataset has none, or it is another function's.
        """
        from verilocc_bench.backends import backend_of

        backend = backend_of(problem.target)
        for split in self.splits:
            place = self.dataset, split, self.revision, problem.target.name
            raw = _raw_rows(*place, backend.raw_format).get(problem.id)
            if raw is not None:
                return backend.read_raw(raw.content, problem, f"row {raw.id}")
        raise InputError(
            f"the dataset has no machine code of {problem.id!r}, which --runnable and "
            "--compiled need",
            source=self.dataset,
        )


@lru_cache(maxsize=8)
def _raw_rows(
    dataset: str, split: str, revision: str | None, arch: str, raw_format: str
) -> Mapping[str, RawRow]:
    return load_raw_rows(dataset, split=split, revision=revision, arch=arch, raw_format=raw_format)
