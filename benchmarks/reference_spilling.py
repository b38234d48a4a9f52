"""The code that compilers insert into a row of the split track, from compiling its point again.

On gfx90a and gfx942 the reference is LLVM's allocation in the whole pipeline.
llc on the row's own machine IR (benchmarks.reference_splitting) can do better
or worse, because LLVM's memory holds more than its text.

On sm_80 the dataset holds the code that ptxas makes at a generous budget; the
reference is its code at the row's own limit. The row's sweep point is compiled
again and assembled at the limit. Then the loads and stores of local memory are
counted, weighted by the control flow of that code, whose blocks and order
differ from the row's. Other effects of the limit (constants made again,
another schedule) show only in the number of instructions.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.inserted_code import InsertedCode, InsertedKind, add_up
from benchmarks.reference_splitting import inserted_between
from dataset_builders.compilers.llvm import LLVMCompiler
from dataset_builders.compilers.triton_compiler import compile_to_llvm_ir, compile_to_ptx
from dataset_builders.sweeps import point_from_json
from verilocc_bench.analysis import AllocationProblem, loop_depths
from verilocc_bench.analysis.bank_conflicts import LOOP_WEIGHT
from verilocc_bench.backends.amdgpu.read import parse_mir
from verilocc_bench.backends.nvidia.flow import control_flow, has_effect, opcode_stem
from verilocc_bench.backends.nvidia.records import SassFunction
from verilocc_bench.backends.nvidia.text import parse_sass
from verilocc_bench.backends.nvidia.tools import assemble, disassemble
from verilocc_bench.dataset import Row
from verilocc_bench.errors import InputError
from verilocc_bench.files import parse_json

_KINDS = {"STL": InsertedKind.VECTOR_SPILL, "LDL": InsertedKind.VECTOR_RELOAD}
_LANES = {"64": 2, "128": 4}


@dataclass(frozen=True, slots=True)
class ReferenceSpilling:
    """ptxas's code at a limit against its code at the generous budget.

    `kinds` are the reference's stores (spills) and loads (reloads) of local
    memory; `own` are those of the row's own function. `instructions` and
    `own_instructions` count instructions with an effect.
    """

    register_limit: int
    kinds: dict[InsertedKind, InsertedCode]
    own: dict[InsertedKind, InsertedCode]
    instructions: int
    own_instructions: int

    @property
    def total(self) -> InsertedCode:
        """All loads and stores of the reference."""
        return add_up(self.kinds.values())


def pipeline_splitting(
    row: Row, llvm: LLVMCompiler, cache: Path | None = None
) -> dict[InsertedKind, InsertedCode]:
    """What LLVM inserts into a row of gfx90a or gfx942 on its way from LLVM IR, by kind.

    Spills and reloads are exact; other counts are lower bounds. Raises
    InputError if LLVM makes other machine IR than in the row's build,
    MissingExtraError without the packages that compile, and RejectedKernel if
    they fail.
    """
    source = f"row {row.id}"
    kernel = compile_to_llvm_ir(point_from_json(row.arch, row.kernel, row.params), cache)
    texts = llvm.compile(row.arch, kernel.llvm_ir)
    recorded = parse_json(row.provenance, source)
    if hashlib.sha256(texts.before.encode()).hexdigest() != recorded.get("machine_ir_sha256"):
        raise InputError("LLVM makes other machine IR here than the row's build did", source=source)
    before, after = (parse_mir(text, source).functions[0] for text in (texts.before, texts.greedy))
    depths = AllocationProblem.from_text(row.normalized, source).loop_depths
    blocks = inserted_between(before, after, depths)
    found = {kind: add_up(b[kind] for b in blocks if kind in b) for kind in InsertedKind}
    return {kind: counts for kind, counts in found.items() if counts}


def reference_spilling(row: Row, cache: Path | None = None) -> ReferenceSpilling:
    """Compiles the point of a split-track row of sm_80 again, and counts its spill code.

    `cache` is a folder in which Triton may keep files. Raises InputError for
    another row, or if ptxas makes other code than in the row's build,
    MissingExtraError without the packages that compile, and RejectedKernel if
    they fail.
    """
    source = f"row {row.id}"
    if row.arch != "sm_80" or row.track != "split":
        raise InputError("expected a row of the split track of sm_80", source=source)
    provenance = parse_json(row.provenance, source)
    limit, hashes = _recorded(provenance, source)
    point = point_from_json(row.arch, row.kernel, row.params)
    ptx = compile_to_ptx(point, cache).ptx
    cubins = assemble(ptx), assemble(ptx, maximum_registers=limit)
    for cubin, recorded in zip(cubins, hashes, strict=True):
        if hashlib.sha256(cubin).hexdigest() != recorded:
            raise InputError("ptxas makes other code here than the row's build did", source=source)
    own, reference = (parse_sass(disassemble(cubin, point.key))[0] for cubin in cubins)
    return ReferenceSpilling(
        limit,
        count_spilling(reference),
        count_spilling(own),
        sum(map(has_effect, reference.instructions)),
        sum(map(has_effect, own.instructions)),
    )


def _recorded(provenance: Any, source: str) -> tuple[int, tuple[str, str]]:
    """The limit, and the hashes of the row's own code and of the reference."""
    try:
        limit = int(provenance["register_limit"])
        reference = str(provenance["reference"]["machine_code_sha256"])
        return limit, (str(provenance["machine_code_sha256"]), reference)
    except (KeyError, TypeError, ValueError):
        message = "its provenance names no register limit, machine code or reference"
        raise InputError(message, source=source) from None


def count_spilling(function: SassFunction) -> dict[InsertedKind, InsertedCode]:
    """The loads and stores of local memory of a function, by kind.

    Raises RejectedKernel for control flow other than plain jumps.
    """
    found = dict.fromkeys(_KINDS.values(), InsertedCode())
    blocks = control_flow(function)
    depths = loop_depths([block.successors for block in blocks])
    for block, depth in zip(blocks, depths, strict=True):
        for index in block.instructions:
            instruction = function.instructions[index]
            kind = _KINDS.get(opcode_stem(instruction.opcode))
            if kind is None or instruction.never:
                continue
            found[kind] += InsertedCode.one(_lanes(instruction.opcode), LOOP_WEIGHT**depth)
    return {kind: counts for kind, counts in found.items() if counts}


def _lanes(opcode: str) -> int:
    """Lanes that a load or store moves: `LDL.64` two, `LDL.LU.128` four, others one."""
    return next((_LANES[part] for part in opcode.split(".") if part in _LANES), 1)
