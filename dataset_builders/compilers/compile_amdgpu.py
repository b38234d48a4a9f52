"""From Triton's LLVM IR for an AMD target to a row: LLVM, labels by alignment."""

from __future__ import annotations

import hashlib
import time
from importlib.metadata import version

from dataset_builders.compilers.built_kernel import BuiltKernel, Timings, check_label, make_row
from dataset_builders.compilers.llvm import ALLOCATION_OPTIONS, LLVMCompiler, MachineIRTexts
from dataset_builders.compilers.triton_compiler import CompiledKernel
from dataset_builders.sweeps.point import RowPoint
from verilocc_bench.allocators import answer_from_assignment
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.backends.amdgpu.label import LiveRangesSplit, read_label
from verilocc_bench.backends.amdgpu.machine import MachineFunction
from verilocc_bench.backends.amdgpu.mir_gate import normalized_problem
from verilocc_bench.backends.amdgpu.normalize import NormalizedMachineFunction
from verilocc_bench.backends.amdgpu.read import parse_mir
from verilocc_bench.dataset import RawRow, Row
from verilocc_bench.errors import InputError, RejectedKernel
from verilocc_bench.ir import FixedUnits
from verilocc_bench.ir.text import FORMAT_LINE
from verilocc_bench.targets import get_target
from verilocc_bench.targets.amdgpu_classes import fixed_units
from verilocc_bench.verification import FastVerifier, Verdict


def amdgpu_kernel_of_llvm_ir(
    point: RowPoint, kernel: CompiledKernel, llvm: LLVMCompiler, timings: Timings
) -> BuiltKernel:
    """The row of Triton's LLVM IR. Raises RejectedKernel, with the reason, if there is none."""
    compiled = time.perf_counter()
    texts = llvm.compile(point.arch, kernel.llvm_ir)
    lowered = time.perf_counter()
    timings.compiler_seconds = lowered - compiled
    try:
        row = _make_row(point, kernel, texts, llvm.version)
    except InputError as error:
        # The parser does not know the compiler's own output: a limit of ours, so name it.
        raise RejectedKernel("unsupported-machine-ir", str(error)) from error
    raw = RawRow(row.id, "mir", texts.before)
    timings.own_seconds = time.perf_counter() - lowered
    return BuiltKernel(row, raw, timings)


def _make_row(
    point: RowPoint, kernel: CompiledKernel, texts: MachineIRTexts, llvm_version: str
) -> Row:
    module = parse_mir(texts.before)
    if len(module.functions) != 1:
        raise RejectedKernel("several-functions", f"{len(module.functions)} machine functions")
    machine = module.functions[0]
    target = get_target(point.arch)
    normalized, problem = normalized_problem(texts.before, machine, module, target)
    greedy = parse_mir(texts.greedy).functions[0]
    track, label = "assign", None
    absent: dict[str, str] = {}
    alternatives: dict[str, dict[str, str]] = {}
    try:
        label, verdict = _verified_label(problem, machine, greedy, normalized, "greedy")
        used = verdict.registers_used
    except LiveRangesSplit as split:
        track, used = "split", _registers_used(greedy, problem)
        absent["llvm-greedy"] = f"live ranges split: {split}"
    if track == "assign":
        # The second baseline may have no mapping; then the row says why.
        basic = _basic_label(problem, machine, texts, normalized)
        if isinstance(basic, str):
            absent["llvm-basic"] = basic
        else:
            alternatives[f"llvm-basic {llvm_version}"] = basic
    return make_row(
        point,
        problem,
        track=track,
        label=label,
        label_source=f"llvm-greedy {llvm_version}",
        alternatives=alternatives,
        registers_used=used,
        provenance={
            "versions": {
                "triton": kernel.triton_version,
                "llvmlite": version("llvmlite"),
                "llvm": llvm_version,
            },
            "format": FORMAT_LINE,
            "flags": {name: list(options) for name, options in sorted(ALLOCATION_OPTIONS.items())},
            "point": point.key,
            "source_sha256": kernel.source_hash,
            "llvm_ir_sha256": hashlib.sha256(kernel.llvm_ir.encode()).hexdigest(),
            "machine_ir_sha256": hashlib.sha256(texts.before.encode()).hexdigest(),
            "shared_memory_bytes": kernel.shared_memory_bytes,
            "num_warps": kernel.num_warps,
            "absent_labels": absent,
        },
    )


def _verified_label(
    problem: AllocationProblem,
    before: MachineFunction,
    after: MachineFunction,
    normalized: NormalizedMachineFunction,
    allocator: str,
) -> tuple[dict[str, str], Verdict]:
    assignment = read_label(before, after, normalized)
    answer = answer_from_assignment(problem, assignment)
    verdict = FastVerifier(problem).verify(answer)
    # LLVM knows undefined lanes that its printed text does not show. Such a
    # label belongs to a function that the text cannot express.
    check_label(verdict, f"llvm-{allocator}: ")
    return answer, verdict


def _basic_label(
    problem: AllocationProblem,
    before: MachineFunction,
    texts: MachineIRTexts,
    normalized: NormalizedMachineFunction,
) -> dict[str, str] | str:
    """The answer of LLVM's basic allocator, or the reason why there is none."""
    if texts.basic is None:
        return "LLVM failed"
    try:
        after = parse_mir(texts.basic).functions[0]
        return _verified_label(problem, before, after, normalized, "basic")[0]
    except LiveRangesSplit as split:
        return f"live ranges split: {split}"
    except RejectedKernel as rejection:
        return str(rejection)


def _registers_used(machine: MachineFunction, problem: AllocationProblem) -> dict[str, int]:
    """Highest index + 1 in each file, over the registers in allocated machine IR."""
    used = {file.name: 0 for file in problem.target.files}
    names = {name for block in machine.blocks for name in block.live_ins}
    names |= {
        operand.name
        for block in machine.blocks
        for head in block.instructions
        for instruction in (head, *head.bundled)
        for _, operand in instruction.operands
        if not operand.virtual
    }
    for units in map(fixed_units, sorted(names)):
        if isinstance(units, FixedUnits):
            used[units.file] = max(used[units.file], units.first + units.count)
    return {"vector": problem.target.vector_use(used), **used}
