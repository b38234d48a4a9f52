"""What becomes of one machine instruction: operands, halves of registers, flags."""

from __future__ import annotations

import pytest

from tests.parse.test_mir_syntax import lines


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        # A definition of 16 bits keeps the other half of its unit, and so needs it.
        ("%0.lo16:vgpr_32 = COPY $vgpr3", "%0=COPY +%0,v3"),
        ("%0.hi16:vgpr_32 = COPY $vgpr3", "%0=COPY +%0,v3"),
        ("%0.sub1_lo16:vreg_64_align2 = COPY $vgpr3", "%0.1=COPY +%0.1,v3"),
        ("%0.sub1_hi16:vreg_64_align2 = COPY $vgpr3", "%0.1=COPY +%0.1,v3"),
        ("$vgpr5_lo16 = COPY $vgpr3", "v5=COPY +v5,v3"),
        ("$vgpr5_hi16 = COPY $vgpr3", "v5=COPY +v5,v3"),
        # Not where it says that the rest holds nothing, nor where it writes all of it.
        ("undef %0.lo16:vgpr_32 = COPY $vgpr3", "%0!=COPY v3"),
        ("undef %0.sub1_hi16:vreg_64_align2 = COPY $vgpr3", "%0.1!=COPY v3"),
        ("%0.sub1:vreg_64_align2 = COPY $vgpr3", "%0.1=COPY v3"),
        ("$vgpr5 = COPY $vgpr3", "v5=COPY v3"),
        # A use of one half is a use of the unit.
        ("S_NOP %0.hi16:vgpr_32, $vgpr5_lo16", "S_NOP %0,v5"),
    ],
)
def test_halves_of_registers(instruction: str, expected: str) -> None:
    assert _without_classes(lines(f"    {instruction}")[1]) == expected


def _without_classes(line: str) -> str:
    return line.replace(":V2", "").replace(":V", "")
