"""The places of an answer's virtual registers, and the findings about them.

The module reads a name against the hardware alone: the letters of a file and a
canonical decimal number, or a name that the file gives its unit. The name of a
whole file of named units (`vcc`) is the base of registers as wide as the file.
Then it checks each unit against the class, the budget and the reserved units.

Cost: linear in the units of the registers.
"""

from __future__ import annotations

from collections.abc import Mapping

from verilocc_bench.edits.findings import Finding, FindingKind
from verilocc_bench.ir import Function, RegisterClass
from verilocc_bench.targets import Target, TargetFile

Place = tuple[str, int]
"""(file, unit)."""

_DIGITS = "0123456789"


class Places:
    """The places of one answer's registers; `bases` has every entry that names a register."""

    def __init__(
        self,
        function: Function,
        target: Target,
        registers: Mapping[int, RegisterClass],
        rejected: frozenset[int],
        assignment: Mapping[str, str],
    ) -> None:
        self.target = target
        self.registers = registers
        self.bases: dict[int, Place] = {}
        self.findings: list[Finding] = []
        self._budgets = {file.name: file.count for file in function.files}
        self._reserved = {
            (units.file, unit)
            for units in function.reserved
            for unit in range(units.first, units.first + units.count)
        }
        self._legal: dict[tuple[RegisterClass, str], Place] = {}
        known = {f"%{number}" for number in registers}
        known |= {f"%{number}" for number in rejected}
        for key in assignment:
            if key not in known:
                count = len(function.virtual_registers)
                message = f"{key[:40]} is not a virtual register: the function has {count} of them"
                kind = FindingKind.UNKNOWN_VIRTUAL_REGISTER
                self.findings.append(Finding(kind, message, registers=(key[:40],)))
        for number, register_class in registers.items():
            self._place(number, register_class, assignment.get(f"%{number}"))

    @property
    def complete(self) -> bool:
        """True if every register has a place, legal or not."""
        return len(self.bases) == len(self.registers)

    def unit_name(self, place: Place) -> str:
        """The assembler's name of a unit."""
        file, index = place
        names = self.target.file(file).unit_names
        return names[index] if index < len(names) else f"{file}{index}"

    def _place(self, number: int, register_class: RegisterClass, name: str | None) -> None:
        key = f"%{number}"
        if name is None:
            message = f"{key} has no register"
            self.findings.append(Finding(FindingKind.MISSING, message, registers=(key,)))
            return
        known = self._legal.get((register_class, name))
        if known is not None:
            self.bases[number] = known
            return
        place = _read_name(self.target, name)
        if place is None:
            message = f"{key}: {self.target.name} has no register {name[:40]!r}"
            kind = FindingKind.UNKNOWN_PHYSICAL_REGISTER
            self.findings.append(Finding(kind, message, registers=(key, name[:40])))
            return
        self.bases[number] = place
        wrong = self._why_illegal(register_class, name, place)
        if wrong is None:
            self._legal[register_class, name] = place
            return
        kind, reason = wrong
        message = f"{key} of class {register_class.name} cannot be in {name}: {reason}"
        self.findings.append(Finding(kind, message, registers=(key, name), unit=name))

    def _why_illegal(
        self, register_class: RegisterClass, name: str, place: Place
    ) -> tuple[FindingKind, str] | None:
        width = register_class.width
        file = self.target.file(place[0])
        if file.unit_names and name == file.name and width != len(file.unit_names):
            units = " or ".join(file.unit_names)
            reason = f"{name} is {len(file.unit_names)} registers; one is {units}"
            return FindingKind.WRONG_CLASS, reason
        budget = min(self._budgets.get(file.name, 0), file.count)
        ranges = [bases for bases in register_class.ranges if bases.file == file.name]
        if not ranges and budget:
            allowed = " or ".join(register_class.files) or "no file at all"
            return FindingKind.WRONG_CLASS, f"the class allows {allowed}"
        base = place[1]
        units_taken = [(place[0], unit) for unit in range(base, base + width)]
        if any(index >= budget for _, index in units_taken):
            return FindingKind.OVER_BUDGET, f"it needs {width} from {name}, the budget is {budget}"
        if held := [self.unit_name(unit) for unit in units_taken if unit in self._reserved]:
            return FindingKind.RESERVED, f"{', '.join(held)} is reserved"
        if any(base in bases for bases in ranges):
            return None
        if not any((base - bases.first) % bases.step == 0 for bases in ranges):
            steps = " or ".join(str(bases.step) for bases in ranges)
            return FindingKind.MISALIGNED, f"its bases are {steps} apart"
        allowed = ", ".join(f"{file.name} {bases.first} to {bases.last}" for bases in ranges)
        return FindingKind.WRONG_CLASS, f"the class allows {allowed}"


def _read_name(target: Target, name: str) -> Place | None:
    """The first unit of a name; None if the hardware has no such register."""
    for file in target.files:
        index = _index_in(file, name)
        if index is not None:
            return file.name, index
    return None


def _index_in(file: TargetFile, name: str) -> int | None:
    if file.unit_names:
        if name == file.name:
            return 0
        return file.unit_names.index(name) if name in file.unit_names else None
    digits = name.removeprefix(file.name)
    if len(digits) == len(name) or not digits or len(digits) > 6:
        return None
    if any(digit not in _DIGITS for digit in digits) or (digits[0] == "0" and digits != "0"):
        return None
    index = int(digits)
    return index if index < file.count else None
