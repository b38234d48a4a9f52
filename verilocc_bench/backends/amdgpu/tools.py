"""LLVM's `llc`, run as a process: from assigned machine IR to assembly or an object file.

The release must be the one that writes the dataset's machine IR, because the text
of machine IR changes between releases. The environment variable
VERILOCC_BENCH_LLC names the program; otherwise it is `llc-22` or `llc` on the
PATH. Each run has its own folder, a fixed file name and a time limit. So equal
input gives equal output, and the output contains no path.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from verilocc_bench.errors import InputError
from verilocc_bench.tool_process import run_tool

LLVM_RELEASE = 22
BY_THE_CONVENTION = "-enable-ipra=0"
"""Callees keep the registers that the calling convention says.

By default llc lets a function that only its own module calls destroy more, and tells the callers
before their allocation. Where llc starts with allocation, they would not hear of it.
"""

LLC_OPTIONS = (
    "-O3",
    "-start-before=greedy",
    BY_THE_CONVENTION,
    "-verify-machineinstrs",
    "-amdgpu-spill-vgpr-to-agpr=0",  # spills go to memory: the answer decides about AGPRs
)
"""The options of each run, without the architecture and the kind of output."""

OWN_ALLOCATION_OPTIONS = ("-O3", "-start-before=greedy", BY_THE_CONVENTION)
"""The options of a run from machine IR in which llc allocates."""

COMPILE_OPTIONS = ("-O3", BY_THE_CONVENTION)
"""The options of llc's compile of LLVM IR."""

SELECTION_OPTIONS = (*COMPILE_OPTIONS, "-stop-before=greedy")
"""The options of a compile of LLVM IR that stops at the machine IR before allocation."""

AFTER_ALLOCATION = "-stop-after=virtregrewriter,2"
"""Ends a run with the machine IR that llc has allocated.

AMDGPU allocates in three rounds; the third rewriter of virtual registers ends them.
"""

_VARIABLE = "VERILOCC_BENCH_LLC"
_NAMES = (f"llc-{LLVM_RELEASE}", "llc")
_SECONDS = 120
_VERSION_SECONDS = 20
_REASON_LENGTH = 400
_MISSING = (
    f"lowering to assembly or an object file needs llc of LLVM {LLVM_RELEASE}; install it "
    f"(Debian: apt-get install llvm-{LLVM_RELEASE}), or name it in {_VARIABLE}; "
    "a file .mir needs none"
)
_VERSION = re.compile(r"\bLLVM version (\d+(?:\.\d+)*)")
_ADDRESSES = re.compile(r" \(0x[0-9a-f]+\)| \[\w+;\w+\)|(?<=instruction: )\w+B ")
_NO_SYMBOLS = {"LLVM_DISABLE_SYMBOLIZATION": "1"}  # naming a crash's frames takes seconds
_COUNTS = {
    "vgprs": "next_free_vgpr",
    "agpr_offset": "accum_offset",
    "sgprs": "next_free_sgpr",
    "scratch_bytes": "private_segment_fixed_size",
}
_OCCUPANCY = re.compile(r"^; Occupancy: (\d+)$", re.MULTILINE)
_COMPLAINT = re.compile(r"^\*\*\* (Bad machine code: .*) \*\*\*$|^.*\b(?:fatal )?error: .*$")
_LAST_WORDS = re.compile(r"^LLVM ERROR: (.+)$", re.MULTILINE)
_LAST_PASS = re.compile(r"^\d+\.\s+Running pass '(.+)' on function '@(.+)'", re.MULTILINE)


class LlcFailed(InputError):
    """llc refused the code; the message has its reason, `output` all that it printed."""

    def __init__(self, message: str, output: str = "") -> None:
        super().__init__(message)
        self.output = output


def find_llc() -> Path:
    """The path of llc. Raises InputError without one of the right release."""
    named = os.environ.get(_VARIABLE)
    if named:
        if not os.access(named, os.X_OK) or not Path(named).is_file():
            raise InputError(f"{_VARIABLE} names {named!r}, which cannot be run")
        path = Path(named).absolute()
        if _release(path) != LLVM_RELEASE:
            raise InputError(
                f"{_VARIABLE} names {named!r}, which is of LLVM {_version_of(path) or 'unknown'}; "
                f"expected LLVM {LLVM_RELEASE}"
            )
        return path
    for name in _NAMES:
        found = shutil.which(name)
        if found is not None and _release(Path(found)) == LLVM_RELEASE:
            return Path(found)
    raise InputError(_MISSING)


def llc_version() -> str:
    """The version of LLVM, such as `22.1.8`. Raises InputError like find_llc."""
    return _version_of(find_llc())


def run_llc(
    text: str,
    arch: str,
    kind: str,
    options: Sequence[str] = LLC_OPTIONS,
    *,
    input_name: str = "kernel.mir",
) -> bytes:
    """llc's output for machine IR, or for LLVM IR if `input_name` ends in `.ll`.

    `kind` is `asm` or `obj`; options that stop before the end give machine IR for `asm`.

    Raises LlcFailed if llc refuses the code, and InputError like find_llc.
    """
    llc = find_llc()
    arguments = [
        "-mtriple=amdgcn-amd-amdhsa",
        f"-mcpu={arch}",
        *options,
        f"-filetype={kind}",
        input_name,
        "-o",
        "kernel.out",
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / input_name).write_text(text, encoding="utf-8")
        status, output = _run(llc, arguments, folder, _SECONDS)
        if status:
            raise LlcFailed(_reason(output, status), output)
        return (folder / "kernel.out").read_bytes()


def machine_code_counts(assembly: str, function: str) -> dict[str, int]:
    """The registers, scratch bytes and waves in a kernel's assembly.

    Spill code takes registers that no answer names: lanes of a VGPR for SGPRs, and
    SGPRs for the address of the stack. Empty for a function that is not a kernel.
    """
    start = assembly.find(f".amdhsa_kernel {function}\n")
    if start < 0:
        return {}
    end = assembly.find(".end_amdhsa_kernel", start)
    found = {}
    for name, directive in _COUNTS.items():
        if match := re.compile(rf"\.amdhsa_{directive} (\d+)$", re.MULTILINE).search(
            assembly, start, end
        ):
            found[name] = int(match[1])
    match = _OCCUPANCY.search(assembly, end)
    if match and int(match[1]):  # llc says 0 of machine IR that comes without its LLVM IR
        found["waves"] = int(match[1])
    return found


def _release(path: Path) -> int:
    return int(_version_of(path).partition(".")[0] or 0)


@cache
def _version_of(path: Path) -> str:
    status, output = _run(path, ["--version"], Path(tempfile.gettempdir()), _VERSION_SECONDS)
    found = None if status else _VERSION.search(output)
    return found[1] if found else ""


def _run(tool: Path, arguments: Sequence[str], folder: Path, seconds: int) -> tuple[int, str]:
    """The status and the whole output of a tool. Raises InputError if it cannot be started."""
    try:
        ended = run_tool(tool, arguments, folder, seconds, subprocess.STDOUT, variables=_NO_SYMBOLS)
    except TimeoutError as error:
        raise LlcFailed(str(error)) from None
    return ended.returncode, ended.stdout.decode(errors="replace")


def _reason(output: str, status: int) -> str:
    """llc's reason in one line: its first complaint, with the words of its verifier."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for index, line in enumerate(lines):
        if match := _COMPLAINT.match(line):
            about = [
                each
                for each in lines[index + 1 : index + 6]
                if each.startswith(("- basic block:", "- instruction:", "- operand"))
            ]
            reason = _ADDRESSES.sub("", "; ".join([match[1] or line, *about]))
            return f"llc: {reason}"[:_REASON_LENGTH]
    if status < 0:  # its output is a stack dump
        reason = f"llc ended by signal {-status}"
        if words := _LAST_WORDS.search(output):
            reason += f": {words[1]}"
        if last := _LAST_PASS.search(output):
            reason += f", in function {last[2]}, pass {last[1]}"
        return reason[:_REASON_LENGTH]
    return f"llc ended with status {status}{': ' + lines[0] if lines else ''}"[:_REASON_LENGTH]
