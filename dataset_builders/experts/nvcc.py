"""NVIDIA's C++ compiler, run as a process: one text to one cubin for sm_80.

It comes from PyPI, with ptxas of the same release. The PATH is not searched for
it, but the compiler needs a C++ compiler of the system there. Each run has its own
folder, in which the folders of headers have fixed names: so a cubin contains no
path of the machine. Names of internal variables contain the number of the process,
which a fixed seed replaces, and a hash of the folder, which zeros replace. So equal
input gives equal bytes.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from verilocc_bench.backends.nvidia.tools import find_tool, tool_version
from verilocc_bench.errors import InputError, MissingExtraError, RejectedKernel
from verilocc_bench.files import files_hash
from verilocc_bench.tool_process import run_tool

OPTIONS = (
    "--gpu-architecture=sm_80",
    "--cubin",
    "--std=c++17",
    "-O3",
    "--expt-relaxed-constexpr",
    "--expt-extended-lambda",
    # Otherwise names of variables have the number of the process in them.
    "--frandom-seed=1",
)
"""The options of every run."""

HEADERS_PACKAGE = "nvidia-cuda-cccl"
EXTRA = "expert"
_SECONDS = 900
_VARIABLES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
"""The compiler fills gigabytes: with large pages it takes a fifth less time."""

_REASON_LENGTH = 200
_FOLDER_HASH = re.compile(rb"(?<=_)[0-9a-f]{8}(?=_9_kernel_cu_)")


def compile_cubin(text: str, headers: Mapping[str, Path], options: Sequence[str] = ()) -> bytes:
    """The cubin of a C++ text with one kernel.

    `headers` are the folders that are searched for its headers, by the name that
    they have for the compiler. Raises RejectedKernel (`nvcc-failed`) if the
    compiler refuses the text or does not end, and errors like find_nvcc.
    """
    nvcc = find_nvcc()
    folders = {**headers, "cccl": cuda_headers() / "cccl", "cuda": cuda_headers()}
    with tempfile.TemporaryDirectory(prefix="verilocc-bench-nvcc-") as name:
        folder = Path(name)
        (folder / "kernel.cu").write_text(text, encoding="utf-8")
        for link, target in folders.items():
            (folder / link).symlink_to(target.resolve())
        searched = [f"-I{link}" for link in folders]
        arguments = [*OPTIONS, *options, *searched, "kernel.cu", "--output-file", "kernel.cubin"]
        try:
            ended = run_tool(nvcc, arguments, folder, _SECONDS, variables=_VARIABLES)
        except TimeoutError as error:
            raise RejectedKernel("nvcc-failed", str(error)) from None
        if ended.returncode:
            output = (ended.stderr + ended.stdout).decode(errors="replace")
            lines = [line.strip() for line in output.splitlines() if line.strip()]
            errors = [line for line in lines if re.search(r"\b(error|fatal)\b", line)]
            reason = (errors or lines[-1:] or ["nvcc failed"])[0]
            raise RejectedKernel("nvcc-failed", " ".join(reason.split())[:_REASON_LENGTH])
        return without_folder((folder / "kernel.cubin").read_bytes())


def without_folder(cubin: bytes) -> bytes:
    """The cubin with zeros for the hash of the folder in names of internal variables."""
    return _FOLDER_HASH.sub(b"00000000", cubin)


@cache
def find_nvcc() -> Path:
    """The path of the compiler.

    Raises MissingExtraError if a package is not installed, and InputError if the
    system has no C++ compiler.
    """
    nvcc = find_tool("ptxas").with_name("nvcc")
    if not nvcc.is_file():
        raise MissingExtraError("nvidia-cuda-nvcc", EXTRA, "compiling experts' kernels")
    cuda_headers()
    host_compiler_version()
    return nvcc


@cache
def cuda_headers() -> Path:
    """The folder with NVIDIA's C++ core libraries in `cccl`.

    Raises MissingExtraError if the package is not installed.
    """
    try:
        files = distribution(HEADERS_PACKAGE).files or []
    except PackageNotFoundError:
        purpose = "compiling experts' kernels"
        raise MissingExtraError(HEADERS_PACKAGE, EXTRA, purpose) from None
    parts = ("include", "cccl", "cuda", "std", "utility")
    found = next((file for file in files if file.parts[-5:] == parts), None)
    if found is None:
        raise InputError(f"the package {HEADERS_PACKAGE} has no {'/'.join(parts)}")
    return Path(str(found.locate())).resolve().parents[3]


@cache
def host_compiler_version() -> str:
    """The version of the system's C++ compiler, whose headers the kernels include too."""
    path = shutil.which("g++", path="/bin:/usr/bin")
    if path is None:
        raise InputError("nvcc needs g++ of the system (Debian: apt-get install g++)")
    ended = run_tool(Path(path), ["-dumpfullversion"], Path(tempfile.gettempdir()), 20)
    return ended.stdout.decode().strip()


def compiler_versions() -> dict[str, str]:
    """The versions of the compilers, by name."""
    find_nvcc()
    return {
        "nvcc": tool_version("ptxas"),
        "g++": host_compiler_version(),
        HEADERS_PACKAGE: distribution(HEADERS_PACKAGE).version,
    }


def folder_hash(folder: Path) -> str:
    """The SHA-256 of the files of a folder, with their paths in it."""
    return files_hash(folder, sorted(path for path in folder.rglob("*") if path.is_file()))
