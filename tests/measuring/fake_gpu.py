"""A driver's library that stands for a GPU: memory, and kernels run by what it is given."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Any

Run = Callable[[bytes, list[tuple[str, Any]]], list[bytes]]
"""Runs a code with (`buffer`, bytes) and (`value`, bytes) arguments; gives the buffers after."""


class FakeLibrary:
    """The functions that run.py calls, under the names of one vendor."""

    def __init__(self, prefix: str, kinds: list[str], run: Run) -> None:
        self.prefix, self.kinds, self.run = prefix, kinds, run
        self.memory: dict[int, bytearray] = {}
        self.codes: dict[int, bytes] = {}
        self.calls: list[str] = []
        self.launched: list[tuple[Any, ...]] = []
        self.clock = 0.0

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

    def do_Malloc(self, pointer: Any, size: Any) -> int:
        pointer._obj.value = 1 << 20 | len(self.memory) << 8
        self.memory[pointer._obj.value] = bytearray(size.value)
        return 0

    do_MemAlloc = do_Malloc

    def do_MemcpyHtoD(self, pointer: Any, data: bytes, size: Any) -> int:
        self.memory[pointer.value][: size.value] = data
        return 0

    def do_MemcpyDtoH(self, data: Any, pointer: Any, size: Any) -> int:
        ctypes.memmove(data, bytes(self.memory[pointer.value]), size.value)
        return 0

    def do_ModuleLaunchKernel(self, function: Any, *rest: Any) -> int:
        *sizes, _stream, places, _extra = rest
        self.launched.append((function.value, *sizes))
        arguments: list[tuple[str, Any]] = []
        pointers = []
        for kind, place in zip(self.kinds, places, strict=False):
            if kind == "buffer":
                (pointer,) = struct.unpack("<Q", ctypes.string_at(place, 8))
                pointers.append(pointer)
                arguments.append((kind, bytes(self.memory[pointer])))
            else:
                arguments.append((kind, ctypes.string_at(place, 4)))
        trailing = [ctypes.string_at(place, 8) for place in places[len(self.kinds) :]]
        assert trailing == [bytes(8)] * 2
        after = self.run(self.codes[function.value], arguments)
        for pointer, data in zip(pointers, after, strict=True):
            self.memory[pointer][:] = data
        self.clock += 1.0 + 0.5 * (function.value == 100)
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
