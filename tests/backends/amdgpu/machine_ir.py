"""Rows of the embedded dataset with their machine IR, for lowering."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from verilocc_bench.allocators import BUILT_IN, Request
from verilocc_bench.analysis import AllocationProblem, parse_register_name
from verilocc_bench.backends.amdgpu.machine import MachineFunction
from verilocc_bench.backends.amdgpu.mir_gate import normalized_problem
from verilocc_bench.backends.amdgpu.normalize import NormalizedMachineFunction
from verilocc_bench.backends.amdgpu.read import parse_mir
from verilocc_bench.backends.amdgpu.write_back import LoweredMir, write_assignment
from verilocc_bench.dataset import RawRow, Row, embedded_path, load_rows, read_parquet
from verilocc_bench.edits import Answer, assignment_alone, edit_function, parse_edits
from verilocc_bench.ir import Assignment, PhysicalRegister
from verilocc_bench.targets import Target, get_target
from verilocc_bench.verification import Verifier

ROWS = [row for row in load_rows("mini").rows if row.arch.startswith("gfx")]
SPLIT_ROWS = [row for row in load_rows("mini", track="split").rows if row.arch.startswith("gfx")]
RAW = {
    raw.id: raw.content
    for path in embedded_path().glob("raw/**/*.parquet")
    for raw in read_parquet(path, RawRow)
}


@dataclass(frozen=True)
class Kernel:
    """A function as it is before allocation."""

    text: str
    machine: MachineFunction
    normalized: NormalizedMachineFunction
    problem: AllocationProblem
    target: Target

    def lower(self, answer: Mapping[str, str]) -> LoweredMir:
        """The function with an answer without edits."""
        assignment = {
            number: self.register(answer[f"%{number}"])
            for number in range(len(self.normalized.original_names))
        }
        return write_assignment(self.text, self.machine, self.normalized, assignment)

    def lower_split(self, answer: Answer) -> LoweredMir:
        """The function with an answer with edits, which must be a right one."""
        verdict = Verifier(self.problem).verify(answer)
        assert verdict.valid, verdict.findings[:3]
        return self.lower_unverified(answer)

    def lower_unverified(self, answer: Answer) -> LoweredMir:
        """The function with an answer with edits, be it right or not."""
        edited, findings = edit_function(self.problem.function, self.target, answer.edits)
        assert not findings
        assignment: Assignment = {
            number: self.register(answer.assignment[f"%{number}"]) for number in edited.registers
        }
        return write_assignment(self.text, self.machine, self.normalized, assignment, edited=edited)

    def register(self, name: str) -> PhysicalRegister:
        """The register of that name."""
        register = parse_register_name(self.target, name)
        assert register is not None
        return register


def kernel_of(text: str, arch: str, name: str | None = None) -> Kernel:
    """The function of a text that has one, or the one of this name."""
    module = parse_mir(text, "<mir>", name)
    normalized, problem = normalized_problem(text, module.functions[0], module, get_target(arch))
    return Kernel(text, module.functions[0], normalized, problem, problem.target)


@cache
def load(row: Row) -> Kernel:
    """The function of a row."""
    return kernel_of(RAW[row.id], row.arch)


def answer_of(kernel: Kernel, model: str, row: Row | None = None) -> dict[str, str]:
    """A model's answer without edits."""
    label = None if row is None else row.label
    answer = BUILT_IN[model].allocate(Request(kernel.problem, label=label))
    return dict(assignment_alone(answer))


def split_answer(assignment: Mapping[str, str], **edits: object) -> Answer:
    """An answer with edits in their JSON form."""
    return Answer(assignment, parse_edits(edits))
