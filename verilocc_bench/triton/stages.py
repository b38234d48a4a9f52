"""The stages of Triton's compile that end with registers, and our code in their place.

On AMD it is `amdgcn`: llc of LLVM 22 selects instructions from Triton's LLVM IR, our
answer goes into the machine IR, llc makes assembly of it, and Triton assembles and
links that. On NVIDIA it is `cubin`: the answer goes into the cubin that Triton's ptxas
made, and must run by the compiler's own rules.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from verilocc_bench.analysis.bank_conflicts import count_bank_conflicts
from verilocc_bench.api.code_allocator import CodeAllocator
from verilocc_bench.api.code_figures import CodeFigures, figures_of_assembly, is_better
from verilocc_bench.backends.amdgpu.dynamic_memory import llc_output
from verilocc_bench.backends.amdgpu.module_answers import (
    answer_module,
    reason_of,
    select_instructions,
)
from verilocc_bench.backends.amdgpu.tools import LLC_OPTIONS, llc_version, run_llc
from verilocc_bench.backends.kernel import ReadOptions
from verilocc_bench.backends.nvidia.kernel import SassKernel, read_kernel
from verilocc_bench.backends.nvidia.lower import write_answer
from verilocc_bench.backends.nvidia.tools import tool_version
from verilocc_bench.edits import Answer
from verilocc_bench.errors import InputError
from verilocc_bench.verification import FastVerifier

_WORDS = 300


class KeepsOwnCode(Exception):
    """The compiler's own code stays; the message says at which step, and why.

    `own` and `ours` are the figures of both codes, as far as they are known.
    """

    def __init__(
        self, message: str, own: CodeFigures | None = None, ours: CodeFigures | None = None
    ) -> None:
        super().__init__(message)
        self.own, self.ours = own, ours


@dataclass(frozen=True, slots=True)
class Compile:
    """One run of a stage: what Triton gave it, what it made, and what is asked of us.

    `metadata` and `options` are Triton's own. `assemble` makes the file that the driver
    loads of a text, as Triton does.
    """

    arch: str
    source: Any
    own: Any
    metadata: Mapping[str, Any]
    options: Any
    assemble: Callable[[Any], Any]
    allocator: CodeAllocator


@dataclass(frozen=True, slots=True)
class ReplacedCode:
    """Our code, and the figures of both."""

    code: Any
    own: CodeFigures
    ours: CodeFigures


class Stage(Protocol):
    """One stage of Triton's compile. `name` is Triton's."""

    name: str

    def version(self) -> str:
        """The versions of the tools that our code depends on. Raises InputError without them."""
        ...

    def improve(self, compiled: Compile) -> ReplacedCode:
        """Our code. Raises KeepsOwnCode, with a reason, where the compiler's own stays."""
        ...


class AssemblyStage:
    """Triton's stage `amdgcn`, from LLVM IR to assembly."""

    name = "amdgcn"

    def version(self) -> str:
        """See Stage."""
        return f"llc {llc_version()}"

    def improve(self, compiled: Compile) -> ReplacedCode:
        """See Stage."""
        arch, name = compiled.arch, str(compiled.metadata["name"])
        with step("the compiler's own code"):
            own = figures_of_assembly(compiled.own, name, arch)
        with step("instruction selection", own):
            fusion = ("-fp-contract=fast",) if compiled.options.enable_fp_fusion else ()
            machine_ir = select_instructions(compiled.source, arch, fusion)
        with step("allocation", own):
            module = answer_module(machine_ir, arch, compiled.allocator.answer, Path(name))
            for function in module.functions:
                if function.name == name and function.reason is not None:
                    raise InputError(function.reason)
        with step("lowering", own):
            options = (*LLC_OPTIONS, *module.llc_options)

            def run(kind: str) -> bytes:
                return run_llc(module.text, arch, kind, options)

            assembly = llc_output(module.text, arch, "asm", run).decode()
        with step("comparison", own):
            ours = figures_of_assembly(assembly, name, arch)
        check_better(ours, own, compiled)
        with step("assembly", own, ours):
            compiled.assemble(assembly)
        return ReplacedCode(assembly, own, ours)


class CubinStage:
    """Triton's stage `cubin`, from PTX to machine code."""

    name = "cubin"

    def version(self) -> str:
        """See Stage."""
        return f"nvdisasm {tool_version('nvdisasm')}"

    def improve(self, compiled: Compile) -> ReplacedCode:
        """See Stage."""
        name = str(compiled.metadata["name"])
        with step("the compiler's own code"):
            kernel = read_kernel(compiled.own, Path(name), ReadOptions(function=name))
            assert kernel.label is not None
            count = kernel.code.function.register_count
            own = _cubin_figures(kernel, Answer(kernel.label), count)
        with step("allocation", own):
            answer = compiled.allocator.answer(kernel)
        with step("lowering", own):
            lowered = write_answer(kernel, answer)
        with step("comparison", own):
            ours = _cubin_figures(kernel, answer, lowered.register_count)
        check_better(ours, own, compiled)
        with step("the compiler's own rules", own, ours):
            if not lowered.runnable:
                raise InputError("; ".join(lowered.reasons))
        return ReplacedCode(lowered.data, own, ours)


STAGES: dict[str, Stage] = {"hip": AssemblyStage(), "cuda": CubinStage()}
"""The stage by Triton's name of its back end."""


@contextlib.contextmanager
def step(
    name: str, own: CodeFigures | None = None, ours: CodeFigures | None = None
) -> Iterator[None]:
    """Turns every error into KeepsOwnCode with the name of the step."""
    try:
        yield
    except Exception as error:  # a compile must not fail because of us
        text = " ".join(reason_of(error).split())[:_WORDS]
        raise KeepsOwnCode(f"{name}: {text}", own, ours) from error


def check_better(ours: CodeFigures, own: CodeFigures, compiled: Compile) -> None:
    """Raises KeepsOwnCode unless our code is better by the allocator's objective."""
    objective = compiled.allocator.objective
    if not is_better(ours, own, objective):
        raise KeepsOwnCode(f"not better by {objective}", own, ours)


def _cubin_figures(kernel: SassKernel, answer: Answer, register_count: int | None) -> CodeFigures:
    problem = kernel.problem
    verdict = FastVerifier(problem).verify(answer)
    assert verdict.registers_used is not None
    return CodeFigures(
        registers=register_count or verdict.registers_used["vector"],
        waves=verdict.occupancy,
        instructions=len(kernel.code.function.instructions),
        bank_conflicts=count_bank_conflicts(problem, answer.assignment).any,
    )
