"""NVIDIA's assembler and disassembler, and its reader of fat binaries, run as processes.

They come from PyPI and must be of one release. The PATH is not searched, because
another release allocates differently. The environment can name another file
(`VERILOCC_BENCH_PTXAS`, `VERILOCC_BENCH_NVDISASM`, `VERILOCC_BENCH_CUOBJDUMP`).

Each run has its own folder, a fixed file name, an environment without variables,
and a time limit. So equal input gives equal output on every machine, and a cubin
contains no path.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Literal, TypeAlias

from verilocc_bench.errors import InputError, MissingExtraError, RejectedKernel
from verilocc_bench.tool_process import run_tool

CudaTool: TypeAlias = Literal["ptxas", "nvdisasm", "cuobjdump"]
CUDA_TOOLS: tuple[CudaTool, ...] = ("ptxas", "nvdisasm")
"""The tools that make and read a kernel; their versions are recorded with it."""

CUDA_OPTIONS: dict[str, tuple[str, ...]] = {
    "ptxas": ("--gpu-name=sm_80",),
    "nvdisasm": ("--print-code", "--print-instruction-encoding"),
    "nvdisasm life ranges": ("--print-code", "--life-range-mode", "narrow"),
}
"""The options of each run for sm_80, for records of how a result was made."""


_PTX_TARGET = re.compile(r"^\s*\.target\s+(sm_\d+a?)\b", re.MULTILINE)


def options_for(architecture: str, ptx: str = "") -> dict[str, tuple[str, ...]]:
    """CUDA_OPTIONS, with ptxas for that architecture, and what PTX for it alone may use.

    PTX for `sm_90a` has instructions that only this form of sm_90 takes.
    """
    own = ptx_target(ptx) == f"{architecture}a"
    return CUDA_OPTIONS | {"ptxas": (f"--gpu-name={architecture}{'a' if own else ''}",)}


def ptx_target(ptx: str) -> str | None:
    """The architecture that PTX names, such as `sm_80` or `sm_90a`; None without one."""
    named = _PTX_TARGET.search(ptx)
    return None if named is None else named[1]


_PACKAGES: dict[CudaTool, str] = {
    "ptxas": "nvidia-cuda-nvcc",
    "nvdisasm": "nvidia-cuda-nvdisasm",
    "cuobjdump": "nvidia-cuda-cuobjdump",
}
_EXTRAS: dict[CudaTool, str] = {"ptxas": "ptx", "nvdisasm": "cubin", "cuobjdump": "cubin"}
_VARIABLES: dict[CudaTool, str] = {
    "ptxas": "VERILOCC_BENCH_PTXAS",
    "nvdisasm": "VERILOCC_BENCH_NVDISASM",
    "cuobjdump": "VERILOCC_BENCH_CUOBJDUMP",
}
_PURPOSES: dict[CudaTool, str] = {
    "ptxas": "assembling PTX",
    "nvdisasm": "disassembling a cubin",
    "cuobjdump": "reading a fat binary",
}
_ASSEMBLY_SECONDS = 300
_DISASSEMBLY_SECONDS = 20
_DISASSEMBLY_BYTES_PER_SECOND = 20_000  # a tenth of its usual speed
_REASON_LENGTH = 200
_EXTRACTED = re.compile(r".*?\.(\d+)\.(sm_\w+)\.cubin")
_VERSION = re.compile(r"\bV(\d+(?:\.\d+)+)")


class _ToolFailed(Exception):
    """The tool gave no result; the message is one line."""


def find_tool(tool: CudaTool) -> Path:
    """The path of a tool.

    Raises InputError if the environment names a file that cannot be run, and
    MissingExtraError if the package is not installed.
    """
    named = os.environ.get(_VARIABLES[tool])
    if named:
        if not os.access(named, os.X_OK) or not Path(named).is_file():
            raise InputError(f"{_VARIABLES[tool]} names {named!r}, which cannot be run")
        return Path(named).absolute()
    path = _installed_file(tool)
    if path is None:
        raise MissingExtraError(_PACKAGES[tool], _EXTRAS[tool], _PURPOSES[tool])
    return path


def tool_version(tool: CudaTool) -> str:
    """The version of a tool, such as `13.5.37`. Raises errors like find_tool."""
    return _version_of(find_tool(tool))


def assemble(
    ptx: str, *, architecture: str = "sm_80", maximum_registers: int | None = None
) -> bytes:
    """The cubin for an architecture that ptxas makes of a PTX module, at its usual optimization.

    `maximum_registers` replaces the limits of the kernels themselves (`.maxnreg`).
    Raises RejectedKernel (`ptxas-failed`) if ptxas refuses the text or does not end,
    and errors like find_tool.
    """
    options = [*options_for(architecture, ptx)["ptxas"]]
    if maximum_registers is not None:
        options += ["--override-directive-values", f"--maxrregcount={maximum_registers}"]
    ptxas = find_tool("ptxas")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "kernel.ptx").write_text(ptx, encoding="utf-8")
        try:
            arguments = [*options, "kernel.ptx", "--output-file", "kernel.cubin"]
            _run(ptxas, arguments, folder, _ASSEMBLY_SECONDS)
            return (folder / "kernel.cubin").read_bytes()
        except _ToolFailed as failure:
            raise RejectedKernel("ptxas-failed", str(failure)) from None
        except FileNotFoundError:
            raise RejectedKernel("ptxas-failed", "ptxas wrote no cubin") from None


def disassemble(cubin: bytes, source: str | Path | None = None, symbols: Sequence[int] = ()) -> str:
    """The code of a cubin as nvdisasm prints it, each instruction with its 128 bits.

    `symbols` selects functions by the numbers of their symbols; empty means all.
    Raises InputError about `source` if the data is not a cubin.
    """
    return _disassemble(cubin, CUDA_OPTIONS["nvdisasm"], source, symbols)


def life_ranges(cubin: bytes, source: str | Path | None = None, symbols: Sequence[int] = ()) -> str:
    """The code of a cubin beside NVIDIA's own register life ranges, in the narrow form.

    `symbols` selects functions by the numbers of their symbols; empty means all.
    Raises InputError about `source` if the data is not a cubin, or a cubin of a ptxas
    before 13: nvdisasm 13 gives no life ranges for such a header.
    """
    return _disassemble(cubin, CUDA_OPTIONS["nvdisasm life ranges"], source, symbols)


def code_and_life_ranges(cubin: bytes, source: str | Path, symbols: Sequence[int] = ()) -> str:
    """What `disassemble` and `life_ranges` say in one text (`one_listing`). Raises their errors."""
    options = dict.fromkeys((*CUDA_OPTIONS["nvdisasm"], *CUDA_OPTIONS["nvdisasm life ranges"]))
    return _disassemble(cubin, [*options], source, symbols)


def extract_cubins(data: bytes, source: str | Path | None = None) -> list[tuple[str, bytes]]:
    """The cubins of a fat binary, or of a host's file that holds some: (architecture, cubin).

    Raises InputError about `source` if cuobjdump cannot read it.
    """
    cuobjdump = find_tool("cuobjdump")
    seconds = _DISASSEMBLY_SECONDS + len(data) // _DISASSEMBLY_BYTES_PER_SECOND
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "code.bin").write_bytes(data)
        try:
            _run(cuobjdump, ["--extract-elf", "all", "code.bin"], folder, seconds)
        except _ToolFailed as failure:
            raise InputError(str(failure), source=source) from None
        found = [(_EXTRACTED.fullmatch(path.name), path) for path in folder.iterdir()]
        numbered = sorted((int(m[1]), m[2], path) for m, path in found if m is not None)
        return [(architecture, path.read_bytes()) for _, architecture, path in numbered]


def _disassemble(
    cubin: bytes, options: Sequence[str], source: str | Path | None, symbols: Sequence[int]
) -> str:
    if symbols:
        options = [*options, f"--cuda-function-index={','.join(map(str, symbols))}"]
    nvdisasm = find_tool("nvdisasm")
    seconds = _DISASSEMBLY_SECONDS + len(cubin) // _DISASSEMBLY_BYTES_PER_SECOND
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "kernel.cubin").write_bytes(cubin)
        try:
            return _run(nvdisasm, [*options, "kernel.cubin"], folder, seconds)
        except _ToolFailed as failure:
            raise InputError(str(failure), source=source) from None


@cache
def _installed_file(tool: CudaTool) -> Path | None:
    try:
        files = distribution(_PACKAGES[tool]).files or []
    except PackageNotFoundError:
        return None
    found = (file for file in files if file.parts[-2:] == ("bin", tool))
    return next((Path(str(file.locate())).resolve() for file in found), None)


@cache
def _version_of(path: Path) -> str:
    try:
        text = _run(path, ["--version"], Path(tempfile.gettempdir()), _DISASSEMBLY_SECONDS)
    except _ToolFailed as failure:
        raise InputError(str(failure), source=path) from None
    version = _VERSION.search(text)
    if version is None:
        raise InputError("prints no version", source=path)
    return version[1]


def _run(tool: Path, arguments: Sequence[str], folder: Path, seconds: int) -> str:
    """The output of a tool. Raises _ToolFailed, or InputError if it cannot be started."""
    try:
        ended = run_tool(tool, arguments, folder, seconds)
    except TimeoutError as error:
        raise _ToolFailed(f"{error}; the file may be damaged") from None
    if ended.returncode:
        raise _ToolFailed(_first_error(tool.name, ended.stderr + ended.stdout, ended.returncode))
    return ended.stdout.decode(errors="replace")


def _first_error(name: str, output: bytes, status: int) -> str:
    """The first line of the output that says error or fatal, else the first line."""
    lines = [line.strip() for line in output.decode(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"\b(error|fatal)\b", line)]
    if errors or lines:
        text = (errors or lines)[0].removeprefix(name).strip()
        return f"{name}: {' '.join(text.split())}"[:_REASON_LENGTH]
    ended = f"ended by signal {-status}" if status < 0 else f"ended with status {status}"
    return f"{name} {ended}"
