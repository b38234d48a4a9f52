"""Which AMDGPU opcodes a processor has, by LLVM's own tables.

LLVM has a set of features for each processor, and for each opcode the set that it
needs. The sets of opcodes are over conditions such as `HasBitOp3Insts`; LLVM's
`computeAvailableFeatures` says which conditions hold for the features of a processor.
"""

from __future__ import annotations

import ctypes
import struct

from dataset_builders.compilers.llvm_tables import LLVMImage, Symbol

_SET_BYTES = 48  # llvm::FeatureBitset: 384 bits
_FEATURE_RECORD = struct.Struct(f"<QQI4x{_SET_BYTES}s")  # llvm::SubtargetFeatureKV
_PROCESSOR_RECORD = struct.Struct(f"<Q{_SET_BYTES}s{_SET_BYTES}sQ")  # llvm::SubtargetSubTypeKV
_CHOSEN_BY_THE_USER = ("xnack",)
"""Features that a kernel turns on or off, and that add instructions to its processor's."""


class OpcodeFeatures:
    """The features of opcodes, by LLVM's number, and of processors, by name."""

    def __init__(self, image: LLVMImage) -> None:
        sets = image.data(Symbol.REQUIRED_SETS)
        self._sets = [
            int.from_bytes(sets[start : start + _SET_BYTES], "little")
            for start in range(0, len(sets), _SET_BYTES)
        ]
        places = image.data(Symbol.REQUIRED_PLACES)
        self._places = struct.unpack(f"<{len(places) // 2}H", places)
        address = image.base + image.symbols[Symbol.AVAILABLE_FUNCTION][0]
        pointers = (ctypes.c_void_p,) * 3
        self._available = ctypes.CFUNCTYPE(*pointers)(address)
        self._implied: dict[str, tuple[int, int]] = {}
        for name, _, bit, implied in _FEATURE_RECORD.iter_unpack(image.data(Symbol.FEATURES)):
            self._implied[_name(name)] = bit, int.from_bytes(implied, "little")
        self._processors = {
            _name(name): int.from_bytes(features, "little")
            for name, features, _, _ in _PROCESSOR_RECORD.iter_unpack(image.data(Symbol.PROCESSORS))
        }
        self._conditions: dict[str, tuple[int, ...]] = {}

    def has(self, processor: str, opcode: int) -> bool:
        """True if the processor has all that an opcode needs, with what a kernel can turn on."""
        if processor not in self._conditions:
            own = self._processors[processor]
            turned_on = [own | 1 << self._implied[name][0] for name in _CHOSEN_BY_THE_USER]
            self._conditions[processor] = tuple(map(self._conditions_of, (own, *turned_on)))
        needed = self._sets[self._places[opcode]]
        return any(not needed & ~conditions for conditions in self._conditions[processor])

    def _conditions_of(self, features: int) -> int:
        """The conditions that hold for features and all that they imply."""
        known = -1
        while features != known:
            known = features
            for bit, implied in self._implied.values():
                if features >> bit & 1:
                    features |= implied
        result = ctypes.create_string_buffer(_SET_BYTES)
        given = ctypes.create_string_buffer(features.to_bytes(_SET_BYTES, "little"), _SET_BYTES)
        # The C++ function returns its set through a first, hidden pointer.
        self._available(ctypes.addressof(result), ctypes.addressof(given))
        return int.from_bytes(result.raw, "little")


def _name(pointer: int) -> str:
    return ctypes.string_at(pointer).decode()
