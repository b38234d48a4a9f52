"""The intermediate representation: functions over virtual registers, and their text."""

from verilocc_bench.ir.class_text import format_class, parse_class
from verilocc_bench.ir.function import (
    Assignment,
    Block,
    FixedUnits,
    Function,
    Guard,
    Instruction,
    Operand,
    VirtualLanes,
)
from verilocc_bench.ir.registers import (
    BaseRange,
    PhysicalRegister,
    RegisterClass,
    RegisterFile,
    format_units,
)
from verilocc_bench.ir.text import instance_id, print_function
from verilocc_bench.ir.text_parser import parse_function

__all__ = [
    "Assignment",
    "BaseRange",
    "Block",
    "FixedUnits",
    "Function",
    "Guard",
    "Instruction",
    "Operand",
    "PhysicalRegister",
    "RegisterClass",
    "RegisterFile",
    "VirtualLanes",
    "format_class",
    "format_units",
    "instance_id",
    "parse_class",
    "parse_function",
    "print_function",
]
