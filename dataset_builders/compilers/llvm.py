"""LLVM's machine IR of a kernel before and after register allocation."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from types import TracebackType
from typing import IO, Self

from verilocc_bench.errors import MissingExtraError, RejectedKernel

ALLOCATION_OPTIONS: dict[str, tuple[str, ...]] = {
    "before": ("-stop-before=greedy",),
    # AMDGPU allocates in three rounds (SGPRs, whole-wave registers, VGPRs):
    # the third virtual register rewriter is the one that ends it.
    "greedy": ("-stop-after=virtregrewriter,2",),
    "basic": (
        "-stop-after=virtregrewriter,2",
        "-sgpr-regalloc=basic",
        "-vgpr-regalloc=basic",
    ),
}
"""The options of the process for each text."""


@dataclass(frozen=True, slots=True)
class MachineIRTexts:
    """Machine IR before allocation, and after each of LLVM's two allocators.

    `basic` is None if LLVM's basic allocator fails on the kernel.
    """

    before: str
    greedy: str
    basic: str | None


class LLVMCompiler:
    """Three LLVM processes, which start when they are first needed. A context manager."""

    def __init__(self) -> None:
        self._workers = {
            name: _LLVMProcess(options) for name, options in ALLOCATION_OPTIONS.items()
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for worker in self._workers.values():
            worker.close()

    @cached_property
    def version(self) -> str:
        """The version of LLVM, as `22.1.0`."""
        return self._workers["before"].version

    def compile(self, arch: str, llvm_ir: str) -> MachineIRTexts:
        """The three texts of a kernel. Raises RejectedKernel if LLVM fails."""
        before = self._workers["before"].compile(arch, llvm_ir)
        greedy = self._workers["greedy"].compile(arch, llvm_ir)
        return MachineIRTexts(before, greedy, self._basic(arch, llvm_ir))

    def _basic(self, arch: str, llvm_ir: str) -> str | None:
        """The text, or None if LLVM fails. A crash, perhaps a kill from outside, is tried twice."""
        for _ in range(2):
            try:
                return self._workers["basic"].compile(arch, llvm_ir)
            except RejectedKernel as rejection:
                if rejection.kind != "llvm-crashed":
                    break
        return None


class _LLVMProcess:
    """One process of dataset_builders.compilers.llvm_worker, restarted when it dies."""

    def __init__(self, options: tuple[str, ...]) -> None:
        self.options = options
        self.process: subprocess.Popen[str] | None = None
        self.messages: IO[bytes] | None = None
        self._version = ""

    @property
    def version(self) -> str:
        self._start()
        return self._version

    def _start(self) -> subprocess.Popen[str]:
        if self.process is not None and self.process.poll() is None:
            return self.process
        if find_spec("llvmlite") is None:
            raise MissingExtraError("llvmlite", "build", "compiling kernels")
        self.close()
        self.messages = tempfile.TemporaryFile()  # noqa: SIM115  closed in close()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dataset_builders.compilers.llvm_worker", *self.options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.messages,
            text=True,
            encoding="utf-8",
        )
        assert self.process.stdout is not None
        hello = self.process.stdout.readline()
        if not hello:
            raise RejectedKernel("llvm-failed", self._last_message())
        self._version = json.loads(hello)["llvm_version"]
        return self.process

    def compile(self, arch: str, llvm_ir: str) -> str:
        process = self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps({"cpu": arch, "ir": llvm_ir}) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            process.wait()
            raise RejectedKernel("llvm-crashed", self._last_message())
        answer = json.loads(line)
        if "error" in answer:
            raise RejectedKernel("llvm-failed", " ".join(str(answer["error"]).split())[:300])
        text: str = answer["mir"]
        return text

    def _last_message(self) -> str:
        assert self.messages is not None
        self.messages.seek(0)
        lines = [
            line.strip()
            for line in self.messages.read().decode(errors="replace").splitlines()
            if line.strip()
        ]
        # LLVM's reason comes first, a stack dump with addresses after it.
        return lines[0][:300] if lines else "LLVM ended without a word"

    def close(self) -> None:
        if self.process is not None:
            with contextlib.suppress(BrokenPipeError, OSError):
                assert self.process.stdin is not None
                self.process.stdin.close()
            if self.process.stdout is not None:
                self.process.stdout.close()
            try:
                self.process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None
        if self.messages is not None:
            self.messages.close()
            self.messages = None
