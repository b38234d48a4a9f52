"""The corpus of distances.py: what single kernels by ptxas show, kept in a journal.

A line of the journal is a kernel: the hash of its code, its name, the number of its
instructions, and the pairs of accesses that distances decide. A point that gives no
kernel has the reason instead.

nvdisasm takes a third of a second to start, so points are compiled in groups, each to a
cubin of several kernels. ptxas compiles each kernel of a module by itself: the code is
the same as in a cubin of its own.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tqdm import tqdm

from benchmarks.distance_mining import Evidence, evidence
from benchmarks.generated_ptx import generated_kernel
from dataset_builders.compilers.triton_compiler import compile_kernel
from dataset_builders.sweeps.registry import sweep_named
from verilocc_bench.backends.nvidia.cubin import read_cubin
from verilocc_bench.backends.nvidia.distance_table import PairKind
from verilocc_bench.backends.nvidia.hazards import HazardKind
from verilocc_bench.backends.nvidia.read import disassembled_functions
from verilocc_bench.backends.nvidia.records import SassFunction
from verilocc_bench.backends.nvidia.tools import assemble, ptx_target
from verilocc_bench.dataset import RawRow
from verilocc_bench.dataset.parquet import iterate_parquet
from verilocc_bench.errors import InputError, RejectedKernel

Kernel = dict[str, Any]
GROUP = 16
"""The number of points in a module."""

_ENTRY = ".visible .entry "
_HEAD = """.version 8.7
.target {target}
.address_size 64
.extern .shared .align 16 .b8 global_smem[];
"""


def compile_sweeps(
    names: Sequence[str],
    architecture: str,
    journal: Path,
    limit: int | None,
    cubins: Path | None,
) -> None:
    """Compiles the points of sweeps that the journal lacks, and adds what they show.

    With `cubins` the cubins are kept in that folder, for `read_folders`.
    """
    points = {
        p.key.replace("-", "_"): p
        for name in names
        for p in sweep_named(name).points([architecture])
    }
    with tempfile.TemporaryDirectory() as cache:
        for group in _missing([*points][:limit], journal):
            texts: dict[str, str] = {}
            for name in group:
                try:
                    texts[name] = compile_kernel(points[name], Path(cache)).ptx
                except RejectedKernel as rejection:
                    _append(journal, [{"id": name, "rejected": str(rejection)}])
            for target in sorted({ptx_target(text) or "" for text in texts.values()}):
                of_target = {n: text for n, text in texts.items() if ptx_target(text) == target}
                _append(journal, _compiled(of_target, architecture, cubins))


def compile_generated(count: int, architecture: str, journal: Path, cubins: Path | None) -> None:
    """Compiles the first random kernels (generated_ptx), and adds what they show."""
    seeds = {f"generated_{seed}": seed for seed in range(count)}
    for group in _missing([*seeds], journal):
        texts = {name: generated_kernel(seeds[name]) for name in group}
        _append(journal, _compiled(texts, architecture, cubins))


def _missing(names: Sequence[str], journal: Path) -> Iterator[Sequence[str]]:
    """The names that the journal lacks, in groups."""
    known = {kernel["id"] for kernel in read_journal(journal)}
    wanted = [name for name in names if name not in known]
    with tqdm(total=len(wanted), unit="kernel", disable=None) as bar:
        for start in range(0, len(wanted), GROUP):
            yield wanted[start : start + GROUP]
            bar.update(len(wanted[start : start + GROUP]))


def _compiled(texts: Mapping[str, str], architecture: str, kept: Path | None) -> Iterator[Kernel]:
    lost = set(texts)
    for cubin in _cubins_of(texts, architecture):
        if kept is not None:
            kept.mkdir(parents=True, exist_ok=True)
            (kept / f"{hashlib.sha256(cubin).hexdigest()[:16]}.cubin").write_bytes(cubin)
        for name, shown in _shown_by(cubin, "a cubin of the corpus"):
            lost.remove(name)
            yield {"id": name} | shown
    for name in sorted(lost):
        yield {"id": name, "rejected": "ptxas-failed"}


def _cubins_of(texts: Mapping[str, str], architecture: str) -> Iterator[bytes]:
    """One cubin of all kernels; if that is refused, one for each that is not."""
    if not texts:
        return
    try:
        yield assemble(module_of(texts), architecture=architecture)
    except RejectedKernel:
        if len(texts) > 1:
            for name, text in texts.items():
                yield from _cubins_of({name: text}, architecture)


def module_of(texts: Mapping[str, str]) -> str:
    """A PTX module of the kernels of several modules for one target, by their new names.

    Raises RejectedKernel if one of them declares more than Triton's usually do.
    """
    parts = [_HEAD.format(target=ptx_target(next(iter(texts.values()))))]
    usual = {*parts[0].splitlines()}
    for name, text in texts.items():
        head, _, kernel = text.partition(_ENTRY)
        unusual = {line for line in head.splitlines() if line.startswith(".")} - usual
        if unusual or _ENTRY in kernel:
            raise RejectedKernel("unusual-module", ", ".join(sorted(unusual)) or "several kernels")
        parts.append(f"{_ENTRY}{name}({kernel.partition('(')[2]}")
    return "\n".join(parts)


def read_folders(folders: Sequence[Path], architecture: str, journal: Path) -> None:
    """Adds what the cubins of datasets, or of folders of cubins, show that the journal lacks.

    Kernels of cubins of several have their own names, others those of the rows or files.
    """
    known = {kernel["id"] for kernel in read_journal(journal)}
    for folder in folders:
        for name, cubin in tqdm(_cubins(folder, architecture), unit="cubin", disable=None):
            names = [kernel.name for kernel in read_cubin(cubin, name).kernels]
            if known.isdisjoint(names if len(names) > 1 else [name]):
                shown = _shown_by(cubin, name)
                _append(journal, ({"id": n if len(names) > 1 else name} | s for n, s in shown))


def _cubins(folder: Path, architecture: str) -> Iterator[tuple[str, bytes]]:
    """Name and code of the cubins of a dataset, or of a folder of cubins."""
    raw = sorted(folder.glob(f"raw/*/{architecture}/*/*.parquet"))
    cubins = sorted(folder.glob("*.cubin"))
    if not raw and not cubins:
        expected = f"a dataset with machine code of {architecture}, or files *.cubin"
        raise InputError(f"expected {expected}", source=folder)
    for path in raw:
        for row in iterate_parquet(path, RawRow):
            yield row.id, base64.b64decode(row.content)
    for path in cubins:
        yield path.stem, path.read_bytes()


def _shown_by(cubin: bytes, source: str) -> Iterator[tuple[str, Kernel]]:
    """The kernels of a cubin: what each shows, or why it cannot be read."""
    for kernel, function in disassembled_functions(cubin, source):
        if isinstance(function, str):
            yield kernel.name, {"rejected": function}
            continue
        code = cubin[kernel.code_offset : kernel.code_offset + kernel.code_size]
        try:
            shown = _shown(function)
        except RejectedKernel as rejection:
            yield kernel.name, {"rejected": str(rejection)}
        else:
            yield kernel.name, {"sha256": hashlib.sha256(code).hexdigest(), **shown}


def _shown(function: SassFunction) -> Kernel:
    """The plain pairs: each kind, its pairs by their distance, and the closest as an example."""
    kinds: dict[PairKind, tuple[dict[int, int], str]] = {}
    for each in evidence("", function):
        if each.plain:
            kinds.setdefault(each.kind, ({}, each.example))[0][each.cycles] = each.pairs
    pairs = [
        [kind.hazard.value, *kind[1:], [*distances.items()], example]
        for kind, (distances, example) in kinds.items()
    ]
    return {"instructions": len(function.instructions), "pairs": pairs}


def _append(journal: Path, kernels: Iterable[Kernel]) -> None:
    journal.parent.mkdir(parents=True, exist_ok=True)
    with journal.open("a+b") as begun:
        if begun.tell():
            begun.seek(-1, os.SEEK_END)
            if begun.read() != b"\n":  # a line was cut off
                begun.write(b"\n")
    with journal.open("a", encoding="utf-8") as file:
        for kernel in kernels:
            file.write(json.dumps(kernel) + "\n")


def read_journal(journal: Path) -> Iterator[Kernel]:
    """The lines of a journal but those that were cut off; none if there is no such file."""
    if journal.is_file():
        with journal.open(encoding="utf-8") as file:
            for line in file:
                with suppress(json.JSONDecodeError):
                    yield json.loads(line)


def distinct_kernels(journal: Path) -> list[Kernel]:
    """The kernels of a journal in the order of the hashes of their code, equal code once."""
    kernels = {each["sha256"]: each for each in read_journal(journal) if "sha256" in each}
    if not kernels:
        raise InputError("expected kernels that `compile` or `read` wrote", source=journal)
    return [kernels[digest] for digest in sorted(kernels)]


def evidence_of(kernel: Kernel) -> list[Evidence]:
    """The pairs that a kernel's line names, each kind's closest first."""
    return [
        Evidence(PairKind(HazardKind(hazard), *names), cycles, True, pairs, kernel["id"] + example)
        for hazard, *names, distances, example in kernel["pairs"]
        for cycles, pairs in distances
    ]
