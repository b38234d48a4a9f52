"""Measures two codes of one kernel on this machine's GPU. Needs Python 3.9, and nothing else.

    python run.py [--device N] [--rounds N] [--launches N]

It reads measure.json beside it, loads both codes by the driver's library (libamdhip64.so
or libcuda.so.1), launches each once on fresh inputs, and compares what they leave, with
each other bit for bit, and with the numbers that are expected. A launch that leaves every
buffer as it was counts as wrong. If both are right, it measures them in turns, and writes
results.json.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import json
import math
import platform
import struct
import sys
from pathlib import Path
from typing import Any

SIDES = ("answer", "other")
WARMUP_LAUNCHES = 10
_LARGE_SHARED_BYTES = 48 << 10
_CUDA_LARGEST_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_FORMATS = {"fp16": "e", "fp32": "f", "i32": "i", "int32": "i", "int8": "b", "fp64": "d"}
_CODES = {"i32": "i", "i64": "q", "fp32": "f", "fp64": "d"}


class Gpu:
    """The driver's functions that are needed, under the same names for both vendors."""

    def __init__(self, vendor: str, device: int) -> None:
        self.is_hip = vendor == "amd"
        self.library = ctypes.CDLL("libamdhip64.so" if self.is_hip else "libcuda.so.1")
        self.call("Init", 0)
        handle = ctypes.c_int(device)
        if self.is_hip:
            self.call("SetDevice", device)
        else:
            self.call("DeviceGet", ctypes.byref(handle), device)
            context = ctypes.c_void_p()
            self.call("DevicePrimaryCtxRetain", ctypes.byref(context), handle)
            self.call("CtxSetCurrent", context)
        name = ctypes.create_string_buffer(256)
        self.call("DeviceGetName", name, 256, handle)
        version = ctypes.c_int()
        self.call("DriverGetVersion", ctypes.byref(version))
        self.name, self.version = name.value.decode(errors="replace"), version.value

    def call(self, function: str, *arguments: Any) -> None:
        """Calls a function of the driver. Ends the program if it fails."""
        prefix = "hip" if self.is_hip else "cu"
        status = getattr(self.library, prefix + function)(*arguments)
        if status:
            sys.exit(f"run.py: {prefix}{function} failed with error {status}")

    def load(self, code: bytes, name: str, shared_bytes: int) -> Any:
        """A kernel of a code object or cubin."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("ModuleLoadData", ctypes.byref(module), code)
        self.call("ModuleGetFunction", ctypes.byref(function), module, name.encode())
        if not self.is_hip and shared_bytes > _LARGE_SHARED_BYTES:
            self.call("FuncSetAttribute", function, _CUDA_LARGEST_SHARED, shared_bytes)
        return function

    def allocate(self, size: int) -> Any:
        """Memory of the device."""
        pointer = ctypes.c_void_p() if self.is_hip else ctypes.c_uint64()
        allocate = "Malloc" if self.is_hip else "MemAlloc_v2"
        self.call(allocate, ctypes.byref(pointer), ctypes.c_size_t(max(size, 1)))
        return pointer

    def put(self, pointer: Any, data: bytes) -> None:
        """Copies bytes to the device."""
        copy = "MemcpyHtoD" if self.is_hip else "MemcpyHtoD_v2"
        self.call(copy, pointer, data, ctypes.c_size_t(len(data)))

    def get(self, pointer: Any, size: int) -> bytes:
        """Copies bytes from the device."""
        data = ctypes.create_string_buffer(size)
        copy = "MemcpyDtoH" if self.is_hip else "MemcpyDtoH_v2"
        self.call(copy, data, pointer, ctypes.c_size_t(size))
        return data.raw

    def wait(self) -> None:
        """Waits until the device is idle."""
        self.call("DeviceSynchronize" if self.is_hip else "CtxSynchronize")

    def event(self) -> Any:
        """A new event."""
        event = ctypes.c_void_p()
        if self.is_hip:
            self.call("EventCreate", ctypes.byref(event))
        else:
            self.call("EventCreate", ctypes.byref(event), 0)
        return event

    def milliseconds(self, first: Any, last: Any) -> float:
        """The time between two events."""
        time = ctypes.c_float()
        self.call("EventSynchronize", last)
        self.call("EventElapsedTime", ctypes.byref(time), first, last)
        return time.value


class LaunchedKernel:
    """Both codes of one kernel with their launch."""

    def __init__(self, folder: Path, document: dict[str, Any], gpu: Gpu) -> None:
        self.document, self.gpu = document, gpu
        self.shared = int(document["shared_memory_bytes"])
        self.functions = {}
        for side in SIDES:
            code = (folder / document["sides"][side]["file"]).read_bytes()
            if hashlib.sha256(code).hexdigest() != document["sides"][side]["sha256"]:
                sys.exit(
                    f"run.py: {document['sides'][side]['file']} is not the one of measure.json"
                )
            self.functions[side] = gpu.load(code, document["kernel"], self.shared)
        self.buffers: dict[str, tuple[Any, bytes]] = {}
        self.values: list[Any] = []
        for argument in document["arguments"]:
            if "file" in argument:
                data = (folder / argument["file"]).read_bytes()
                pointer = gpu.allocate(len(data))
                self.buffers[argument["name"]] = (pointer, data)
                self.values.append(pointer)
            else:
                code = struct.pack(_CODES[argument["element"]], argument["value"])
                self.values.append((ctypes.c_char * len(code)).from_buffer_copy(code))
        self.values += [ctypes.c_uint64(0) for _ in range(document["trailing_pointers"])]
        places = [ctypes.cast(ctypes.byref(each), ctypes.c_void_p) for each in self.values]
        self.places = (ctypes.c_void_p * len(places))(*places)

    def reset(self) -> None:
        """Puts the inputs into all buffers. Ends the program if they do not arrive."""
        for pointer, data in self.buffers.values():
            self.gpu.put(pointer, data)
        if self.left() != {name: data for name, (_, data) in self.buffers.items()}:
            sys.exit("run.py: the device does not hold what was copied to it")

    def left(self) -> dict[str, bytes]:
        """What is in each buffer."""
        return {
            name: self.gpu.get(pointer, len(data)) for name, (pointer, data) in self.buffers.items()
        }

    def wrote_nothing(self, left: dict[str, bytes]) -> bool:
        """True if every buffer is as it was before the launch."""
        return all(left[name] == data for name, (_, data) in self.buffers.items())

    def launch(self, side: str) -> None:
        """Launches one side."""
        name = "ModuleLaunchKernel" if self.gpu.is_hip else "LaunchKernel"
        sizes = [*self.document["grid"], *self.document["block"], self.shared]
        self.gpu.call(name, self.functions[side], *sizes, None, self.places, None)

    def results(self, side: str) -> dict[str, bytes]:
        """What one launch leaves in each buffer."""
        self.reset()
        self.launch(side)
        self.gpu.wait()
        return self.left()

    def measure(self, rounds: int, launches: int) -> dict[str, list[float]]:
        """Milliseconds of a launch, in each round; the sides take turns in being first."""
        first, last = self.gpu.event(), self.gpu.event()
        for side in SIDES:
            self.reset()
            for _ in range(WARMUP_LAUNCHES):
                self.launch(side)
            self.gpu.wait()
            if self.wrote_nothing(self.left()):
                sys.exit(f"run.py: {side}: {WARMUP_LAUNCHES} launches in a row wrote nothing")
        found: dict[str, list[float]] = {side: [] for side in SIDES}
        for number in range(rounds):
            for side in SIDES if number % 2 == 0 else SIDES[::-1]:
                self.gpu.call("EventRecord", first, None)
                for _ in range(launches):
                    self.launch(side)
                self.gpu.call("EventRecord", last, None)
                found[side].append(self.gpu.milliseconds(first, last) / launches)
        return found


def numbers_of(data: bytes, element: str) -> list[float] | None:
    """The numbers in a buffer; None for elements that are not read here."""
    if element == "bf16":
        halves = struct.unpack(f"<{len(data) // 2}H", data)
        wide = struct.pack(f"<{len(halves)}I", *(half << 16 for half in halves))
        return list(struct.unpack(f"<{len(halves)}f", wide))
    code = _FORMATS.get(element)
    if code is None:
        return None
    return list(struct.unpack(f"<{len(data) // struct.calcsize(code)}{code}", data))


def relative_error(folder: Path, expected: dict[str, Any], data: bytes) -> float | None:
    """The largest difference from what is wanted, relative to the largest wanted number."""
    got = numbers_of(data, expected["element"])
    if got is None:
        return None
    text = (folder / expected["file"]).read_bytes()
    wanted = struct.unpack(f"<{len(text) // 8}d", text)
    mask = (folder / expected["mask"]).read_bytes()
    pairs = [(g, w) for g, w, written in zip(got, wanted, mask) if written]  # noqa: B905  3.9
    scale = max((abs(w) for _, w in pairs), default=0.0) or 1.0
    worst = max((abs(g - w) if math.isfinite(g) else math.inf for g, w in pairs), default=0.0)
    return worst / scale


def main(arguments: list[str] | None = None) -> int:
    """Checks and measures; the status is 1 if a side computes something else."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--device", type=int, default=0, help="number of the GPU")
    parser.add_argument("--rounds", type=int, default=50, help="times that each side is measured")
    parser.add_argument("--launches", type=int, default=20, help="launches of one measurement")
    options = parser.parse_args(arguments)
    folder = Path(__file__).resolve().parent
    text = (folder / "measure.json").read_bytes()
    document = json.loads(text)
    gpu = Gpu(document["vendor"], options.device)
    kernel = LaunchedKernel(folder, document, gpu)
    left = {side: kernel.results(side) for side in SIDES}
    errors = {
        side: {
            each["name"]: relative_error(folder, each, left[side][each["name"]])
            for each in document["expected"]
        }
        for side in SIDES
    }
    limits = {each["name"]: each["tolerance"] for each in document["expected"]}
    idle = [side for side in SIDES if kernel.wrote_nothing(left[side])]
    wrong = [
        f"{side}: {name} is off by {error:.3g}"
        for side in SIDES
        for name, error in errors[side].items()
        if error is not None and not error <= limits[name]
    ]
    results = {
        "measurement_sha256": hashlib.sha256(text).hexdigest(),
        "device": gpu.name,
        "driver_version": gpu.version,
        "host": platform.platform(),
        "rounds": options.rounds,
        "launches": options.launches,
        "same_bits": left["answer"] == left["other"],
        "errors": errors,
        "milliseconds": None if wrong or idle else kernel.measure(options.rounds, options.launches),
    }
    (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    for side in idle:
        print(f"nothing written: {side}: all buffers are as before; nothing was measured")
    for line in wrong:
        print(f"wrong numbers: {line}; nothing was measured")
    for side, times in (results["milliseconds"] or {}).items():
        print(f"{side}: {sorted(times)[len(times) // 2]:.6f} ms, the median of {len(times)}")
    if not idle:
        bits = "the same bits" if results["same_bits"] else "other bits"
        print(f"{gpu.name}: both sides leave {bits}")
    print(f"{gpu.name}: wrote results.json")
    return 1 if wrong or idle else 0


if __name__ == "__main__":
    sys.exit(main())
