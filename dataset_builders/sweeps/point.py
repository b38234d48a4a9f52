"""A sweep point: everything that defines one compiled kernel."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from dataset_builders.kernels.specifications import (
    AMD_OPTIONS,
    KERNELS,
    NVIDIA_OPTIONS,
    Family,
    KernelSpecification,
    ParameterValue,
)
from verilocc_bench.errors import InputError

ArchitectureName: TypeAlias = Literal["gfx90a", "gfx942", "sm_80", "sm_90"]
ARCHITECTURES: tuple[ArchitectureName, ...] = get_args(ArchitectureName)

# NVIDIA's code does not depend on the size of buffers. Triton has one way to sm_80.
_ABSENT: Mapping[ArchitectureName, tuple[str, ...]] = {
    "gfx90a": NVIDIA_OPTIONS,
    "gfx942": NVIDIA_OPTIONS,
    "sm_80": (*AMD_OPTIONS, "small_buffers", "capability"),
    "sm_90": (*AMD_OPTIONS, "small_buffers"),
}

# Names of one arithmetic width compile to code that differs in little more
# than the matrix opcode.
_ELEMENT_KINDS = {
    "fp16": "f16",
    "bf16": "f16",
    "fp32": "f32",
    "int8": "i8",
    "fp8e4b8": "f8",
    "fp8e5b16": "f8",
}


@dataclass(frozen=True, slots=True)
class Parameters(Mapping[str, ParameterValue]):
    """An immutable mapping, sorted by name, that is a JSON object."""

    entries: tuple[tuple[str, ParameterValue], ...]

    @classmethod
    def of(cls, values: Mapping[str, ParameterValue]) -> Parameters:
        """The parameters of a mapping."""
        return cls(tuple(sorted(values.items())))

    def __getitem__(self, name: str) -> ParameterValue:
        for entry, value in self.entries:
            if entry == name:
                return value
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def integer(self, name: str) -> int:
        """A numeric parameter; a KeyError or TypeError is a bug of the sweep."""
        value = self[name]
        if not isinstance(value, int):
            raise TypeError(f"parameter {name} is {value!r}, not a number")
        return value


@dataclass(frozen=True, slots=True)
class RowPoint(ABC):
    """A kernel, the architecture that it is compiled for, and all that it is compiled with."""

    arch: str
    kernel: str
    parameters: Parameters

    @property
    @abstractmethod
    def family(self) -> str:
        """The family of the kernel."""

    @property
    @abstractmethod
    def key(self) -> str:
        """A short, stable identifier that is safe as a file name."""

    @property
    @abstractmethod
    def group(self) -> str:
        """The group that splits keep whole."""

    @property
    def parameters_json(self) -> str:
        """The parameters as canonical JSON: sorted keys, no spaces."""
        return json.dumps(dict(self.parameters), sort_keys=True, separators=(",", ":"))

    @property
    def digest(self) -> str:
        """The SHA-256, in hex, of architecture, kernel and parameters."""
        text = f"{self.arch}\n{self.kernel}\n{self.parameters_json}"
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class SweepPoint(RowPoint):
    """One kernel, for one architecture, with all of its parameters."""

    arch: ArchitectureName

    @property
    def family(self) -> Family:
        """The family of the kernel's specification."""
        return self.specification.family

    @property
    def specification(self) -> KernelSpecification:
        """The kernel's entry in `KERNELS`."""
        return KERNELS[self.kernel]

    @property
    def key(self) -> str:
        """A short, stable identifier of the point that is safe as a file name."""
        return "-".join(
            (self.kernel, self.arch, str(self.parameters["dtype"]), self._shape, self.digest[:10])
        )

    @property
    def group(self) -> str:
        """The sweep group, which train and test splits keep whole.

        It is made of the family, the kind of kernel, the kind of element and the
        tile's shape. Stages, waves, the shape of the matrix instruction, the
        architecture, the epilogue, edges, layouts, masks and fp16 against bf16
        change single instructions, or the head and the tail of the main loop. A
        model that was trained on one such neighbour has almost seen the other.
        Batched, persistent and split-K products share the plain product's loop,
        and so its kind.
        """
        element = _ELEMENT_KINDS[str(self.parameters["dtype"])]
        return f"{self.family}/{self.specification.kind}/{element}/{self._shape}"

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of the tile; a KeyError where the kernel has none."""
        rows = "block_h" if "block_h" in self.parameters else "block_m"
        return self.parameters.integer(rows), self.parameters.integer("block_n")

    @property
    def _shape(self) -> str:
        return "x".join(str(self.parameters[name]) for name in self.specification.shape)


def architecture_named(name: str) -> ArchitectureName:
    """The architecture with this name. Raises InputError if there is none."""
    for arch in ARCHITECTURES:
        if arch == name:
            return arch
    known = ", ".join(ARCHITECTURES)
    raise InputError(f"unknown architecture {name!r}; known are {known}")


def make_point(
    arch: ArchitectureName, kernel: str, changes: Mapping[str, ParameterValue]
) -> SweepPoint:
    """The kernel's point with its defaults and these changes.

    Raises InputError for an unknown kernel or parameter. Options that the
    architecture's compiler does not have are left out.
    """
    specification = KERNELS.get(kernel)
    if specification is None:
        raise InputError(f"unknown kernel {kernel!r}")
    unknown = sorted(set(changes) - specification.parameter_names)
    if unknown:
        raise InputError(f"kernel {kernel} has no parameter {unknown[0]!r}")
    values = dict(specification.defaults) | dict(changes)
    values = {name: value for name, value in values.items() if name not in _ABSENT[arch]}
    return SweepPoint(arch, kernel, Parameters.of(values))


def point_from_json(arch: str, kernel: str, parameters_json: str) -> SweepPoint:
    """The point of a dataset row's columns `arch`, `kernel` and `params`."""
    values = decode_parameters(parameters_json)
    return make_point(architecture_named(arch), kernel, values)


def decode_parameters(parameters_json: str) -> dict[str, ParameterValue]:
    """The parameters of a row's column `params`. Raises InputError for no JSON object."""
    try:
        values = json.loads(parameters_json)
    except json.JSONDecodeError as error:
        raise InputError(f"parameters are not JSON: {error}") from None
    if not isinstance(values, dict):
        raise InputError("parameters are not a JSON object")
    return values
