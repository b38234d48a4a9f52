"""Compares the columns of a row with its text.

The text is scanned, not parsed: 0.7 ms for a function of 28 kB. evaluate.prepared
compares the columns that need an analysis (pressure, the label's registers).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from verilocc_bench.errors import InputError
from verilocc_bench.ir import instance_id

_TARGET = re.compile(r"^target (\S+)$", re.ASCII | re.MULTILINE)
_BLOCK = re.compile(r"^bb\d", re.ASCII | re.MULTILINE)
_VIRTUAL = re.compile(r"%(\d{1,9})", re.ASCII)


def check_row(columns: Mapping[str, Any], source: str | Path) -> None:
    """Raises InputError about `source` if a column contradicts the column `normalized`.

    Missing columns are ignored.
    """
    text = columns["normalized"]
    target, blocks = _TARGET.search(text), list(_BLOCK.finditer(text))
    body = text.count("\n", blocks[0].start()) if blocks else 0
    expected = {
        "id": instance_id(text),
        "arch": None if target is None else target[1],
        "n_blocks": len(blocks),
        "n_instructions": body - len(blocks),
        # Virtual registers are numbered from 0, without gaps.
        "n_virtual_registers": 1 + max(map(int, _VIRTUAL.findall(text)), default=-1),
    }
    for name, value in expected.items():
        if name in columns and columns[name] != value:
            raise InputError(
                f"row {str(columns.get('id'))[:40]}: the column {name!r} is "
                f"{str(columns[name])[:40]!r}, its text says {str(value)!r}",
                source=source,
            )
