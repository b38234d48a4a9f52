"""A kernel's launch on the device: its inputs, what its sides leave, and their times."""

from __future__ import annotations

import ctypes
import hashlib
import pickle
import random
import struct
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from verilocc_bench.measuring.driver import Gpu
from verilocc_bench.references import Buffer, Launch, Scalar, compare, launch_for

WARMUP_LAUNCHES = 3
CACHE_BYTES = 256 << 20
"""More than the caches of any GPU hold."""
_CODES = {"i32": "i", "int32": "i", "i64": "q", "int64": "q", "fp64": "d", "float64": "d"}
_LARGEST = 1e300  # JSON has no infinity


class Wrong(Exception):
    """The machine does not do what it is asked for; the message is one line."""


def prepared_launch(folder: Path, document: dict[str, Any], work: Path) -> Launch:
    """The launch of a kernel: its reference's, kept in `work`, or the files of the folder."""
    reference = document["reference"]
    if reference is None:
        arguments = [_argument(folder, each) for each in document["arguments"]]
        return Launch(document["function"], tuple(arguments), document["grid"], ())
    place = work / f"{document['key']}.pickle"
    if place.exists():
        with place.open("rb") as file:
            kept: Launch = pickle.load(file)  # noqa: S301  this program wrote it
            return kept
    launch = launch_for(
        reference["kernel"], reference["parameters"], tiles=reference["tiles"],
        depth=reference["depth"],
    )  # fmt: skip
    with place.with_suffix(".part").open("wb") as file:
        pickle.dump(launch, file, pickle.HIGHEST_PROTOCOL)
    place.with_suffix(".part").replace(place)
    return launch


def _argument(folder: Path, argument: dict[str, Any]) -> Buffer | Scalar:
    if "file" not in argument:
        return Scalar(argument["name"], argument["element"], argument["value"])
    data = np.fromfile(folder / argument["file"], np.uint8)
    return Buffer(argument["name"], argument["element"], data)


class LaunchedKernel:
    """A kernel's launch on the device: each buffer, and a copy of what is in it before."""

    def __init__(self, gpu: Gpu, folder: Path, document: dict[str, Any], work: Path) -> None:
        self.gpu, self.folder, self.document = gpu, folder, document
        self.prepared = prepared_launch(folder, document, work)
        if list(self.prepared.grid[:2]) != document["grid"][:2]:
            raise Wrong(f"the grid of the reference is {self.prepared.grid}")
        self.sides = {side["name"]: side for side in document["sides"]}
        self.before = {b.name: b.initial.tobytes() for b in self.prepared.buffers.values()}
        self.memory = {name: gpu.allocate(len(data)) for name, data in self.before.items()}
        self.copies = {name: gpu.allocate(len(data)) for name, data in self.before.items()}
        for name, data in self.before.items():
            gpu.put(self.copies[name], data)
        written = [each.name for each in self.prepared.expectations]
        self.outputs = sorted(written or self.before)
        values: list[Any] = []
        for each in self.prepared.arguments:
            if isinstance(each, Buffer):
                values.append(self.memory[each.name])
            else:
                code = _CODES.get(each.element, "f")
                data = struct.pack(code, int(each.value) if code in "iq" else each.value)
                values.append((ctypes.c_char * len(data)).from_buffer_copy(data))
        values += [ctypes.c_uint64(0) for _ in range(document["trailing_pointers"])]
        self._values = values
        places = [ctypes.cast(ctypes.byref(each), ctypes.c_void_p) for each in values]
        self._places = (ctypes.c_void_p * len(places))(*places)
        self._wrong: dict[str, tuple[dict[str, float], list[str]]] = {}
        self.reset()
        if self.left(self.before) != self.before:
            raise Wrong("the device does not hold what was copied to it")

    def close(self) -> None:
        """Gives the memory back."""
        for pointer in (*self.memory.values(), *self.copies.values()):
            self.gpu.free(pointer)

    def reset(self) -> None:
        """Puts back what is in all buffers before a launch: outputs hold what none computes."""
        for name, data in self.before.items():
            self.gpu.copy(self.memory[name], self.copies[name], len(data))

    def left(self, names: Any) -> dict[str, bytes]:
        """What is in buffers."""
        return {name: self.gpu.get(self.memory[name], len(self.before[name])) for name in names}

    def load(self, side: str) -> tuple[Any, int]:
        """A side's kernel, and the bytes of shared memory that it asks for."""
        found = self.sides[side]
        code = (self.folder / found["file"]).read_bytes()
        if hashlib.sha256(code).hexdigest() != found["sha256"]:
            raise Wrong(f"{found['file']} is not the one of measure.json")
        shared = found.get("shared_memory_bytes", self.document["shared_memory_bytes"])
        return self.gpu.load(code, self.document["function"], shared), shared

    def launch(self, loaded: tuple[Any, int], layers: int | None = None) -> None:
        """Launches a kernel; `layers` replaces the grid's depth."""
        x, y, z = self.document["grid"]
        self.gpu.call("LaunchKernel", loaded[0], x, y, layers or z, *self.document["block"],
                      loaded[1], None, self._places, None)  # fmt: skip

    def bits(self, side: str, launches: int, slack: float) -> dict[str, Any]:
        """What the driver says of a side, and what each of several launches leaves.

        `slack` multiplies the tolerance of numbers.
        """
        loaded = self.load(side)
        found: dict[str, Any] = self.gpu.facts(loaded[0], self.document["block"][0], loaded[1])
        found |= {"digests": [], "errors": {}, "wrong": []}
        for number in range(launches):
            self.reset()
            self.launch(loaded)
            self.gpu.wait()
            left = self.left(self.before if number == 0 else self.outputs)
            if number == 0 and left == self.before:
                return found | {"idle": True}
            digest = hashlib.sha256(b"".join(left[name] for name in self.outputs)).hexdigest()[:16]
            found["digests"].append(digest)
            if number == 0 or digest not in self._wrong:
                self._wrong[digest] = self._judged({**self.before, **left}, slack)
            errors, wrong = self._wrong[digest]
            found["wrong"] += [each for each in wrong if each not in found["wrong"]]
            for name, error in errors.items():
                found["errors"][name] = max(error, found["errors"].get(name, 0.0))
        return found

    def _judged(self, memory: dict[str, bytes], slack: float) -> tuple[dict[str, float], list[str]]:
        """The errors of the numbers in outputs, and what is wrong in any buffer."""
        if not self.prepared.expectations:
            return {}, []
        arrays = {
            name: np.frombuffer(memory[name], buffer.initial.dtype)
            for name, buffer in self.prepared.buffers.items()
        }
        compared = compare(self.prepared, arrays)
        errors = {c.name: min(c.error, _LARGEST) for c in compared if c.name in self.outputs}
        wrong = [
            f"{c.name}: error {min(c.error, _LARGEST):.3g} of {c.tolerance * slack:g} allowed, "
            f"{c.stray_writes} stray writes"
            for c in compared
            if c.error > c.tolerance * slack or c.stray_writes
        ]
        return errors, wrong

    def times(self, sides: list[str], rounds: int) -> dict[str, list[float]]:
        """Milliseconds of a launch of each side; see `interleaved`."""
        loaded = {side: self.load(side) for side in sides}
        runs = {side: partial(self.launch, each) for side, each in loaded.items()}
        self.reset()
        return interleaved(self.gpu, runs, rounds)


def interleaved(
    gpu: Gpu, runs: Mapping[str, Callable[[], Any]], rounds: int
) -> dict[str, list[float]]:
    """Milliseconds of each run in each round; the caches are overwritten before each."""
    first, last, cache = gpu.event(), gpu.event(), gpu.allocate(CACHE_BYTES)
    for run in runs.values():
        for _ in range(WARMUP_LAUNCHES):
            run()
    gpu.wait()
    found: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds):
        order = list(runs)
        random.Random(number).shuffle(order)  # noqa: S311  no secret depends on it
        for name in order:
            gpu.overwrite(cache, CACHE_BYTES, number)
            gpu.record(first)
            runs[name]()
            gpu.record(last)
            found[name].append(gpu.milliseconds(first, last))
    gpu.free(cache)
    return found
