"""Estimates of `llvm-mca` for the innermost loops of a kernel's assembly.

llvm-mca runs the instructions of a loop 100 times in a model of the pipeline, as
if every branch inside fell through. The model has latencies, issue and waits on
counters, but no register banks, no memory and no other waves. The program is
optional. The environment variable VERILOCC_BENCH_LLVM_MCA names it; otherwise it
is `llvm-mca-22` or `llvm-mca` on the PATH, of the same release as llc.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from verilocc_bench.backends.amdgpu.assembly import AssemblyLoop
from verilocc_bench.backends.amdgpu.tools import LLVM_RELEASE
from verilocc_bench.errors import InputError
from verilocc_bench.tool_process import run_tool

MCA_OPTIONS = (
    "-mtriple=amdgcn-amd-amdhsa",
    "--iterations=100",
    "--skip-unsupported-instructions=any",
    "--json",
)
"""The options of each run without the architecture."""

_VARIABLE = "VERILOCC_BENCH_LLVM_MCA"
_NAMES = (f"llvm-mca-{LLVM_RELEASE}", "llvm-mca")
_SECONDS = 120
_PROBE_SECONDS = 10
"""The longest for one iteration, which takes milliseconds; llvm-mca never ends on some loops."""

_VERSION = re.compile(r"\bLLVM version (\d+(?:\.\d+)*)")
_SKIPPED = re.compile(r"^<stdin>:(\d+):\d+: (?:error|warning): ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Analyzer:
    """The program and its version; without a program, `reason` says why."""

    program: str | None
    version: str | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class LoopEstimate:
    """An innermost loop and llvm-mca's estimate of one iteration.

    `cycles` is the total of 100 iterations divided by 100; `throughput` is
    llvm-mca's "Block RThroughput". Both are None without an estimate; `reason` then
    says why. `skipped` counts, by opcode, the instructions that the model does not
    know and the estimate leaves out.
    """

    label: str
    depth: int
    instructions: int
    cycles: float | None
    throughput: float | None
    skipped: dict[str, int]
    reason: str | None = None


def find_analyzer() -> Analyzer:
    """llvm-mca of the right release, or the reason why it is missing.

    Raises InputError if the environment names a program that is not that.
    """
    named = os.environ.get(_VARIABLE)
    if named:
        version = _version_of(named)
        if version.partition(".")[0] != str(LLVM_RELEASE):
            found = f"is of LLVM {version}" if version else "is not an llvm-mca that can be run"
            raise InputError(
                f"{_VARIABLE} names {named!r}, which {found}; expected LLVM {LLVM_RELEASE}"
            )
        return Analyzer(named, version)
    for name in _NAMES:
        program = shutil.which(name)
        version = _version_of(program) if program else ""
        if version.partition(".")[0] == str(LLVM_RELEASE):
            return Analyzer(program, version)
    return Analyzer(
        None,
        None,
        f"there is no llvm-mca of LLVM {LLVM_RELEASE} (Debian: llvm-{LLVM_RELEASE}; or name it "
        f"in {_VARIABLE})",
    )


def estimate_loops(
    loops: Sequence[AssemblyLoop], arch: str, analyzer: Analyzer
) -> tuple[LoopEstimate, ...]:
    """The estimate of each loop."""
    return tuple(_estimate(loop, arch, analyzer) for loop in loops)


def _estimate(loop: AssemblyLoop, arch: str, analyzer: Analyzer) -> LoopEstimate:
    count = len(loop.instructions)
    if analyzer.program is None:
        return LoopEstimate(loop.label, loop.depth, count, None, None, {}, analyzer.reason)
    options = [*MCA_OPTIONS, f"-mcpu={arch}", "-"]
    # The text must contain the label to which the loop branches back.
    text = "".join(f"{line}\n" for line in (f"{loop.label}:", *loop.instructions))
    try:
        # The later of two equal options counts.
        _run(analyzer.program, [*options, "--iterations=1"], text, _PROBE_SECONDS)
        printed, messages = _run(analyzer.program, options, text)
        region = json.loads(printed)["CodeRegions"][0]
        summary = region["SummaryView"]
        known = len(region["Instructions"])
        cycles = summary["TotalCycles"] / summary["Iterations"]
        throughput = float(summary["BlockRThroughput"])
    except TimeoutError:
        reason = "llvm-mca does not end in time"
        return LoopEstimate(loop.label, loop.depth, count, None, None, {}, reason)
    except InputError as error:
        reason = f"llvm-mca {error.message}"
        return LoopEstimate(loop.label, loop.depth, count, None, None, {}, reason)
    except (ValueError, LookupError, TypeError):
        reason = "llvm-mca makes nothing of it"
        return LoopEstimate(loop.label, loop.depth, count, None, None, {}, reason)
    skipped = _skipped(loop, messages, count - known)
    return LoopEstimate(loop.label, loop.depth, count, cycles, throughput, skipped)


def _skipped(loop: AssemblyLoop, messages: str, count: int) -> dict[str, int]:
    """The `count` instructions that llvm-mca left out, by opcode."""
    lines = {int(line) - 2 for line in _SKIPPED.findall(messages)}
    known = [at for at in lines if 0 <= at < len(loop.instructions)]
    names = Counter(loop.instructions[at].partition(" ")[0] for at in known)
    if names.total() < count:
        names["(unnamed)"] = count - names.total()
    return dict(sorted(names.items())) if count else {}


def _run(
    program: str, arguments: Sequence[str], text: str = "", seconds: int = _SECONDS
) -> tuple[str, str]:
    """The output of llvm-mca and what it complains about."""
    with tempfile.TemporaryFile() as file:
        file.write(text.encode())
        file.seek(0)
        done = run_tool(Path(program), arguments, Path(), seconds, stdin=file)
    return done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


@cache
def _version_of(program: str) -> str:
    """The version of LLVM that a program prints, or an empty text."""
    try:
        found = _VERSION.search(_run(program, ["--version"])[0])
    except (InputError, TimeoutError):
        return ""
    return found[1] if found else ""
