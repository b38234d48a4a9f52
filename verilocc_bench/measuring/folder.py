"""Writes the folder of a measurement: both codes, their launch, and what they must compute."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verilocc_bench import __version__
from verilocc_bench.api.problems import Problem
from verilocc_bench.backends import CodeComparison, ComparedAllocation, backend_of
from verilocc_bench.edits.answer_files import answer_to_json
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.gpu_measurement import DOCUMENT, FORMAT
from verilocc_bench.files import write_atomically
from verilocc_bench.references import Buffer, Expectation, launch_for

_ELEMENTS = {"int32": "i32", "int64": "i64", "float32": "fp32", "float64": "fp64"}
_TRAILING_POINTERS = 2
"""Triton's kernels end with two pointers to scratch memory, which they do not read."""

_README = """\
# A measurement of {kernel} on {arch}

Nothing was measured when this folder was written. On a machine with such a GPU and its driver:

    python run.py                  # Python 3.9 or later, no packages
    verilocc-bench measure DIR     # reads results.json, anywhere

`run.py` launches both codes on the inputs here, compares what they leave, and measures them
in turns. Times hold for these inputs, this grid and that machine alone; nobody has checked
them.

| | |
|---|---|
{rows}
"""


@dataclass(frozen=True, slots=True)
class MeasuredLaunch:
    """A launch: arguments by name (arrays, or numbers as arrays without dimensions).

    `elements` names the element type of buffers whose numpy type does not say it.
    """

    arguments: Mapping[str, NDArray[Any]]
    elements: Mapping[str, str]
    grid: tuple[int, int, int]
    threads: int
    shared_memory_bytes: int
    expectations: tuple[Expectation, ...] = ()


def launch_of_row(problem: Problem, tiles: int) -> MeasuredLaunch:
    """The reference launch of a dataset's row. Raises InputError without one."""
    row = problem.row
    if row is None:
        raise InputError(f"{problem.title}: a file has no launch: give --arguments and --grid")
    launch = launch_for(row.kernel, json.loads(row.params), tiles=tiles)
    arguments: dict[str, NDArray[Any]] = {}
    elements: dict[str, str] = {}
    for each in launch.arguments:
        if isinstance(each, Buffer):
            arguments[each.name], elements[each.name] = each.initial, each.element
        else:
            kind = np.float32 if each.element == "fp32" else np.int32
            arguments[each.name] = np.asarray(each.value, kind)
    return MeasuredLaunch(arguments, elements, launch.grid, *sizes_of_row(problem),
                          launch.expectations)  # fmt: skip


_THREADS = {"waves": 64, "warps": 32}


def sizes_of_row(problem: Problem) -> tuple[int, int]:
    """The threads of a block and the bytes of its local memory, as a row's provenance has them."""
    assert problem.row is not None
    provenance = json.loads(problem.row.provenance)
    lanes = _THREADS[problem.target.occupancy_unit]
    return lanes * int(provenance["num_warps"]), int(provenance["shared_memory_bytes"])


def write_measurement(
    problem: Problem,
    sides: tuple[ComparedAllocation, ComparedAllocation],
    launch: MeasuredLaunch,
    folder: Path,
) -> CodeComparison:
    """Writes the folder; `sides` are two verified answers, the second may be the compiler's own.

    Returns the comparison of both codes by their counts. Raises InputError if the folder is
    not empty, if an answer cannot be lowered, or if a linker for AMD's code is missing.
    """
    if folder.exists() and any(folder.iterdir()):
        raise InputError("expected a new or empty folder", source=folder)
    backend = backend_of(problem.target)
    comparison = backend.compare(problem.kernel(), sides, with_files=True)
    document: dict[str, Any] = {
        "format": FORMAT,
        "id": problem.id,
        "arch": problem.arch,
        "vendor": backend.vendor,
        "kernel": problem.kernel().name,
        "grid": list(launch.grid),
        "block": [launch.threads, 1, 1],
        "shared_memory_bytes": launch.shared_memory_bytes,
        "arguments": [],
        "trailing_pointers": _TRAILING_POINTERS,
        "expected": [],
        "sides": {},
        "versions": {"verilocc-bench": __version__, **comparison.document["versions"]},
    }
    _write_codes(problem, sides, comparison, document, folder)
    for name, value in launch.arguments.items():
        document["arguments"].append(_argument(name, value, launch, folder))
    for each in launch.expectations:
        document["expected"].append(_expected(each, launch, folder))
    write_atomically(folder / "run.py", _launcher())
    rows = "\n".join(
        f"| {side} | {document['sides'][side]['name']} |" for side in document["sides"]
    )
    text = _README.format(kernel=document["kernel"], arch=problem.arch, rows=rows)
    write_atomically(folder / "README.md", text)
    write_atomically(folder / DOCUMENT, json.dumps(document, indent=1) + "\n")
    return comparison


def _write_codes(
    problem: Problem,
    sides: tuple[ComparedAllocation, ComparedAllocation],
    comparison: CodeComparison,
    document: dict[str, Any],
    folder: Path,
) -> None:
    for name, side in zip(("answer", "other"), sides, strict=True):
        file = f"{name}/kernel.cubin"
        if file in comparison.files:
            code = comparison.files[file]
        else:
            file, code = f"{name}/kernel.hsaco", linked(comparison.files[f"{name}/kernel.o"])
        assert isinstance(code, bytes)
        write_atomically(folder / file, code)
        found = {"name": side.name, "file": file, "sha256": hashlib.sha256(code).hexdigest()}
        if side.answer is not None:
            text = json.dumps(answer_to_json(problem.id, side.answer)) + "\n"
            write_atomically(folder / name / "answer.json", text)
            found["answer_sha256"] = hashlib.sha256(text.encode()).hexdigest()
        document["sides"][name] = found


def _argument(
    name: str, value: NDArray[Any], launch: MeasuredLaunch, folder: Path
) -> dict[str, Any]:
    if value.ndim == 0:
        element = _ELEMENTS.get(value.dtype.name)
        if element is None:
            known = ", ".join(_ELEMENTS)
            raise InputError(f"argument {name!r} is a {value.dtype.name}; expected {known}")
        return {"name": name, "element": element, "value": value.item()}
    file = f"inputs/{name}.bin"
    write_atomically(folder / file, np.ascontiguousarray(value).tobytes())
    element = launch.elements.get(name, value.dtype.name)
    return {"name": name, "element": element, "file": file}


def _expected(expected: Expectation, launch: MeasuredLaunch, folder: Path) -> dict[str, Any]:
    place = f"expected/{expected.name}"
    wanted = np.where(expected.written, expected.wanted, 0.0)
    write_atomically(folder / f"{place}.f64", np.ascontiguousarray(wanted, "<f8").tobytes())
    mask = np.ascontiguousarray(expected.written, np.uint8)
    write_atomically(folder / f"{place}.mask", mask.tobytes())
    return {
        "name": expected.name,
        "element": launch.elements[expected.name],
        "tolerance": expected.tolerance,
        "file": f"{place}.f64",
        "mask": f"{place}.mask",
    }


def _launcher() -> str:
    return files("verilocc_bench.measuring").joinpath("launcher.py").read_text(encoding="utf-8")


def linked(data: str | bytes) -> bytes:
    """The code object that a driver loads, of an object file: by lld, or by Triton's own.

    Raises InputError if there is neither.
    """
    assert isinstance(data, bytes)
    lld = next(filter(None, map(shutil.which, ("ld.lld-22", "ld.lld"))), None)
    with tempfile.TemporaryDirectory() as name:
        source, output = Path(name, "kernel.o"), Path(name, "kernel.hsaco")
        write_atomically(source, data)
        if lld is not None:
            done = subprocess.run(
                [lld, "-shared", source, "-o", output], capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise InputError(f"lld: {done.stderr.strip()[:200]}")
        else:
            from verilocc_bench.triton.linking import link_code_object

            link_code_object(source, output)
        return output.read_bytes()
