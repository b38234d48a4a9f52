"""The places of virtual registers: unit numbers and legal bases.

All units of a target's files have consecutive numbers, file after file, in the
order of the target. A name that the hardware does not have has no number.
"""

from __future__ import annotations

import re
from functools import cache

from verilocc_bench.ir import BaseRange, Function, PhysicalRegister, RegisterClass, format_units
from verilocc_bench.targets import Target, TargetFile

_NUMBERED = re.compile(r"([A-Za-z]+)(0|[1-9]\d{0,5})", re.ASCII)


def parse_register_name(target: Target, name: str) -> PhysicalRegister | None:
    """The base that an assembler's name means; None for a name the hardware does not have."""
    for file in target.files:
        if name in file.unit_names:
            return PhysicalRegister(file.name, file.unit_names.index(name))
        if file.unit_names and name == file.name:
            return PhysicalRegister(file.name, 0)
    match = _NUMBERED.fullmatch(name)
    if match is None:
        return None
    for file in target.files:
        if file.name == match[1] and not file.unit_names and int(match[2]) < file.count:
            return PhysicalRegister(file.name, int(match[2]))
    return None


class Placements:
    """Unit numbering and legal bases of one function.

    `legal[class]` maps the unit number of each legal base to its name, in the
    order of the class. At a legal base every unit of the register is within the
    budget, none is reserved, and the base is aligned. `by_name[class]` maps
    every name of such a base to its number.
    """

    def __init__(self, function: Function, target: Target) -> None:
        self.function, self.target = function, target
        self.first_unit: dict[str, int] = {}
        self.unit_count = 0
        for file in target.files:
            self.first_unit[file.name] = self.unit_count
            self.unit_count += file.count
        self.reserved = frozenset(
            self.first_unit[units.file] + index
            for units in function.reserved
            for index in range(units.first, units.first + units.count)
        )
        self.legal: dict[RegisterClass, dict[int, str]] = {}
        self.by_name: dict[RegisterClass, dict[str, int]] = {}
        for register_class in set(function.virtual_registers):
            self._enumerate(register_class)

    def _enumerate(self, register_class: RegisterClass) -> None:
        legal: dict[int, str] = {}
        names: dict[str, int] = {}
        for bases in register_class.ranges:
            file = self.target.file(bases.file)
            first, width = self.first_unit[bases.file], register_class.width
            for base, name in zip(bases, _base_names(file, bases, width), strict=True):
                unit = first + base
                if not self.reserved or self.reserved.isdisjoint(range(unit, unit + width)):
                    legal[unit] = name
                    if file.unit_names:
                        names[file.unit_names[base]] = unit
                    names[name] = unit
        self.legal[register_class] = legal
        self.by_name[register_class] = names

    def unit(self, register: PhysicalRegister) -> int:
        """The number of the unit that `register` starts at."""
        return self.first_unit[register.file] + register.index

    def register(self, unit: int) -> PhysicalRegister:
        """The inverse of `unit`."""
        for file in reversed(self.target.files):
            if unit >= self.first_unit[file.name]:
                return PhysicalRegister(file.name, unit - self.first_unit[file.name])
        raise AssertionError(unit)

    def unit_name(self, unit: int) -> str:
        """The assembler's name of one unit."""
        register = self.register(unit)
        return base_name(self.target.file(register.file), register.index, 1)


@cache
def _base_names(file: TargetFile, bases: BaseRange, width: int) -> tuple[str, ...]:
    return tuple([base_name(file, base, width) for base in bases])


@cache
def base_name(file: TargetFile, base: int, width: int) -> str:
    """How an answer names a base: a tuple by its first register, VCC by its own name."""
    if file.unit_names:
        return format_units(file.with_budget(file.count), base, width)
    return f"{file.name}{base}"
