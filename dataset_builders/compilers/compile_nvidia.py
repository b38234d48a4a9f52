"""From Triton's PTX to a row: ptxas, and dataflow over ptxas's machine code.

ptxas does not show machine IR before its allocation, so the pair is recovered
from the machine code. Definitions and uses are checked against NVIDIA's own
life ranges, webs become virtual registers, and the registers that ptxas gave
them are the label. The schedule and any spill code are ptxas's own, made for
exactly this assignment.
"""

from __future__ import annotations

import base64
import hashlib
import time
from typing import Any

from dataset_builders.compilers.built_kernel import BuiltKernel, Timings, check_label, make_row
from dataset_builders.compilers.triton_compiler import CompiledKernel
from dataset_builders.sweeps.point import RowPoint
from verilocc_bench.allocators import answer_from_assignment
from verilocc_bench.analysis import VECTOR
from verilocc_bench.backends.nvidia.flow import opcode_stem
from verilocc_bench.backends.nvidia.read import GatedFunction, disassembled_function, load_kernel
from verilocc_bench.backends.nvidia.records import SassFunction
from verilocc_bench.backends.nvidia.tools import CUDA_TOOLS, assemble, options_for, tool_version
from verilocc_bench.dataset import RawRow, Row
from verilocc_bench.errors import InputError, RejectedKernel
from verilocc_bench.ir.text import FORMAT_LINE
from verilocc_bench.targets import Target
from verilocc_bench.targets.nvidia_budget import MAXIMUM_REGISTERS, register_limit
from verilocc_bench.verification import FastVerifier, FindingKind

WARP_THREADS = 32


def nvidia_kernel_of_ptx(point: RowPoint, kernel: CompiledKernel, timings: Timings) -> BuiltKernel:
    """The row of Triton's PTX. Raises RejectedKernel, with the reason, if there is none."""
    compiled = time.perf_counter()
    cubin = assemble(kernel.ptx, architecture=point.arch)
    try:
        _, gated = load_kernel(cubin, point.key)
        disassembled = time.perf_counter()
        timings.compiler_seconds = disassembled - compiled
        row = _make_row(point, kernel, cubin, gated)
    except InputError as error:
        # The parser does not know NVIDIA's own output: a limit of ours, so name it.
        raise RejectedKernel("unsupported-disassembly", str(error)) from error
    raw = RawRow(row.id, "cubin", base64.b64encode(cubin).decode())
    timings.own_seconds = time.perf_counter() - disassembled
    return BuiltKernel(row, raw, timings)


def _make_row(point: RowPoint, kernel: CompiledKernel, cubin: bytes, gated: GatedFunction) -> Row:
    asked = point.parameters.integer("asked_maxnreg")
    limit = register_limit(
        WARP_THREADS * kernel.num_warps,
        asked or point.parameters.integer("maxnreg") or MAXIMUM_REGISTERS,
    )
    normalized, problem = gated.normalized(limit)
    options = options_for(point.arch, kernel.ptx)
    provenance: dict[str, Any] = {
        "register_limit": limit,
        "versions": {
            "triton": kernel.triton_version,
            **{tool: tool_version(tool) for tool in CUDA_TOOLS},
        },
        "format": FORMAT_LINE,
        "flags": {name: list(options) for name, options in sorted(options.items())},
        "point": point.key,
        "source_sha256": kernel.source_hash,
        "llvm_ir_sha256": _sha256(kernel.llvm_ir.encode()),
        "ptx_sha256": _sha256(kernel.ptx.encode()),
        "machine_code_sha256": _sha256(cubin),
        "shared_memory_bytes": kernel.shared_memory_bytes,
        "num_warps": kernel.num_warps,
        **spilling_of(gated.function),
    }
    answer = answer_from_assignment(problem, normalized.assignment)
    verdict = FastVerifier(problem).verify(answer)
    label: dict[str, str] | None = answer
    used = verdict.registers_used
    # The budget alone may be violated.
    if asked and {finding.kind for finding in verdict.findings} == {FindingKind.OVER_BUDGET}:
        # ptxas's own code at that budget: other instructions, in another order.
        reference = assemble(kernel.ptx, architecture=point.arch, maximum_registers=limit)
        other = disassembled_function(reference, point.key)
        label, used = None, _registers_named(other, problem.target)
        provenance["reference"] = {"machine_code_sha256": _sha256(reference), **spilling_of(other)}
    else:
        check_label(verdict)
    return make_row(
        point,
        problem,
        track="split" if label is None else "assign",
        label=label,
        label_source=f"ptxas {tool_version('ptxas')}",
        alternatives={},
        registers_used=used,
        provenance=provenance,
    )


def _registers_named(function: SassFunction, target: Target) -> dict[str, int]:
    """Highest index + 1 in each file, over the registers that the code names."""
    used = {file.name: 0 for file in target.files}
    for instruction in function.instructions:
        for reference in instruction.definitions + instruction.uses:
            used[reference.file] = max(used[reference.file], reference.first + reference.count)
    return {VECTOR: target.vector_use(used), **used}


def spilling_of(function: SassFunction) -> dict[str, int]:
    """Instructions of a function, its registers, and how often it loads and stores its stack."""
    stems = [opcode_stem(instruction.opcode) for instruction in function.instructions]
    return {
        "instructions": len(stems),
        "register_count": function.register_count,
        "spill_loads": stems.count("LDL"),
        "spill_stores": stems.count("STL"),
    }


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
