"""docs/execution.md lists exactly the opcodes that the interpreter has."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

from verilocc_bench.machine.matrix_table import MATRIX_INSTRUCTIONS
from verilocc_bench.machine.memory_opcodes import LDS_OPCODES, SCALAR_LOAD_WIDTHS, VECTOR_OPCODES
from verilocc_bench.machine.opcode_table import OPCODES
from verilocc_bench.machine.special_decoding import SPECIAL_DECODERS

DOCUMENT = Path(__file__).parents[2] / "docs" / "execution.md"


def expanded(pattern: str) -> list[str]:
    """The names that a pattern such as `v_min_{f32,f64}` stands for."""
    parts = re.split(r"\{([^}]*)\}", pattern)
    choices = [part.split(",") if n % 2 else [part] for n, part in enumerate(parts)]
    return ["".join(words) for words in product(*choices)]


def documented() -> set[str]:
    text = DOCUMENT.read_text(encoding="utf-8")
    table = text.partition("| group | opcodes |")[2].partition("\n\n")[0]
    return {name for pattern in re.findall(r"`([^`]+)`", table) for name in expanded(pattern)}


def implemented() -> set[str]:
    memory = {
        f"{prefix}_{name}"
        for prefix in ("buffer", "global", "flat", "scratch")
        for name in VECTOR_OPCODES
    }
    scalar = {
        f"{prefix}_{name}" for prefix in ("s_load", "s_buffer_load") for name in SCALAR_LOAD_WIDTHS
    }
    matrices = {name for table in MATRIX_INSTRUCTIONS.values() for name in table}
    return {*OPCODES, *memory, *scalar, *LDS_OPCODES, *SPECIAL_DECODERS, *matrices}


def test_the_table_is_complete_and_says_nothing_else() -> None:
    assert documented() == implemented()
