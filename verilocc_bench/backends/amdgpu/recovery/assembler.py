"""LLVM's `llvm-mc`, run as a process: machine code to text, and text to LLVM's own operands.

The environment variable VERILOCC_BENCH_LLVM_MC names the program; otherwise it is
`llvm-mc-22` or `llvm-mc` on the PATH.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from verilocc_bench.backends.amdgpu.tools import LLVM_RELEASE
from verilocc_bench.errors import InputError, RejectedKernel
from verilocc_bench.tool_process import run_tool

_VARIABLE = "VERILOCC_BENCH_LLVM_MC"
_NAMES = (f"llvm-mc-{LLVM_RELEASE}", "llvm-mc")
_SECONDS = 120
_VERSION = re.compile(r"\bLLVM version (\d+)\.")
_ENCODING = re.compile(r"^\t(?P<text>.*?)\s*; encoding: \[(?P<bytes>[0-9a-fx,]+)\]$", re.MULTILINE)
_TARGET_FEATURES = re.compile(r'^\s*\.amdgcn_target "[^":]*((?::\w+[+-])+)"', re.MULTILINE)
_FEATURE = re.compile(r":(\w+)([+-])")
_ODD_NAME = re.compile(
    r"^(?P<directive>\t\.amdhsa_kernel )(?P<name>.*[^A-Za-z0-9_.$\n].*)$", re.MULTILINE
)
_OPCODE = re.compile(r"<MCInst #\d+ (\w+)")
_OPERAND = re.compile(r"<MCOperand (?:Reg:(\w*)|Imm:(-?\d+)|(\w+):[^>]*)>")


@dataclass(frozen=True, slots=True)
class AssembledInstruction:
    """One instruction: its text, its bytes, LLVM's opcode, and the operands.

    A register operand is LLVM's name in lower case (`vgpr2_vgpr3`), any other one a number.
    """

    text: str
    encoding: bytes
    opcode: str
    operands: tuple[str | int, ...]


def find_assembler() -> Path:
    """The path of llvm-mc. Raises InputError without one of the right release."""
    named = os.environ.get(_VARIABLE)
    for name in (named,) if named else _NAMES:
        found = shutil.which(name)
        if found is not None and _release(Path(found)) == LLVM_RELEASE:
            return Path(found)
    raise InputError(
        f"assembling needs llvm-mc of LLVM {LLVM_RELEASE}; install it (Debian: apt-get "
        f"install llvm-{LLVM_RELEASE}), or name it in {_VARIABLE}"
    )


@cache
def _release(path: Path) -> int:
    ended = run_tool(path, ["--version"], Path(tempfile.gettempdir()), 20, subprocess.STDOUT)
    found = _VERSION.search(ended.stdout.decode(errors="replace"))
    return int(found[1]) if found else 0


def disassemble(code: bytes, arch: str) -> list[tuple[str, bytes]]:
    """The text and the bytes of each instruction.

    Raises RejectedKernel, `undecodable`, for bytes that LLVM does not decode, or that it
    would encode in another way.
    """
    text = "\n".join(" ".join(f"0x{byte:02x}" for byte in code[i : i + 64])
                     for i in range(0, len(code), 64))  # fmt: skip
    output = _run(("--disassemble", "--show-encoding"), text, arch, "undecodable")
    found = [
        (match["text"], bytes(int(byte, 16) for byte in match["bytes"].split(",")))
        for match in _ENCODING.finditer(output)
    ]
    if b"".join(encoding for _, encoding in found) != code:
        raise RejectedKernel(
            "undecodable", "llvm-mc does not decode all bytes, or encodes them otherwise"
        )
    return found


def assemble(lines: Sequence[str], arch: str) -> list[AssembledInstruction]:
    """LLVM's own form of each line. Raises RejectedKernel, `reassembly`, for an unknown one."""
    output = _run(("--show-inst", "--show-encoding"), "\n".join(lines), arch, "reassembly")
    matches = list(_ENCODING.finditer(output))
    if len(matches) != len(lines):
        raise RejectedKernel("reassembly", f"{len(matches)} instructions for {len(lines)} lines")
    ends = [match.start() for match in matches[1:]] + [len(output)]
    found = []
    for match, end in zip(matches, ends, strict=True):
        opcode = _OPCODE.search(output, match.end(), end)
        assert opcode is not None
        operands: list[str | int] = []
        for register, number, other in _OPERAND.findall(output, opcode.end(), end):
            if other:
                raise RejectedKernel("operand-form", f"{match['text']}: an operand {other}")
            operands.append(int(number) if number else register.lower() or "noreg")
        encoding = bytes(int(byte, 16) for byte in match["bytes"].split(","))
        found.append(AssembledInstruction(match["text"], encoding, opcode[1], tuple(operands)))
    return found


def assembled_file(assembly: str, arch: str) -> bytes:
    """The object file of an assembly file. Raises InputError with the assembler's reason."""
    # llvm-mc wants the features of the target's name (`gfx90a:xnack+`) once more.
    named = _TARGET_FEATURES.search(assembly)
    features = [] if named is None else _FEATURE.findall(named[1])
    chosen = ",".join(sign + feature for feature, sign in features)
    assembly = _ODD_NAME.sub(_in_quotes, assembly)
    try:
        return _output(("--filetype=obj", f"--mattr={chosen}"), assembly, arch, "assembly")
    except RejectedKernel as rejection:
        raise InputError(rejection.reason) from None


def _in_quotes(directive: re.Match[str]) -> str:
    """A kernel's name as llvm-mc reads it; llc prints it without quotes there."""
    name = directive["name"].replace("\\", "\\\\").replace('"', '\\"')
    return f'{directive["directive"]}"{name}"'


def _run(options: Sequence[str], text: str, arch: str, kind: str) -> str:
    return _output(options, text, arch, kind).decode()


def _output(options: Sequence[str], text: str, arch: str, kind: str) -> bytes:
    tool = find_assembler()
    arguments = ["--triple=amdgcn-amd-amdhsa", f"--mcpu={arch}", *options, "input", "-o", "output"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "input").write_text(text, encoding="utf-8")
        try:
            ended = run_tool(tool, arguments, folder, _SECONDS)
        except TimeoutError as error:
            raise RejectedKernel(kind, str(error)) from None
        if ended.returncode or b"warning" in ended.stderr:
            lines = ended.stderr.decode(errors="replace").splitlines() or ["no reason"]
            raise RejectedKernel(kind, f"llvm-mc: {lines[0][:200]}")
        return (folder / "output").read_bytes()
