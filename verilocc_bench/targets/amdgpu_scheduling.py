"""What LLVM's scheduler after allocation may not reorder on gfx90a and gfx942.

LLVM schedules each block once more when registers are known, and inserts waits and
s_nop afterwards. Registers that the normalized text does not name (SCC, EXEC, M0) order
scalar instructions, too; this module knows nothing of them.

Sources: LLVM 22, llvm/lib/Target/AMDGPU: GCNSchedStrategy.cpp (scheduling after
allocation), GCNHazardRecognizer.cpp (`checkMAIHazards90A`, `checkMAIVALUHazards`: wait
states after matrix instructions).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from verilocc_bench.ir import Instruction

_MEMORY = re.compile(r"(?P<kind>BUFFER|GLOBAL|FLAT|SCRATCH|DS|S(?:_BUFFER)?_LOAD|S_STORE)_?\w*")
_STORE = re.compile(r"\w*(STORE|WRITE|ATOMIC|_ADD_|_ADD$)\w*")
_BARRIER = re.compile(
    r"S_BARRIER\w*|WAVE_BARRIER|S_WAITCNT\w*|SCHED_\w+|IGLP_OPT|S_SETPRIO|S_SLEEP|S_SENDMSG\w*"
    r"|S_SETREG\w*|INLINEASM\w*|S_C?BRANCH\w*|S_ENDPGM\w*"
)
_MATRIX = re.compile(r"V_S?MFMAC?_\w+?_(\d+)X\d+X\d+\w*")
_MATRIX_WAIT_STATES = {4: 5, 16: 11, 32: 19}
"""By the rows of the result: the wait states before another write of the same register."""


def stays_behind(instructions: Sequence[Instruction]) -> list[int]:
    """For each instruction of a block the earlier ones, as a bit mask, that it stays behind.

    Barriers keep their place among memory operations. A store, or an atomic, keeps its
    place among operations on the same kind of memory: the text does not tell addresses.
    """
    found: list[int] = []
    memory = barrier = 0
    stores: dict[bool, int] = {}
    loads: dict[bool, int] = {}
    for number, instruction in enumerate(instructions):
        own = 1 << number
        if _BARRIER.fullmatch(instruction.opcode):
            found.append(memory | barrier)
            memory, barrier = 0, own
            stores, loads = {}, {}
            continue
        match = _MEMORY.fullmatch(instruction.opcode)
        if match is None:
            found.append(0)
            continue
        local = match["kind"] == "DS"
        before = barrier | stores.get(local, 0)
        if _STORE.fullmatch(instruction.opcode):
            before |= loads.get(local, 0)
            stores[local] = stores.get(local, 0) | own
        else:
            loads[local] = loads.get(local, 0) | own
        memory |= own
        found.append(before)
    return found


def wait_states(instruction: Instruction) -> int:
    """The instructions after a matrix instruction in which its registers cannot be written.

    0 for other instructions.
    """
    match = _MATRIX.fullmatch(instruction.opcode)
    return _MATRIX_WAIT_STATES.get(int(match[1]), 0) if match else 0
