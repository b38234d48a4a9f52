"""The sample: evenly spaced over the sizes of every architecture and family."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from dataset_builders.sweeps.splits import SPLITS
from verilocc_bench.dataset import Row, iterate_rows
from verilocc_bench.errors import InputError

GOLDEN_RATIO = 0.618033988749895


@dataclass(frozen=True, slots=True)
class SampledKernel:
    """A row of the assign track with its split."""

    row: Row
    split: str


def load_kernels(folder: Path, splits: Sequence[str] = SPLITS) -> list[SampledKernel]:
    """The kernels of the assign track of a dataset folder. Raises InputError without any."""
    if not folder.is_dir():
        raise InputError("expected the folder of a dataset", source=folder)
    kernels = []
    for split in splits:
        if any(folder.glob(f"data/*/*/{split}-*.parquet")):
            kernels += [SampledKernel(row, split) for row in iterate_rows(str(folder), split=split)]
    if not kernels:
        message = f"expected files such as data/gfx942/gemm/{splits[0]}-….parquet"
        raise InputError(message, source=folder)
    return kernels


def digest(kernels: Iterable[SampledKernel]) -> str:
    """The identity of a dataset: a hash of its ids, in order."""
    ids = sorted(kernel.row.id for kernel in kernels)
    return hashlib.sha256("\n".join(ids).encode()).hexdigest()[:16]


def systematic_sample(kernels: Sequence[SampledKernel], per_cell: int) -> list[SampledKernel]:
    """At most `per_cell` kernels of each architecture and family, evenly spaced by size.

    Cells alternate, and sizes are mixed, so that every beginning of the sample
    is nearly such a sample itself.
    """
    cells: dict[tuple[str, str], list[SampledKernel]] = defaultdict(list)
    for kernel in kernels:
        cells[kernel.row.arch, kernel.row.family].append(kernel)
    chosen = [_spread(found, per_cell) for _, found in sorted(cells.items())]
    return [kernel for turn in zip_longest(*chosen) for kernel in turn if kernel is not None]


def _spread(kernels: list[SampledKernel], count: int) -> list[SampledKernel]:
    ordered = sorted(kernels, key=lambda kernel: (kernel.row.n_virtual_registers, kernel.row.id))
    count = min(count, len(ordered))
    # The middle of each of `count` equal shares.
    taken = [ordered[(2 * i + 1) * len(ordered) // (2 * count)] for i in range(count)]
    mixed = sorted(range(count), key=lambda i: i * GOLDEN_RATIO % 1)
    return [taken[i] for i in mixed]
