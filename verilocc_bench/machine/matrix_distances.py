"""Wait states that matrix instructions need before what reads or overwrites their registers.

The numbers come from LLVM's hazard recognizer for gfx90a and gfx942
(llvm/lib/Target/AMDGPU/GCNHazardRecognizer.cpp: checkMAIHazards90A, checkMAIVALUHazards).
"""

from __future__ import annotations

from verilocc_bench.machine.compiled import compiled
from verilocc_bench.machine.fields import (
    C_WIDTH,
    IS_DOUBLE_MATRIX,
    IS_XDL,
    PASSES,
    RESULT_WIDTH,
    TRAITS,
)
from verilocc_bench.machine.state import ARCH_942, LAST_MATRIX_ROW, MATRIX_FIRST, GroupState


@compiled
def after_matrix(
    newer: int, passes: int, is_double: bool, is_xdl: bool, reads_for_memory: bool
) -> int:
    """Wait states between a matrix instruction and one that reads its result, or overwrites it
    (where reads_for_memory is False)."""
    if is_double:
        if passes == 4:
            return 9 if reads_for_memory else 6
        return 18 if reads_for_memory else 11
    if newer:
        return passes + (3 if is_xdl else 2)
    return 5 if passes == 2 else 11 if passes == 8 else 19


@compiled
def matrix_to_matrix(
    state: GroupState, wave: int, row: int, slot: int, register: int, first: int
) -> int:
    """Wait states between the last matrix instruction that wrote a register and this one that
    reads it as A or B (slots 0, 1) or C (slot 2)."""
    fields, newer = state.rows[row], state.settings[ARCH_942]
    writer = state.rows[state.vector_marks[wave, LAST_MATRIX_ROW, register]]
    passes, traits, writer_traits = writer[PASSES], fields[TRAITS], writer[TRAITS]
    is_double, was_double = traits & IS_DOUBLE_MATRIX != 0, writer_traits & IS_DOUBLE_MATRIX != 0
    was_xdl = writer_traits & IS_XDL != 0
    if slot < 2:
        if was_double:
            return 6 if passes == 4 else 11
        if newer:
            return passes + (3 if was_xdl else 2)
        return 5 if passes == 2 else 11 if passes == 8 else 19
    same = state.vector_marks[wave, MATRIX_FIRST, register] == first and (
        writer[RESULT_WIDTH] == fields[C_WIDTH]
    )
    if not is_double and was_double and not newer:
        return 0
    if same:
        if is_double and was_double and passes == 4 and fields[PASSES] == 4:
            return 4
        return 2 if newer and passes == 2 else 0
    if was_double:
        if traits & IS_XDL:
            return 0
        return 4 if passes == 4 else 9
    if newer:
        if traits & IS_XDL and not was_xdl:
            return 0
        return passes + 1 if was_xdl else passes
    extra = 1 if is_double else 0
    return passes + extra
