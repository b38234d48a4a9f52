"""What a call of an unknown callee reads, returns and destroys, by the ABI of ptxas.

NVIDIA does not publish this ABI for machine code. nvdisasm's life ranges show it in the row
of each call (measured with 13.5 on sm_80 and sm_90, with up to 250 registers in use): `^`
where the callee writes, `:` where a value lives through. ptxas keeps values across a call
in just these registers. The gate compares each row with this table again.

A callee may read every register that arguments come in, and returns values in any of them.
It may write every predicate. UR38 and above were never seen across a call: they count as
destroyed.
"""

from __future__ import annotations

from verilocc_bench.ir import FixedUnits

RETURN_ADDRESS = FixedUnits("R", 20, 2)
"""The pair that holds the place where the callee returns to."""

ARGUMENTS = FixedUnits("R", 4, 12)
"""The registers of arguments and of values that are returned."""

READ = (FixedUnits("R", 0, 1), ARGUMENTS, RETURN_ADDRESS)
RETURNED = (ARGUMENTS, FixedUnits("P", 0, 7), FixedUnits("UP", 0, 7))
_RUN = 4  # from R32 on, four registers are destroyed and four are kept, in turns
DESTROYED = (
    FixedUnits("R", 0, 1),
    FixedUnits("R", 3, 1),
    RETURN_ADDRESS,
    *(FixedUnits("R", first, _RUN) for first in range(32, 252, 2 * _RUN)),
    FixedUnits("UR", 4, 32),
    FixedUnits("UR", 38, 25),
)
"""The rest of what the callee may write; R1, R2, R16 to R19, R22 to R31 are kept, for example."""


def destroyed_units(registers: int) -> tuple[FixedUnits, ...]:
    """The units of DESTROYED in a budget of that many general registers."""
    return tuple(
        FixedUnits(units.file, units.first, min(units.count, registers - units.first))
        if units.file == "R"
        else units
        for units in DESTROYED
        if units.file != "R" or units.first < registers
    )
