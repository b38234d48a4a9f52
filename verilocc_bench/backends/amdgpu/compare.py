"""Compares two answers of one kernel by the machine code that llc makes of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from verilocc_bench import __version__
from verilocc_bench.analysis.bank_conflicts import (
    BankConflicts,
    count_bank_conflicts,
    count_identity_copies,
)
from verilocc_bench.backends.amdgpu.code_worth import (
    CLOSING_WORDS,
    CodeWorth,
    analyse_assembly,
    compare_metrics,
    estimate_words,
)
from verilocc_bench.backends.amdgpu.cycles import MCA_OPTIONS, Analyzer, find_analyzer
from verilocc_bench.backends.amdgpu.kernel import MachineKernel
from verilocc_bench.backends.amdgpu.label import LlcInput, own_input
from verilocc_bench.backends.amdgpu.lower import code_input, run_llc_on, write_answer
from verilocc_bench.backends.amdgpu.tools import LLVM_RELEASE, find_llc, llc_version
from verilocc_bench.backends.kernel import CodeComparison, ComparedAllocation
from verilocc_bench.edits import Answer
from verilocc_bench.edits.answer_files import answer_to_json
from verilocc_bench.verification import Verifier

_SIDES = ("answer", "other")


@dataclass(frozen=True, slots=True)
class _Side:
    """One assignment as machine code; `answer` is None for llc's own allocation."""

    name: str
    answer: Answer | None
    code: LlcInput
    assembly: bytes
    worth: CodeWorth
    metrics: dict[str, float | None]

    def to_json(self) -> dict[str, Any]:
        options = list(self.code.options)
        return {"name": self.name, "metrics": self.metrics, "llc_options": options} | (
            self.worth.to_json()
        )


def check_tools() -> dict[str, str]:
    """The versions of llc and, if there is one, of llvm-mca.

    Raises InputError without llc, or if llvm-mca exists but cannot be run.
    """
    find_llc()
    analyzer = find_analyzer()
    found = {"llc": llc_version()}
    return found if analyzer.version is None else {**found, "llvm-mca": analyzer.version}


def compare(
    kernel: MachineKernel, sides: Sequence[ComparedAllocation], *, with_files: bool
) -> CodeComparison:
    """The comparison of two verified answers; one may be llc's own allocation.

    Raises InputError without llc, or if llc refuses the code.
    """
    analyzer = find_analyzer()
    compared = {
        folder: _side(side, kernel, analyzer) for folder, side in zip(_SIDES, sides, strict=True)
    }
    document = _document(kernel, compared, analyzer)
    return CodeComparison(document, _files(kernel, compared) if with_files else {})


def _side(side: ComparedAllocation, kernel: MachineKernel, analyzer: Analyzer) -> _Side:
    answer = side.answer
    code = own_input(kernel)
    if answer is not None:
        code = code_input(kernel, answer, write_answer(kernel, answer))
    assembly = run_llc_on(kernel, code, "asm")
    arch = kernel.problem.target.name
    worth = analyse_assembly(assembly.decode(), kernel.name, arch, analyzer)
    return _Side(side.name, answer, code, assembly, worth, _metrics(kernel, answer, worth))


def _metrics(
    kernel: MachineKernel, answer: Answer | None, worth: CodeWorth
) -> dict[str, float | None]:
    problem = kernel.problem
    conflicts: BankConflicts | None = None
    identities: int | None = None
    if answer is None:
        return worth.metrics(None, None, None, None)
    if not answer.has_edits:
        conflicts = count_bank_conflicts(problem, answer.assignment)
        identities = count_identity_copies(problem, answer.assignment)
    verdict = Verifier(problem).verify(answer)
    return worth.metrics(verdict.registers_used, verdict.occupancy, conflicts, identities)


def _document(kernel: MachineKernel, sides: dict[str, _Side], analyzer: Analyzer) -> dict[str, Any]:
    answer, other = sides["answer"], sides["other"]
    words = compare_metrics(answer.metrics, other.metrics)
    for side in sides.values():
        words += estimate_words(side.name, side.worth)
        if side.metrics["bank_conflicts"] is None:
            what = "llc's own allocation" if side.answer is None else "an answer with edits"
            words.append(f"{side.name}: bank conflicts of {what} are not counted")
    words.append(CLOSING_WORDS)
    versions = {"verilocc-bench": __version__, "llc": llc_version()}
    if analyzer.version is not None:
        versions["llvm-mca"] = analyzer.version
    return {
        "id": kernel.problem.id,
        "arch": kernel.problem.target.name,
        "function": kernel.name,
        **{name: side.to_json() for name, side in sides.items()},
        "words": words,
        "mca_options": list(MCA_OPTIONS),
        "versions": versions,
    }


def _files(kernel: MachineKernel, sides: dict[str, _Side]) -> dict[str, str | bytes]:
    """Both kernels as what llc reads, assembly and object file, with the answers and commands."""
    files: dict[str, str | bytes] = {"commands.sh": _commands(kernel, sides)}
    for folder, side in sides.items():
        files[f"{folder}/{side.code.file_name}"] = side.code.text
        files[f"{folder}/kernel.s"] = side.assembly
        files[f"{folder}/kernel.o"] = run_llc_on(kernel, side.code, "obj")
        if side.answer is not None:
            text = json.dumps(answer_to_json(kernel.problem.id, side.answer))
            files[f"{folder}/answer.json"] = text + "\n"
    return files


def _commands(kernel: MachineKernel, sides: dict[str, _Side]) -> str:
    """A script that makes the files again, and loadable code objects."""
    name = kernel.name
    name = name if name.isprintable() else json.dumps(name)  # a line break would end the comment
    target = f"-mtriple=amdgcn-amd-amdhsa -mcpu={kernel.problem.target.name}"
    lines = [
        "#!/bin/sh",
        f"# The kernel is {name}; llc belongs to LLVM {llc_version()}.",
        "# lld makes kernel.hsaco, which hipModuleLoad takes; nothing here runs it.",
        "set -e",
    ]
    for folder, side in sides.items():
        llc = f"llc-{LLVM_RELEASE} {target} {' '.join(side.code.options)}"
        lines += [
            f"cd {folder}",
            f"{llc} -filetype=asm {side.code.file_name} -o kernel.s",
            f"{llc} -filetype=obj {side.code.file_name} -o kernel.o",
            f"ld.lld-{LLVM_RELEASE} -shared kernel.o -o kernel.hsaco",
            "cd ..",
        ]
    return "\n".join(lines) + "\n"
