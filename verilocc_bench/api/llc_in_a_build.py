"""llc's place in a build: the same flags and the same output, with our registers in the middle.

llc runs up to register allocation with the build's flags, an allocator answers function by
function, and llc goes on with the same flags. Whatever does not fit goes to llc as it is.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from verilocc_bench.api.code_allocator import CodeAllocator
from verilocc_bench.api.code_figures import CodeFigures, figures_of_assembly, is_better
from verilocc_bench.backends import backend_of
from verilocc_bench.backends.amdgpu.dynamic_memory import llc_output
from verilocc_bench.backends.amdgpu.kernel import MachineKernel
from verilocc_bench.backends.amdgpu.module_answers import AnsweredModule, answer_module
from verilocc_bench.backends.amdgpu.tools import LLC_OPTIONS, find_llc
from verilocc_bench.edits import Answer
from verilocc_bench.errors import AllocationFailed, InputError
from verilocc_bench.files import write_atomically

_WITH_A_VALUE = frozenset(
    ("o", "mcpu", "mtriple", "march", "mattr", "filetype", "x", "code-model", "relocation-model")
)
"""Options whose value may be the next argument. Others are written as -name=value."""

_NOT_OURS = (
    "O0", "start-before", "start-after", "stop-before", "stop-after", "run-pass", "regalloc",
    "enable-ipra", "sgpr-regalloc", "vgpr-regalloc", "wwm-regalloc", "passes",
    "print-pipeline-passes", "version", "help", "help-hidden", "help-list", "help-list-hidden",
)  # fmt: skip
_SUFFIXES = {"asm": ".s", "obj": ".o"}
_TO_MACHINE_IR = ("-stop-before=greedy",)
_FROM_MACHINE_IR = LLC_OPTIONS[1:]  # the build says its own -O


@dataclass(frozen=True, slots=True)
class LlcCommand:
    """A command line of llc: its input, what it writes, and all other arguments in order."""

    source: str
    output: str | None
    kind: str
    arch: str | None
    others: tuple[str, ...]
    reason: str | None

    @property
    def output_file(self) -> str:
        """Where llc writes: what -o says, or a name that follows from the input's."""
        if self.output is not None:
            return self.output
        if self.source == "-":
            return "-"
        path = Path(self.source)
        stem = path.with_suffix("") if path.suffix in (".ll", ".bc", ".mir") else path
        return f"{stem}{_SUFFIXES[self.kind]}"


def parse_llc_command(arguments: Sequence[str]) -> LlcCommand:
    """Reads llc's own command line, as far as it matters here.

    `reason` says why llc has to do everything itself, if so.
    """
    values: dict[str, str] = {}
    others: list[str] = []
    inputs: list[str] = []
    reason: str | None = None
    rest = iter(arguments)
    for argument in rest:
        if argument == "-" or not argument.startswith("-"):
            inputs.append(argument)
            continue
        name, equals, value = argument.lstrip("-").partition("=")
        taken = [argument]
        if not equals and name in _WITH_A_VALUE:
            value = next(rest, "")
            taken.append(value)
        if name in _NOT_OURS:
            reason = reason or f"the option -{name}"
        if name in ("o", "filetype", "mcpu", "x"):
            values[name] = value
        if name not in ("o", "filetype", "x"):
            others += taken
    source = inputs[0] if inputs else "-"
    kind = values.get("filetype", "asm")
    if len(inputs) > 1:
        reason = reason or f"two inputs, {inputs[0]} and {inputs[1]}"
    elif source.endswith(".mir") or values.get("x") == "mir":
        reason = reason or "machine IR as the input"
    elif kind not in _SUFFIXES:
        reason = reason or f"-filetype={kind}"
    arch = values.get("mcpu")
    if reason is None and arch is None:
        reason = "no -mcpu"
    elif reason is None and arch is not None:
        reason = _unsupported(arch)
    return LlcCommand(source, values.get("o"), kind, arch, tuple(others), reason)


def _unsupported(arch: str) -> str | None:
    try:
        backend = backend_of(arch)
    except InputError as error:
        return error.message
    return None if backend.inserts_waits else f"llc has no {arch}"


def run_llc_in_a_build(
    arguments: Sequence[str], allocator: CodeAllocator, tell: Callable[[str], None]
) -> int:
    """Does what llc would do with these arguments; returns its exit status.

    A function gets the allocator's registers if its machine code is better by the
    allocator's objective, else llc's own. `tell` gets a line for each function, and one if
    llc does everything itself. Raises InputError without llc of the right release.
    """
    llc = find_llc()
    command = parse_llc_command(arguments)
    if command.reason is not None:
        tell(f"llc alone, because of {command.reason}")
        return _passed_on(llc, arguments)
    with tempfile.TemporaryDirectory() as name:
        steps = _Steps(llc, command, Path(name))
        try:
            data = steps.code(allocator, tell)
        except InputError as error:
            tell(f"llc alone: {error.message}")
            return _passed_on(llc, arguments, steps.standard_input)
    sys.stderr.write(steps.messages)
    _write(command.output_file, data)
    return 0


class _Steps:
    """The runs of llc for one input."""

    def __init__(self, llc: Path, command: LlcCommand, folder: Path) -> None:
        self.llc, self.command, self.folder = llc, command, folder
        self.standard_input = sys.stdin.buffer.read() if command.source == "-" else None
        self.messages = ""

    def code(self, allocator: CodeAllocator, tell: Callable[[str], None]) -> bytes:
        """The output for the build. Raises InputError where llc has to do it alone."""
        command = self.command
        assert command.arch is not None
        before = self._run([*_TO_MACHINE_IR, command.source], "asm", keep_messages=True)
        machine_ir = before.decode()
        own = self._run([command.source], "asm")
        answers: dict[str, Answer] = {}

        def ask(kernel: MachineKernel) -> Answer:
            answers[kernel.name] = allocator.answer(kernel)
            return answers[kernel.name]

        source = Path(command.source)
        module = answer_module(machine_ir, command.arch, ask, source)
        ours = self._from_machine_ir(module, "asm") if answers else own
        better: set[str] = set()
        for function in module.functions:
            if function.reason is not None:
                tell(f"{function.name}: llc's own registers: {function.reason}")
                continue
            sides = [self._figures(text, function.name) for text in (own, ours)]
            if is_better(sides[1], sides[0], allocator.objective):
                better.add(function.name)
                tell(f"{function.name}: better by {allocator.objective}, {_words(*sides)}")
            else:
                why = f"not better by {allocator.objective}, {_words(*sides)}"
                tell(f"{function.name}: llc's own registers: {why}")
        if not better:
            return self._run([command.source], command.kind)
        if len(better) < len(answers):
            module = answer_module(machine_ir, command.arch, _chosen(answers, better), source)
        return self._from_machine_ir(module, command.kind)

    def _figures(self, assembly: bytes, function: str) -> CodeFigures:
        assert self.command.arch is not None
        return figures_of_assembly(assembly.decode(), function, self.command.arch)

    def _from_machine_ir(self, module: AnsweredModule, kind: str) -> bytes:
        path = self.folder / "kernel.mir"
        write_atomically(path, module.text)
        arguments = [*_FROM_MACHINE_IR, *module.llc_options, str(path)]
        arch = self.command.arch
        assert arch is not None
        return llc_output(module.text, arch, kind, lambda each: self._run(arguments, each))

    def _run(self, arguments: Sequence[str], kind: str, *, keep_messages: bool = False) -> bytes:
        output = self.folder / "output"
        done = subprocess.run(
            [self.llc, *self.command.others, f"-filetype={kind}", *arguments, "-o", output],
            input=self.standard_input if arguments[-1] == "-" else None,
            stderr=subprocess.PIPE,
            check=False,
        )
        if done.returncode:
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            reason = lines[0] if lines else f"status {done.returncode}"
            raise InputError(f"llc says: {reason}")
        if keep_messages:
            self.messages = done.stderr.decode(errors="replace")
        return output.read_bytes()


def _chosen(answers: Mapping[str, Answer], names: set[str]) -> Callable[[MachineKernel], Answer]:
    def ask(kernel: MachineKernel) -> Answer:
        if kernel.name not in names:
            raise AllocationFailed("not better")
        return answers[kernel.name]

    return ask


def _words(own: CodeFigures, ours: CodeFigures) -> str:
    return (
        f"{own.registers} -> {ours.registers} vector registers, "
        f"{own.bank_conflicts} -> {ours.bank_conflicts} bank conflicts, "
        f"{own.waits} -> {ours.waits} waits, "
        f"{own.instructions} -> {ours.instructions} instructions"
    )


def _passed_on(llc: Path, arguments: Sequence[str], standard_input: bytes | None = None) -> int:
    return subprocess.run([llc, *arguments], input=standard_input, check=False).returncode


def _write(place: str, data: bytes) -> None:
    if place == "-":
        sys.stdout.buffer.write(data)
    else:
        write_atomically(Path(place), data)
