"""The functions of a GPU's driver that a measurement needs, by ctypes.

The names are CUDA's. HIP has the same functions under names of its own; that table is
tested on a pretended driver alone.
"""

from __future__ import annotations

import ctypes
from typing import Any

_HIP_NAMES = {
    "CtxSynchronize": "DeviceSynchronize",
    "LaunchKernel": "ModuleLaunchKernel",
    "MemAlloc_v2": "Malloc",
    "MemFree_v2": "Free",
    "MemcpyDtoD_v2": "MemcpyDtoD",
    "MemcpyDtoH_v2": "MemcpyDtoH",
    "MemcpyHtoD_v2": "MemcpyHtoD",
    "OccupancyMaxActiveBlocksPerMultiprocessor": "ModuleOccupancyMaxActiveBlocksPerMultiprocessor",
}
_LARGE_SHARED_BYTES = 48 << 10
_LARGEST_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_LOCAL_BYTES, _REGISTERS = 3, 4  # CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, …_NUM_REGS


class DriverError(Exception):
    """A function of the driver failed; the message is one line."""


class Gpu:
    """One device."""

    def __init__(self, vendor: str, device: int = 0) -> None:
        self.is_hip = vendor == "amd"
        name = "libamdhip64.so" if self.is_hip else "libcuda.so.1"
        try:
            self.library = ctypes.CDLL(name)
        except OSError as error:
            raise DriverError(f"there is no driver of a GPU here: {error}") from None
        self.call("Init", 0)
        handle = ctypes.c_int(device)
        if self.is_hip:
            self.call("SetDevice", device)
        else:
            self.call("DeviceGet", ctypes.byref(handle), device)
            context = ctypes.c_void_p()
            self.call("DevicePrimaryCtxRetain", ctypes.byref(context), handle)
            self.call("CtxSetCurrent", context)
        text = ctypes.create_string_buffer(256)
        self.call("DeviceGetName", text, 256, handle)
        version = ctypes.c_int()
        self.call("DriverGetVersion", ctypes.byref(version))
        self.name, self.version = text.value.decode(errors="replace"), version.value

    def call(self, function: str, *arguments: Any) -> None:
        """Calls a function of the driver. Raises DriverError if it fails."""
        name = f"hip{_HIP_NAMES.get(function, function)}" if self.is_hip else f"cu{function}"
        status = getattr(self.library, name)(*arguments)
        if status:
            raise DriverError(f"{name} failed with error {status}")

    def load(self, code: bytes, name: str, shared_bytes: int) -> Any:
        """A kernel of a code object or cubin."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("ModuleLoadData", ctypes.byref(module), code)
        self.call("ModuleGetFunction", ctypes.byref(function), module, name.encode())
        if not self.is_hip and shared_bytes > _LARGE_SHARED_BYTES:
            self.call("FuncSetAttribute", function, _LARGEST_SHARED, shared_bytes)
        return function

    def facts(self, function: Any, threads: int, shared_bytes: int) -> dict[str, int]:
        """Registers and bytes of local memory of a thread; blocks that fit a multiprocessor."""
        found = {}
        for name, number in (("registers", _REGISTERS), ("local_bytes", _LOCAL_BYTES)):
            value = ctypes.c_int()
            self.call("FuncGetAttribute", ctypes.byref(value), number, function)
            found[name] = value.value
        blocks = ctypes.c_int()
        size = ctypes.c_size_t(shared_bytes)
        self.call("OccupancyMaxActiveBlocksPerMultiprocessor", ctypes.byref(blocks), function,
                  threads, size)  # fmt: skip
        return {**found, "blocks": blocks.value}

    def allocate(self, size: int) -> Any:
        """Memory of the device."""
        pointer = ctypes.c_void_p() if self.is_hip else ctypes.c_uint64()
        self.call("MemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(size, 16)))
        return pointer

    def free(self, pointer: Any) -> None:
        """Gives memory back."""
        self.call("MemFree_v2", pointer)

    def put(self, pointer: Any, data: bytes) -> None:
        """Copies bytes to the device."""
        self.call("MemcpyHtoD_v2", pointer, data, ctypes.c_size_t(len(data)))

    def copy(self, to: Any, source: Any, size: int) -> None:
        """Copies bytes within the device."""
        self.call("MemcpyDtoD_v2", to, source, ctypes.c_size_t(size))

    def get(self, pointer: Any, size: int) -> bytes:
        """Copies bytes from the device."""
        data = ctypes.create_string_buffer(size)
        self.call("MemcpyDtoH_v2", data, pointer, ctypes.c_size_t(size))
        return data.raw

    def overwrite(self, pointer: Any, size: int, value: int) -> None:
        """Fills memory with a byte, in the order of launches."""
        number = ctypes.c_ubyte(value & 255)
        self.call("MemsetD8Async", pointer, number, ctypes.c_size_t(size), None)

    def wait(self) -> None:
        """Waits until the device is idle."""
        self.call("CtxSynchronize")

    def event(self) -> Any:
        """A new event."""
        event = ctypes.c_void_p()
        if self.is_hip:
            self.call("EventCreate", ctypes.byref(event))
        else:
            self.call("EventCreate", ctypes.byref(event), 0)
        return event

    def record(self, event: Any) -> None:
        """Marks the present in the order of launches."""
        self.call("EventRecord", event, None)

    def milliseconds(self, first: Any, last: Any) -> float:
        """The time between two events."""
        time = ctypes.c_float()
        self.call("EventSynchronize", last)
        self.call("EventElapsedTime", ctypes.byref(time), first, last)
        return time.value
