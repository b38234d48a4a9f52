"""The compilers of each vendor's rows, and what a row's provenance says of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec

from dataset_builders.compilers.llvm import ALLOCATION_OPTIONS
from verilocc_bench.backends import Backend, backend_of
from verilocc_bench.backends.nvidia.tools import (
    CUDA_OPTIONS,
    CUDA_TOOLS,
    find_tool,
    options_for,
    tool_version,
)
from verilocc_bench.errors import MissingExtraError


@dataclass(frozen=True, slots=True)
class Toolchain:
    """The tools behind Triton for the targets of one vendor.

    `options`: the options of each stage, by the architectures of the rows.
    `hashes`: the keys of a row's provenance that hold a SHA-256.
    `label_source`: the column of that name, from the provenance's versions.
    `versions`: the tools' versions, by name. `check` raises MissingExtraError
    if a tool is not installed; its argument says what needs it.
    """

    options: Callable[[Collection[str]], Mapping[str, tuple[str, ...]]]
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


# What ptxas assembles for: Triton's PTX for sm_90 is for sm_90a.
_PTX_TARGETS = {"sm_80": ("sm_80",), "sm_90": ("sm_90", "sm_90a")}


def _cuda_options(archs: Collection[str]) -> dict[str, tuple[str, ...]]:
    """The options for sm_80 as they are recorded; `ptxas TARGET` stands for other targets."""
    options = {n: o for n, o in CUDA_OPTIONS.items() if n != "ptxas" or "sm_80" in archs}
    for target in (target for arch in archs for target in _PTX_TARGETS.get(arch, ())):
        own = options_for(target)["ptxas"]
        if own != CUDA_OPTIONS["ptxas"]:
            options[f"ptxas {target}"] = own
    return options


def _check_cuda_tools(_purpose: str) -> None:
    for tool in CUDA_TOOLS:
        find_tool(tool)


_TOOLCHAINS = {
    "amd": Toolchain(
        options=lambda _archs: ALLOCATION_OPTIONS,
        hashes=("source_sha256", "llvm_ir_sha256", "machine_ir_sha256"),
        label_source=lambda versions: f"llvm-greedy {versions.get('llvm')}",
        versions=lambda: {"llvmlite": version("llvmlite")},
        check=lambda purpose: check_packages({"llvmlite": "llvmlite"}, purpose),
    ),
    "nvidia": Toolchain(
        options=_cuda_options,
        hashes=("source_sha256", "llvm_ir_sha256", "ptx_sha256", "machine_code_sha256"),
        label_source=lambda versions: f"ptxas {versions.get('ptxas')}",
        versions=lambda: {tool: tool_version(tool) for tool in CUDA_TOOLS},
        check=_check_cuda_tools,
    ),
}
