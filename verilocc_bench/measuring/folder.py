"""Writes the folder of a measurement: kernels, the sides of each, and their launches.

The folder holds what runs it, too: `run.py`, and the part of this package that it needs.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verilocc_bench import __version__
from verilocc_bench.api.problems import Problem
from verilocc_bench.backends import CodeComparison, ComparedAllocation, backend_of
from verilocc_bench.backends.amdgpu.linking import linked
from verilocc_bench.edits import Answer
from verilocc_bench.edits.answer_files import answer_to_json
from verilocc_bench.errors import InputError
from verilocc_bench.files import read_json, write_atomically
from verilocc_bench.measurement import CONTROL, DOCUMENT, FORMAT, OWN, RESULTS, SAME
from verilocc_bench.measuring.blocks import MULTIPROCESSORS
from verilocc_bench.references import launch_for

_ELEMENTS = {"int32": "i32", "int64": "i64", "float32": "fp32", "float64": "fp64"}
_TRAILING_POINTERS = 2
"""Triton's kernels end with two pointers to scratch memory, which they do not read."""
_THREADS = {"waves": 64, "warps": 32}
_PACKED = {
    ".": ("__init__.py", "errors.py", "measurement.py"),
    "measuring": (
        "__init__.py",
        "driver.py",
        "launched_kernel.py",
        "launcher.py",
        "libraries.py",
        "worker.py",
    ),
    "references": None,
}
"""The modules that go into the folder; None: all."""

_RUN = '''\
"""Measures the kernels of this folder: python run.py --help."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "library"))

from verilocc_bench.measuring.launcher import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent))
'''

_README = """\
# A measurement of {count} kernels on {arch}

Nothing was measured when this folder was written. On a machine with such a GPU and its driver:

    python run.py --minutes 10     # Python 3.11 or later, numpy
    verilocc-bench measure DIR     # reads results.jsonl, anywhere

`run.py` compares what all sides of a kernel compute with the compiler's own code and with the
expected numbers, and measures them in turns. Times hold for these inputs, these grids and that
machine alone; nobody has checked them.
"""


@dataclass(frozen=True, slots=True)
class MeasuredLaunch:
    """A launch: a reference's, or arguments by name (numbers as arrays of no dimensions).

    `reference` has the kernel, its parameters, and the tiles and the depth of the launch.
    """

    grid: tuple[int, int, int]
    threads: int
    shared_memory_bytes: int
    reference: Mapping[str, Any] | None = None
    arguments: Mapping[str, NDArray[Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MeasuredSide:
    """One code of a kernel. `title` is its name for people; what is said of it may be missing.

    `shared_memory_bytes` replaces those of the launch.
    """

    name: str
    title: str
    role: str
    code: bytes
    answer: Answer | None = None
    registers: int | None = None
    runnable: bool | None = None
    shared_memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class MeasuredKernel:
    """A kernel with its sides; the first side is the one that the others stand beside."""

    key: str
    id: str
    arch: str
    function: str
    launch: MeasuredLaunch
    sides: Sequence[MeasuredSide]


def launch_of_row(problem: Problem, tiles: int, depth: int | None = None) -> MeasuredLaunch:
    """The reference launch of a dataset's row. Raises InputError without one."""
    row = problem.row
    if row is None:
        raise InputError(f"{problem.title}: a file has no launch: give --arguments and --grid")
    reference = {
        "kernel": row.kernel, "parameters": json.loads(row.params), "tiles": tiles, "depth": depth
    }  # fmt: skip
    grid = launch_for(row.kernel, reference["parameters"], tiles=tiles, depth=depth).grid
    return MeasuredLaunch(grid, *sizes_of_row(problem), reference)


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
    """Adds a kernel to a folder; `sides` are two verified answers.

    The second one may be the compiler's own. It stands there twice: the difference of its
    times is the noise. Returns the comparison of both codes by their counts. Raises
    InputError if the folder holds something else or results, if an answer cannot be lowered,
    or if a linker for AMD's code is missing.
    """
    _kernels_in(folder)
    backend = backend_of(problem.target)
    comparison = backend.compare(problem.kernel(), sides, with_files=True)
    answer, other = (_side(name, side, comparison) for name, side in zip(
        ("answer", "other"), sides, strict=True))  # fmt: skip
    own = replace(other, role=OWN, runnable=None)
    again = replace(own, name="other-again", title=f"{other.title} again", role=SAME, answer=None)
    kernel = MeasuredKernel(
        re.sub(r"\W", "_", f"{problem.kernel().name}-{problem.id}"), problem.id, problem.arch,
        problem.kernel().name, launch, (own, answer, again),
    )  # fmt: skip
    write_folder([kernel], folder, comparison.document["versions"])
    return comparison


def _side(name: str, side: ComparedAllocation, comparison: CodeComparison) -> MeasuredSide:
    cubin = comparison.files.get(f"{name}/kernel.cubin")
    code = comparison.files[f"{name}/kernel.o"] if cubin is None else cubin
    assert isinstance(code, bytes)
    if cubin is None:
        code = linked(code)
    facts = comparison.document[name].get("cubin", {})
    runnable = facts.get("runnable")
    role = CONTROL if runnable is False else SAME
    count = facts.get("register_count")
    return MeasuredSide(name, side.name, role, code, side.answer, count, runnable)


def _kernels_in(folder: Path) -> list[dict[str, Any]]:
    """The kernels of a folder that may take more. Raises InputError for any other folder."""
    if not folder.exists() or not any(folder.iterdir()):
        return []
    if not (folder / DOCUMENT).is_file() or (folder / RESULTS).exists():
        message = "expected a new or empty folder, or that of a measurement without results"
        raise InputError(message, source=folder)
    kernels: list[dict[str, Any]] = read_json(folder / DOCUMENT)["kernels"]
    return kernels


def write_folder(
    kernels: Sequence[MeasuredKernel], folder: Path, versions: Mapping[str, str]
) -> None:
    """Writes kernels to a folder, beside those that are there. Raises InputError like above."""
    known = _kernels_in(folder)
    vendors = {backend_of(kernel.arch).vendor for kernel in kernels}
    vendors |= {backend_of(kernel["arch"]).vendor for kernel in known}
    if len(vendors) > 1:
        raise InputError("a folder is for GPUs of one vendor", source=folder)
    for kernel in kernels:
        if any(kernel.key == each["key"] for each in known):
            raise InputError(f"the kernel {kernel.key} is there already", source=folder)
        known.append(_written_kernel(kernel, folder))
    document = {
        "format": FORMAT,
        "vendor": vendors.pop(),
        "versions": {"verilocc-bench": __version__, **versions},
        "kernels": known,
    }
    package = files("verilocc_bench")
    for place, names in _PACKED.items():
        for module in package.joinpath(place).iterdir():
            if module.name.endswith(".py") and (names is None or module.name in names):
                text = module.read_text(encoding="utf-8")
                write_atomically(folder / "library/verilocc_bench" / place / module.name, text)
    write_atomically(folder / "run.py", _RUN)
    arch = ", ".join(sorted({kernel["arch"] for kernel in known}))
    write_atomically(folder / "README.md", _README.format(count=len(known), arch=arch))
    write_atomically(folder / DOCUMENT, json.dumps(document, indent=1) + "\n")


def _written_kernel(kernel: MeasuredKernel, folder: Path) -> dict[str, Any]:
    launch = kernel.launch
    return {
        "key": kernel.key,
        "id": kernel.id,
        "arch": kernel.arch,
        "function": kernel.function,
        "grid": list(launch.grid),
        "block": [launch.threads, 1, 1],
        "shared_memory_bytes": launch.shared_memory_bytes,
        "reference": None if launch.reference is None else dict(launch.reference),
        "arguments": [
            _argument(name, value, folder, kernel.key) for name, value in launch.arguments.items()
        ],
        "trailing_pointers": _TRAILING_POINTERS,
        "sides": [_written_side(side, kernel, folder) for side in kernel.sides],
    }


def _written_side(side: MeasuredSide, kernel: MeasuredKernel, folder: Path) -> dict[str, Any]:
    suffix = "cubin" if kernel.arch in MULTIPROCESSORS else "hsaco"
    hashed = hashlib.sha256(side.code).hexdigest()
    place = f"{kernel.key}/{hashed[:16]}.{suffix}"
    write_atomically(folder / place, side.code)
    found: dict[str, Any] = {
        "name": side.name, "title": side.title, "role": side.role, "file": place, "sha256": hashed
    }  # fmt: skip
    shared = kernel.launch.shared_memory_bytes
    if side.shared_memory_bytes is not None:
        shared = found["shared_memory_bytes"] = side.shared_memory_bytes
    if side.registers is not None and kernel.arch in MULTIPROCESSORS:
        holds = MULTIPROCESSORS[kernel.arch].holds(side.registers, kernel.launch.threads, shared)
        found |= {"registers": side.registers, "blocks": holds}
    if side.runnable is not None:
        found["runnable"] = side.runnable
    if side.answer is not None:
        found["answer"] = f"{kernel.key}/{side.name}.json"
        text = json.dumps(answer_to_json(kernel.id, side.answer)) + "\n"
        write_atomically(folder / found["answer"], text)
    return found


def _argument(name: str, value: NDArray[Any], folder: Path, key: str) -> dict[str, Any]:
    if value.ndim == 0:
        element = _ELEMENTS.get(value.dtype.name)
        if element is None:
            known = ", ".join(_ELEMENTS)
            raise InputError(f"argument {name!r} is a {value.dtype.name}; expected {known}")
        return {"name": name, "element": element, "value": value.item()}
    place = f"{key}/inputs/{name}.bin"
    write_atomically(folder / place, np.ascontiguousarray(value).tobytes())
    return {"name": name, "element": value.dtype.name, "file": place}
