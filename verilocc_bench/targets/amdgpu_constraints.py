"""What AMDGPU instructions ask of their operands without a word of it in machine IR.

`amdgpu_constraints.json` lists the opcodes of LLVM 22's machine IR with tied
operands and early clobbers. It is generated from LLVM's own tables
(`make register-classes`), and the tests compare it with them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

__all__ = ["OperandConstraints", "operand_constraints"]


@dataclass(frozen=True, slots=True)
class OperandConstraints:
    """Operands by their number, from 0: definitions that are early clobbers, and (use, definition)
    pairs that are tied."""

    early_clobbers: tuple[int, ...]
    ties: tuple[tuple[int, int], ...]


_NONE = OperandConstraints((), ())


@cache
def _table() -> dict[str, OperandConstraints]:
    text = files("verilocc_bench.targets").joinpath("amdgpu_constraints.json").read_text()
    groups: dict[str, str] = json.loads(text)
    table: dict[str, OperandConstraints] = {}
    for key, opcodes in groups.items():
        use, tied, definition = key.partition("=")
        for opcode in opcodes.split():
            known = table.get(opcode, _NONE)
            if tied:
                ties = (*known.ties, (int(use), int(definition)))
                table[opcode] = OperandConstraints(known.early_clobbers, ties)
            else:
                early = (*known.early_clobbers, int(key))
                table[opcode] = OperandConstraints(early, known.ties)
    return table


def operand_constraints(opcode: str) -> OperandConstraints:
    """The constraints of an opcode in the spelling of machine IR; none for an unknown one."""
    return _table().get(opcode, _NONE)
