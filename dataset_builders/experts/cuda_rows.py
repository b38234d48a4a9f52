"""From a cubin with one kernel of a library to its row.

Like rows of our own kernels: definitions and uses are checked against NVIDIA's own
life ranges, webs become virtual registers, and the registers that ptxas gave them
are the label. Spill code that ptxas added is part of the function.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

from dataset_builders.compilers.built_kernel import BuiltKernel, Timings, check_label
from dataset_builders.compilers.compile_nvidia import spilling_of
from dataset_builders.experts.protocol import ExpertSource
from dataset_builders.sweeps.experts import ExpertPoint
from verilocc_bench.allocators import answer_from_assignment
from verilocc_bench.backends.nvidia.read import load_kernel
from verilocc_bench.dataset import RawRow
from verilocc_bench.errors import InputError, RejectedKernel
from verilocc_bench.verification import FastVerifier

GIVEN_UP_REGISTERS = 40
GIVEN_UP_SPILLS = 64
"""ptxas gave up if it named at most 40 registers, and yet stores 64 times to its stack.

It then compiles anew with few registers and hundreds of spills. Such code says
nothing of how one allocates.
"""


def row_of_cubin(
    library: ExpertSource,
    point: ExpertPoint,
    cubin: bytes,
    *,
    source: bytes,
    timings: Timings,
    provenance: Mapping[str, Any],
) -> BuiltKernel:
    """The row of a cubin. Raises RejectedKernel, with the reason, if there is none."""
    try:
        kernel, gated = load_kernel(cubin, point.key)
        normalized, problem = gated.normalized(kernel.launch_bounds.register_limit)
    except InputError as error:
        raise RejectedKernel("unsupported-disassembly", str(error)) from error
    spilling = spilling_of(gated.function)
    if kernel.register_count <= GIVEN_UP_REGISTERS and spilling["spill_stores"] >= GIVEN_UP_SPILLS:
        raise RejectedKernel(
            "compiler-gave-up",
            f"{kernel.register_count} registers and {spilling['spill_stores']} spills",
        )
    label = answer_from_assignment(problem, normalized.assignment)
    verdict = FastVerifier(problem).verify(label)
    check_label(verdict)
    own = {
        "register_limit": kernel.launch_bounds.register_limit,
        "machine_code_sha256": hashlib.sha256(cubin).hexdigest(),
        **spilling,
        **provenance,
    }
    row = library.row(point, problem, label, verdict.registers_used, source=source, provenance=own)
    return BuiltKernel(row, RawRow(row.id, "cubin", base64.b64encode(cubin).decode()), timings)
