"""A driver's library that stands for a GPU: memory, and kernels run by what it is given.

Run as a program it is the worker of a launcher with such a GPU:

    python -m tests.measuring.fake_gpu FOLDER BEHAVIOUR --worker REQUEST

Kernels then leave what the reference expects. BEHAVIOUR is `right`, or says what the code of
sides does: `idle:SIDE`, `wrong:SIDE`, `fault:SIDE`, `dies:SIDE`, `slow:SIDE`, `changes:SIDE`,
joined by commas; or `lost`: copies do not arrive; or `executes`: code objects run on the CPU.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

Run = Callable[[bytes, list[tuple[str, Any]]], list[bytes]]
"""Runs a code with (`buffer`, bytes) and (`value`, bytes) arguments; gives the buffers after."""


class FakeLibrary:
    """The functions that the worker calls, under the names of one vendor."""

    def __init__(self, prefix: str, kinds: Callable[[], list[str]], run: Run) -> None:
        self.prefix, self.kinds, self.run = prefix, kinds, run
        self.memory: dict[int, bytearray] = {}
        self.codes: dict[int, bytes] = {}
        self.calls: list[str] = []
        self.launched: list[tuple[Any, ...]] = []
        self.clock = 0.0
        self.next = 1 << 20

    def __getattr__(self, name: str) -> Callable[..., int]:
        if not name.startswith(self.prefix):
            raise AttributeError(name)
        short = name.removeprefix(self.prefix).removesuffix("_v2")
        self.calls.append(short)
        return getattr(self, f"do_{short}", lambda *_: 0)

    def do_DeviceGetName(self, name: Any, size: int, _device: Any) -> int:
        name.value = b"a pretended GPU"
        return 0

    def do_DriverGetVersion(self, version: Any) -> int:
        version._obj.value = 7
        return 0

    def do_ModuleLoadData(self, module: Any, code: bytes) -> int:
        module._obj.value = 100 + len(self.codes)
        self.codes[module._obj.value] = code
        return 0

    def do_ModuleGetFunction(self, function: Any, module: Any, _name: bytes) -> int:
        function._obj.value = module.value
        return 0

    def do_FuncGetAttribute(self, value: Any, number: int, _function: Any) -> int:
        value._obj.value = {3: 0, 4: 99}[number]
        return 0

    def do_OccupancyMaxActiveBlocksPerMultiprocessor(self, blocks: Any, *_: Any) -> int:
        blocks._obj.value = 5
        return 0

    do_ModuleOccupancyMaxActiveBlocksPerMultiprocessor = (
        do_OccupancyMaxActiveBlocksPerMultiprocessor
    )

    def do_Malloc(self, pointer: Any, size: Any) -> int:
        pointer._obj.value = self.next
        self.next += 256
        self.memory[pointer._obj.value] = bytearray(size.value if size.value < 1 << 28 else 0)
        return 0

    do_MemAlloc = do_Malloc

    def do_Free(self, pointer: Any) -> int:
        del self.memory[pointer.value]
        return 0

    do_MemFree = do_Free

    def do_MemcpyHtoD(self, pointer: Any, data: bytes, size: Any) -> int:
        self.memory[pointer.value][: size.value] = data
        return 0

    def do_MemcpyDtoD(self, to: Any, source: Any, size: Any) -> int:
        self.memory[to.value][: size.value] = self.memory[source.value][: size.value]
        return 0

    def do_MemcpyDtoH(self, data: Any, pointer: Any, size: Any) -> int:
        ctypes.memmove(data, bytes(self.memory[pointer.value]), size.value)
        return 0

    def do_ModuleLaunchKernel(self, function: Any, *rest: Any) -> int:
        *sizes, _stream, places, _extra = rest
        self.launched.append((function.value, *sizes))
        arguments: list[tuple[str, Any]] = []
        pointers = []
        kinds = self.kinds()
        for kind, place in zip(kinds, places, strict=False):
            if kind == "buffer":
                (pointer,) = struct.unpack("<Q", ctypes.string_at(place, 8))
                pointers.append(pointer)
                arguments.append((kind, bytes(self.memory[pointer])))
            else:
                arguments.append((kind, ctypes.string_at(place, 4)))
        trailing = [ctypes.string_at(place, 8) for place in places[len(kinds) :]]
        assert trailing == [bytes(8)] * 2
        after = self.run(self.codes[function.value], arguments)
        for pointer, data in zip(pointers, after, strict=True):
            self.memory[pointer][:] = data
        self.clock += 1.0
        return 0

    do_LaunchKernel = do_ModuleLaunchKernel

    def do_EventCreate(self, event: Any, *_: Any) -> int:
        event._obj.value = 1
        return 0

    def do_EventRecord(self, event: Any, _stream: Any) -> int:
        self.started, self.ended = getattr(self, "ended", 0.0), self.clock
        return 0

    def do_EventElapsedTime(self, time: Any, _first: Any, _last: Any) -> int:
        time._obj.value = self.ended - self.started
        return 0


def executed(
    code: bytes, document: dict[str, Any], arguments: list[tuple[str, Any]]
) -> list[bytes]:
    """What a code object leaves, run on the CPU; each code once, as all launches are equal."""
    from verilocc_bench.machine.execution import load_kernel

    key = (code, *(data for _, data in arguments))
    if key not in _EXECUTED:
        values: list[Any] = []
        for kind, data in arguments:
            values.append(np.frombuffer(data, np.uint8 if kind == "buffer" else np.int32))
        values = [each if kind == "buffer" else each[0]
                  for each, (kind, _) in zip(values, arguments, strict=True)]  # fmt: skip
        done = load_kernel(code, document["function"]).run(values, document["grid"])
        _EXECUTED[key] = [each.tobytes() for each in done.buffers if each is not None]
    return _EXECUTED[key]


_EXECUTED: dict[tuple[bytes, ...], list[bytes]] = {}


def pretend(folder: Path, behaviour: str, request: str) -> None:
    """The worker's main on a pretended GPU."""
    from verilocc_bench.measuring import driver, worker
    from verilocc_bench.references import Buffer
    from verilocc_bench.references.numbers import encode

    document = json.loads((folder / "measure.json").read_text())
    kernels: list[worker.LaunchedKernel] = []
    made = worker.LaunchedKernel.__init__

    def remembered(self: worker.LaunchedKernel, *arguments: Any) -> None:
        kernels.append(self)
        made(self, *arguments)

    worker.LaunchedKernel.__init__ = remembered  # type: ignore[method-assign]
    odd = {
        (folder / each["file"]).read_bytes(): what
        for kernel in document["kernels"]
        for each in kernel["sides"]
        for what, _, side in (said.partition(":") for said in behaviour.split(","))
        if each["name"] == side
    }
    launches = 0

    def run(code: bytes, arguments: list[tuple[str, Any]]) -> list[bytes]:
        nonlocal launches
        launches += 1
        does = odd.get(code, "right")
        before = [data for kind, data in arguments if kind == "buffer"]
        if does == "dies":
            os.kill(os.getpid(), signal.SIGSEGV)
        if does == "slow":
            time.sleep(60)
        if does == "idle":
            return before
        if behaviour == "executes":
            return executed(code, kernels[-1].document, arguments)
        prepared = kernels[-1].prepared
        expected = {each.name: each for each in prepared.expectations}
        after = []
        for buffer, data in zip(prepared.buffers.values(), before, strict=True):
            kept = data[: buffer.initial.nbytes]  # of an allocation, which may be larger
            left = np.frombuffer(kept, buffer.initial.dtype).reshape(buffer.initial.shape).copy()
            if buffer.name in expected:
                want = expected[buffer.name]
                left[want.written] = encode(want.wanted, buffer.element)[want.written]
                if does in {"wrong", "changes"} and (does == "wrong" or launches % 2):
                    left[want.written] = encode(want.wanted * 0.5, buffer.element)[want.written]
            after.append(left.tobytes())
        return after

    def kinds() -> list[str]:
        every = kernels[-1].prepared.arguments
        return ["buffer" if isinstance(each, Buffer) else "value" for each in every]

    library = FakeLibrary("hip" if document["vendor"] == "amd" else "cu", kinds, run)
    launch = library.do_LaunchKernel
    library.do_LaunchKernel = (  # type: ignore[method-assign]
        lambda f, *rest: 700 if odd.get(library.codes[f.value]) == "fault" else launch(f, *rest)
    )
    if behaviour == "lost":
        library.do_MemcpyDtoD = lambda *_: 0  # type: ignore[method-assign]
    # Its own alone: numba needs the real one.
    driver.ctypes = SimpleNamespace(  # type: ignore[assignment]
        **{**vars(ctypes), "CDLL": lambda _name: library}
    )
    worker.main(folder, json.loads(request))


if __name__ == "__main__":
    pretend(Path(sys.argv[1]), sys.argv[2], sys.argv[-1])
