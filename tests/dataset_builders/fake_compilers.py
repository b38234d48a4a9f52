"""Functions that stand in for compilers: quick, and with every way to fail.

Many task processes start for one of them alone: they import no more than it needs.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from verilocc_bench.errors import InputError, RejectedKernel

if TYPE_CHECKING:
    from dataset_builders.sweeps import SweepPoint
    from verilocc_bench.dataset import Row


def row_of(point: SweepPoint) -> Row:
    """A row that says which point it is of, as a compiler leaves it."""
    from verilocc_bench.dataset.rows import RELEASE_COLUMNS, Row

    return Row(
        id=point.digest[:16],
        family=point.family,
        arch=point.arch,
        kernel=point.kernel,
        params=point.parameters_json,
        track="assign",
        normalized=f"text of {point.key}\n" * 20,
        assignment='{"%0":"v1"}',
        label_source="fake 1",
        alternatives="{}",
        group=point.group,
        n_blocks=1,
        n_instructions=2,
        n_virtual_registers=1,
        pressure="{}",
        registers_used='{"vector":2}',
        occupancy=8,
        license="Apache-2.0",
        provenance="{}",
        **RELEASE_COLUMNS,
    )


def is_rejected(point: SweepPoint) -> bool:
    return int(point.digest[:8], 16) % 5 == 0


def compile_fake(point: SweepPoint, seconds: float = 0.0) -> bytes:
    """A document of the point, after some time."""
    from dataset_builders.compilers.built_kernel import BuiltKernel, Timings
    from dataset_builders.journal.journal import encode_document, result_document
    from verilocc_bench.dataset import RawRow

    time.sleep(seconds)
    if is_rejected(point):
        return encode_document(result_document(RejectedKernel("fake", f"no {point.key}")))
    row = row_of(point)
    timings = Timings(0.25, 0.5, time.perf_counter() % 1)
    return encode_document(
        result_document(BuiltKernel(row, RawRow(row.id, "mir", f"raw of {point.key}"), timings))
    )


def compile_but(point: SweepPoint, hows: Mapping[str, str], marker: str) -> bytes:
    """As compile_fake, but the points with these keys fail, each in its way."""
    if point.key in hows:
        fail((hows[point.key], f"{marker}-{point.key}"))
    return compile_fake(point)


def fail(item: tuple[str, str] | int) -> str:
    """Fails in the way that a name says; `… once` only if the file `marker` is not there yet."""
    if isinstance(item, int):
        return f"result {item}"
    how, marker = item
    if how.endswith(" once"):
        if Path(marker).exists():
            return "survived"
        Path(marker).touch()
    match how.removesuffix(" once"):
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "exit":
            raise SystemExit(3)
        case "kill the worker":
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)
        case "hang":
            time.sleep(10_000)
        case "memory":
            raise MemoryError
        case "bug":
            raise ZeroDivisionError("a bug of ours")
        case "odd bug":
            raise OddError(1, 2)
        case "input":
            raise InputError("no such tool", source="a/path")
        case "full":
            raise OSError(28, "No space left on device", "/tmp/somewhere")
    return "survived"


class OddError(Exception):
    """An exception that can be pickled, but not unpickled."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(f"{first} {second}")


def process_ids(_item: int) -> tuple[int, str]:
    """This process, and its folder for temporary files."""
    return os.getpid(), os.environ["TMPDIR"]


def begin(folder: str) -> str:
    """Says which process this is, starts another, and hangs."""
    child = os.posix_spawn("/bin/sleep", ["sleep", "10000"], os.environ)
    Path(folder, "ids.part").write_text(f"{os.getpid()} {child}")
    Path(folder, "ids.part").rename(Path(folder, "ids"))
    time.sleep(10_000)
    return ""
