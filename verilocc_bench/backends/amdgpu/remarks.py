"""What to know of a kernel's machine IR before its registers are compared with others.

Allocation gets machine IR last of all: later passes still coalesce earlier machine IR or put it
into another order, so the compiler's registers for it differ from the compiled kernel's.
"""

from __future__ import annotations

import re

from verilocc_bench.analysis import VECTOR
from verilocc_bench.backends.amdgpu.kernel import MachineKernel
from verilocc_bench.errors import InputError

_KILLED = re.compile(r"\bkilled (?:renamable )?%")


def remarks(kernel: MachineKernel) -> tuple[str, ...]:
    """One line if the machine IR shows that it is from earlier than allocation's input."""
    if kernel.label is not None or kernel.code.llvm_ir is not None:
        return ()
    stage = _stage(kernel)
    if stage is None:
        return ()
    return (
        f"this machine IR is from before LLVM's {stage}: the compiled kernel's registers are "
        "others; expected machine IR as llc -stop-before=greedy writes it",
    )


def _stage(kernel: MachineKernel) -> str | None:
    """The pass that has not run, as far as the text shows one."""
    machine = kernel.code.machine
    start, end = machine.frame.places["body"]
    body = kernel.code.text.split("\n")[start:end]
    if any(_KILLED.search(line) for line in body if "killed" in line):
        return "register coalescer"  # it clears these marks
    if kernel.code.module.is_triton_dump:
        return "scheduler"
    claimed = machine.info.get("occupancy", "")
    if not claimed.isdecimal():
        return None
    try:
        vectors = kernel.problem.pressure.maximum[VECTOR]
    except InputError:
        return None
    # The scheduler lowers the occupancy to what its order of instructions allows.
    possible = kernel.problem.target.occupancy({"v": vectors})
    return "scheduler" if int(claimed[:18]) > max(possible, 1) else None
