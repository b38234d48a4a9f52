"""The operand constraints of AMDGPU instructions that machine IR does not spell out.

`amdgpu_constraints.json` lists the opcodes of LLVM 22's machine IR with tied operands
and early clobbers. `make register-classes` generates it from LLVM's own tables, and the
tests compare it with them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class OperandConstraints:
    """The early clobbers among the definitions, and the tied (use, definition) pairs.

    Operands are numbered from 0.
    """

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
    """The constraints of an opcode, spelled as in machine IR; empty for an unknown one."""
    return _table().get(opcode, _NONE)
