"""The compilers of each vendor's rows, and what a row's provenance says of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec

from dataset_builders.compilers.llvm import ALLOCATION_OPTIONS
from verilocc_bench.backends import Backend, backend_of
from verilocc_bench.backends.nvidia.tools import CUDA_OPTIONS, CUDA_TOOLS, find_tool, tool_version
from verilocc_bench.errors import MissingExtraError


@dataclass(frozen=True, slots=True)
class Toolchain:
    """The tools behind Triton for the targets of one vendor.

    `hashes`: the keys of a row's provenance that hold a SHA-256.
    `label_source`: the column of that name, from the provenance's versions.
    `versions`: the tools' versions, by name. `check` raises MissingExtraError
    if a tool is not installed; its argument says what needs it.
    """

    options: Mapping[str, tuple[str, ...]]
    hashes: tuple[str, ...]
    label_source: Callable[[Mapping[str, str]], str]
    versions: Callable[[], dict[str, str]]
    check: Callable[[str], None]


def toolchain_of(arch: str) -> Toolchain:
    """The tools for a target. Raises InputError for an unknown one."""
    return _TOOLCHAINS[backend_of(arch).vendor]


def toolchains_of(archs: Collection[str]) -> list[Toolchain]:
    """The tools for several targets, each once."""
    backends: dict[str, Backend[object]] = {}
    for arch in archs:
        backend = backend_of(arch)
        backends[backend.vendor] = backend
    return [_TOOLCHAINS[vendor] for vendor in sorted(backends)]


def check_packages(packages: Mapping[str, str], purpose: str) -> None:
    """Raises MissingExtraError for a package that is not installed; `packages` maps to modules."""
    for package, module in packages.items():
        if find_spec(module) is None:
            raise MissingExtraError(package, "build", purpose)


def _check_cuda_tools(_purpose: str) -> None:
    for tool in CUDA_TOOLS:
        find_tool(tool)


_TOOLCHAINS = {
    "amd": Toolchain(
        options=ALLOCATION_OPTIONS,
        hashes=("source_sha256", "llvm_ir_sha256", "machine_ir_sha256"),
        label_source=lambda versions: f"llvm-greedy {versions.get('llvm')}",
        versions=lambda: {"llvmlite": version("llvmlite")},
        check=lambda purpose: check_packages({"llvmlite": "llvmlite"}, purpose),
    ),
    "nvidia": Toolchain(
        options=CUDA_OPTIONS,
        hashes=("source_sha256", "llvm_ir_sha256", "ptx_sha256", "machine_code_sha256"),
        label_source=lambda versions: f"ptxas {versions.get('ptxas')}",
        versions=lambda: {tool: tool_version(tool) for tool in CUDA_TOOLS},
        check=_check_cuda_tools,
    ),
}
