"""Rows of numbers in the making, and the constants of a program."""

from __future__ import annotations

from verilocc_bench.machine import fields as f
from verilocc_bench.machine.operand_text import CodeOperand

_OPERAND_FIELDS = frozenset((f.RESULT, f.SECOND, f.A, f.B, f.C, f.D))


class Unsupported(ValueError):
    """What is not implemented; the message names it."""


class ConstantPool:
    """The constants of a program, each once; a place is among the scalar registers."""

    def __init__(self) -> None:
        self.values: list[int] = []
        self._places: dict[tuple[int, int], int] = {}
        self._blocks: dict[tuple[int, ...], int] = {}

    def place(self, value: int, width: int) -> int:
        """The place of a constant of one or two registers."""
        key = (value, width)
        if key not in self._places:
            self._places[key] = f.FIRST_CONSTANT + len(self.values)
            self.values.append(value & 0xFFFF_FFFF)
            if width == 2:
                self.values.append(value >> 32 & 0xFFFF_FFFF)
            self._check_room()
        return self._places[key]

    def block(self, values: tuple[int, ...]) -> int:
        """The first place of several constants of one register that stand side by side."""
        if values not in self._blocks:
            self._blocks[values] = f.FIRST_CONSTANT + len(self.values)
            self.values.extend(values)
            self._check_room()
        return self._blocks[values]

    def _check_room(self) -> None:
        if f.FIRST_CONSTANT + len(self.values) > f.SCALARS:
            raise Unsupported("more constants than there is room for")


class CodeRow:
    """The numbers of one instruction, by the names in `fields`."""

    def __init__(self) -> None:
        self.numbers = [f.NONE if n in _OPERAND_FIELDS else 0 for n in range(f.FIELDS)]

    def __getitem__(self, field: int) -> int:
        return self.numbers[field]

    def __setitem__(self, field: int, value: int) -> None:
        self.numbers[field] = value

    def put_result(self, operand: CodeOperand, width: int) -> None:
        """The destination. Raises Unsupported for another width."""
        if operand.place is None or operand.width != width:
            raise Unsupported(f"a destination of {operand.width} registers, expected {width}")
        self[f.RESULT], self[f.RESULT_WIDTH] = operand.place, width

    def put_source(self, slot: int, operand: CodeOperand, width: int) -> None:
        """A register as source number `slot`. Raises Unsupported for another width."""
        if operand.place is None or operand.width != width:
            raise Unsupported(f"a source of {operand.width} registers, expected {width}")
        self[f.A + 2 * slot], self[f.A_WIDTH + 2 * slot] = operand.place, width

    def put_constant(self, slot: int, constants: ConstantPool, value: int, width: int) -> None:
        """A constant as source number `slot`."""
        self[f.A + 2 * slot] = constants.place(value, width)
        self[f.A_WIDTH + 2 * slot] = width

    def copy_result_to_source(self, slot: int) -> None:
        """The destination as source number `slot`, too."""
        self[f.A + 2 * slot] = self[f.RESULT]
        self[f.A_WIDTH + 2 * slot] = self[f.RESULT_WIDTH]
