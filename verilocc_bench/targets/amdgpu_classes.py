"""LLVM's AMDGPU register classes and register names on gfx90a and gfx942.

`amdgpu_classes.json` lists every allocatable class of LLVM 22, and those that operands alone
have, with the base registers that exist on these targets. `make register-classes` generates
it from LLVM's own tables, and the tests compare it with them.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files

from verilocc_bench.ir import BaseRange, FixedUnits

ClassBases = tuple[int, dict[str, tuple[BaseRange, ...]]]
"""The width of a class in units, and its legal bases by file."""

_UNIT_COUNTS = {"v": 256, "a": 256, "s": 102}
_TUPLE = re.compile(r"([vas])gpr(\d{1,3})(?:_\w+)?", re.ASCII)
_COLUMNS = 2  # a third one marks a class that operands alone have
_HALF = re.compile(r"(.*)_(?:lo|hi)16")
_VCC = {"vcc": FixedUnits("vcc", 0, 2), "vcc_lo": FixedUnits("vcc", 0, 1)}
_VCC["vcc_hi"] = FixedUnits("vcc", 1, 1)

# Registers outside all allocatable classes of these targets, or always reserved by LLVM.
_OUTSIDE = re.compile(
    r"(noreg|exec(_lo|_hi)?|scc|m0|mode|flat_scr(_lo|_hi)?(_ci|_vi)?|xnack_mask(_lo|_hi)?"
    r"|sgpr10[2-5](_sgpr10[2-5])*|sgpr_null(64|_hi)?|lds_direct|t(ba|ma)(_lo|_hi)?"
    r"|ttmp\d+(_ttmp\d+)*|src_\w+"
    r"|(private_rsrc|fp|sp)_reg|\w+cnt)(_lo16|_hi16)?"
)


@cache
def _table() -> dict[str, list[object]]:
    text = files("verilocc_bench.targets").joinpath("amdgpu_classes.json").read_text()
    table: dict[str, list[object]] = json.loads(text)
    return table


@cache
def class_bases(name: str) -> ClassBases | None:
    """The width and the legal bases of a class of virtual registers, or None for other names."""
    return None if len(_table().get(name, ())) > _COLUMNS else operand_bases(name)


@cache
def operand_bases(name: str) -> ClassBases | None:
    """The width and the legal bases of a class that an operand may have, or None."""
    row = _table().get(name)
    if row is None:
        return None
    width, ranges = row[:2]
    assert isinstance(width, int)
    assert isinstance(ranges, list)
    bases: dict[str, tuple[BaseRange, ...]] = {}
    for file, first, last, step in ranges:
        bases[file] = (*bases.get(file, ()), BaseRange(file, first, last, step))
    return width, bases


@cache
def fixed_units(name: str) -> FixedUnits | None:
    """The units of a physical register of machine IR such as `vgpr2_vgpr3`, without its `$`.

    None for a name that is not a VGPR, AGPR, SGPR or VCC of these targets. A 16-bit half
    counts as the whole unit.
    """
    half = _HALF.fullmatch(name)
    whole = half[1] if half else name
    match = _TUPLE.fullmatch(whole)
    if match is None:
        units = _VCC.get(whole)
    else:
        file, first, count = match[1], int(match[2]), whole.count("_") + 1
        spelling = "_".join(f"{file}gpr{index}" for index in range(first, first + count))
        exists = first + count <= _UNIT_COUNTS[file] and whole == spelling
        units = FixedUnits(file, first, count) if exists else None
    return None if half and units is not None and units.count > 1 else units


def is_outside_allocation(name: str) -> bool:
    """True if a physical register can never be assigned to a virtual register."""
    return _OUTSIDE.fullmatch(name) is not None
