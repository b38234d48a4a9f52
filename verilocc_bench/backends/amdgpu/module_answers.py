"""Puts answers into a whole module of machine IR, function by function (gfx90a, gfx942).

A function that cannot be read, answered or written back stays as it is: llc allocates
it. So a build gets a module in any case, with a reason for each such function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from verilocc_bench.backends.amdgpu.kernel import MachineKernel, read_kernel
from verilocc_bench.backends.amdgpu.lower import write_answer
from verilocc_bench.backends.amdgpu.read import MirFile
from verilocc_bench.backends.amdgpu.tools import SELECTION_OPTIONS, run_llc
from verilocc_bench.backends.kernel import ReadOptions
from verilocc_bench.edits import Answer
from verilocc_bench.errors import VerilocError


@dataclass(frozen=True, slots=True)
class FunctionOutcome:
    """One function of a module: its answer, or the reason why llc allocates it."""

    name: str
    answer: Answer | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class AnsweredModule:
    """The module's machine IR with the answers in it, and the llc options that it needs."""

    text: str
    functions: tuple[FunctionOutcome, ...]
    llc_options: tuple[str, ...]

    @property
    def answered(self) -> tuple[FunctionOutcome, ...]:
        """The functions that have an answer."""
        return tuple(each for each in self.functions if each.answer is not None)


def select_instructions(llvm_ir: str, arch: str, options: Sequence[str] = ()) -> str:
    """The machine IR before allocation that llc makes of LLVM IR. Raises InputError."""
    selection = (*SELECTION_OPTIONS, *options)
    return run_llc(llvm_ir, arch, "asm", selection, input_name="kernel.ll").decode()


def answer_module(
    machine_ir: str, arch: str, ask: Callable[[MachineKernel], Answer], source: Path
) -> AnsweredModule:
    """The module with an answer in each function for which `ask` gives a verified one.

    `ask` raises a VerilocError where it has none. Raises InputError if the text
    is not machine IR.
    """
    text = machine_ir
    functions: list[FunctionOutcome] = []
    options: dict[str, None] = {}
    for name in MirFile(machine_ir, str(source)).names:
        try:
            kernel = read_kernel(text.encode(), source, ReadOptions(arch, name))
            answer = ask(kernel)
            lowered = write_answer(kernel, answer)
        except VerilocError as error:
            functions.append(FunctionOutcome(name, None, reason_of(error)))
            continue
        text = lowered.text
        options |= dict.fromkeys(lowered.llc_options)
        functions.append(FunctionOutcome(name, answer, None))
    return AnsweredModule(text, tuple(functions), tuple(options))


def reason_of(error: BaseException) -> str:
    """The words of an error, without its file."""
    return str(getattr(error, "message", "")) or str(error) or type(error).__name__
