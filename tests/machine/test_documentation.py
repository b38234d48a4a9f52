"""docs/execution.md lists exactly the opcodes that the interpreter has."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

from verilocc_bench.machine.decoding import known_opcodes

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


def test_the_table_is_complete_and_says_nothing_else() -> None:
    assert documented() == known_opcodes()
