"""From a sweep point to LLVM IR (AMD) or PTX (NVIDIA), with Triton and without a GPU.

Triton is imported when the first kernel is compiled. Line information is off,
so the text does not depend on the kernels' folder. Only the stages before the
register allocator run: the text goes to LLVM for AMD, to ptxas for NVIDIA.

Vendors' mathematical libraries are left out. Triton would link NVIDIA's
libdevice into a kernel that calls it; here such a kernel fails.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dataset_builders.kernels.specifications import OPTIONS, TYPES, Argument
from dataset_builders.sweeps.constraints import LOCAL_MEMORY_BYTES
from dataset_builders.sweeps.point import Parameters, SweepPoint
from verilocc_bench.errors import MissingExtraError, RejectedKernel
from verilocc_bench.files import files_hash

_KERNEL_FOLDER = Path(__file__).parents[1] / "kernels"
_STAGES = {"hip": ("ttir", "ttgir", "llir"), "cuda": ("ttir", "ttgir", "llir", "ptx")}
# The PTX version of the ptxas that Triton 3.7.1 brings along; named, so that no
# process is started to ask for it, and no other ptxas changes the text.
_PTX_VERSION = 87
_LIBDEVICE_CALL = re.compile(r"@(__nv_\w+)\(")
_VARIABLE_PREFIXES = (
    "TRITON_",
    "AMDGCN_",
    "MLIR_",
    "LLVM_",
    "DISABLE_LLVM_",
    "NVPTX_",
    "USE_IR_LOC",
)
_REASON_LENGTH = 200


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """Triton's output for a point.

    `ptx` is made from `llvm_ir` for NVIDIA, and empty for AMD. `source_hash` is the
    SHA-256 of the modules with the kernel's source.
    """

    llvm_ir: str
    num_warps: int
    shared_memory_bytes: int
    triton_version: str
    source_hash: str
    ptx: str = ""


def kernel_source_hash(point: SweepPoint) -> str:
    """The SHA-256, in hex, of the kernel's source and of what it imports from this package."""
    return files_hash(_KERNEL_FOLDER, _source_files(point.specification.module))


def compile_kernel(point: SweepPoint, cache_directory: Path | None = None) -> CompiledKernel:
    """Compiles a point, to LLVM IR for an AMD target and on to PTX for an NVIDIA one.

    `cache_directory` is a folder in which Triton may keep files; without one
    they go to a temporary folder. Raises MissingExtraError if Triton is not
    installed, and RejectedKernel (`compilation_failed`) for all that Triton rejects.
    """
    with contextlib.ExitStack() as stack:
        if cache_directory is None:
            cache_directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.enter_context(_triton_environment(cache_directory))
        triton = _import_triton()
        try:
            texts, shared_memory_bytes = _run_stages(point)
        except Exception as error:  # Triton raises anything, from any layer
            raise _failure(point, _one_line(error)) from error
    libdevice_call = _LIBDEVICE_CALL.search(texts["llir"])
    if libdevice_call:
        raise _failure(point, f"calls {libdevice_call[1]} of NVIDIA's libdevice")
    limit = LOCAL_MEMORY_BYTES[point.arch]
    if shared_memory_bytes > limit:
        raise _failure(point, f"needs {shared_memory_bytes} bytes of local memory of {limit}")
    return CompiledKernel(
        llvm_ir=texts["llir"],
        num_warps=point.parameters.integer("num_warps"),
        shared_memory_bytes=shared_memory_bytes,
        triton_version=str(triton.__version__),
        source_hash=kernel_source_hash(point),
        ptx=texts.get("ptx", ""),
    )


def _failure(point: SweepPoint, reason: str) -> RejectedKernel:
    return RejectedKernel("compilation_failed", f"{point.key}: {reason}")


def _run_stages(point: SweepPoint) -> tuple[dict[str, str], int]:
    """The texts `llir` and, on NVIDIA, `ptx`, and the bytes of local memory."""
    from triton._C.libtriton import ir
    from triton.compiler import ASTSource
    from triton.compiler.compiler import make_backend

    module_name = f"dataset_builders.kernels.{point.specification.module}"
    function = getattr(importlib.import_module(module_name), point.kernel)
    source = ASTSource(function, *_signature(point, tuple(function.arg_names)))
    target = _target(point)
    backend = make_backend(target)
    options = _backend_options(point, backend)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    module = source.make_ir(
        target,
        options,
        backend.get_codegen_implementation(options),
        backend.get_module_map(),
        context,
    )
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options, source.language)
    metadata: dict[str, Any] = dict(options.__dict__)
    texts: dict[str, str] = {}
    for stage in _STAGES[target.backend]:
        module = stages[stage](module, metadata)
        if isinstance(module, str):
            texts[stage] = module
    return texts, int(metadata["shared"])


def _target(point: SweepPoint) -> Any:
    from triton.backends.compiler import GPUTarget

    if point.arch.startswith("gfx"):
        return GPUTarget("hip", point.arch, 64)
    own = int(point.arch.removeprefix("sm_"))
    return GPUTarget("cuda", point.parameters.get("capability", 0) or own, 32)


def _backend_options(point: SweepPoint, backend: Any) -> Any:
    # The number of registers that allocators are asked for does not change the code, and
    # the capability is the target's.
    others = ("asked_maxnreg", "capability")
    names = (n for n in OPTIONS if n in point.parameters and n not in others)
    asked = {name: point.parameters.integer(name) for name in names}
    if point.arch.startswith("gfx"):
        return backend.parse_options(asked)
    if not asked["maxnreg"]:
        del asked["maxnreg"]  # Triton's word for no limit
    options = backend.parse_options(asked | {"ptx_version": _PTX_VERSION})
    # The options are frozen, and always name libdevice. Without a library to
    # link, a call of one stays visible.
    object.__setattr__(options, "extern_libs", ())
    return options


def _signature(
    point: SweepPoint, names: tuple[str, ...]
) -> tuple[dict[str, str], dict[str, object], dict[tuple[int, ...], list[list[object]]]]:
    """Triton's signature, constants and attributes for a kernel with these arguments."""
    arguments = {argument.name: argument for argument in point.specification.arguments}
    signature: dict[str, str] = {}
    constants: dict[str, object] = {}
    attributes: dict[tuple[int, ...], list[list[object]]] = {}
    used: set[str] = set()
    for index, name in enumerate(names):
        argument = arguments.get(name)
        if argument is None:
            # Not an argument at run time: a parameter in capitals.
            signature[name] = "constexpr"
            constants[name] = point.parameters[name.lower()]
            used.add(name.lower())
        elif argument.needed_by and point.parameters[argument.needed_by] in (False, 0, "none"):
            signature[name] = "constexpr"
            constants[name] = None
        else:
            signature[name] = _argument_type(argument, point.parameters)
            known = _argument_attributes(argument, point.parameters)
            if known:
                attributes[(index,)] = known
    unused = set(point.parameters) - used - set(OPTIONS) - set(TYPES)
    if unused or set(arguments) - set(names):
        raise TypeError(f"kernel and specification disagree: {sorted(unused)}")
    return signature, constants, attributes


def _argument_type(argument: Argument, parameters: Parameters) -> str:
    if argument.type == "stride":
        return "i32"
    name = re.sub(r"\{(\w+)\}", lambda match: str(parameters[match[1]]), argument.type)
    return name.replace("int", "i")  # Triton's short names of the integer types


def _argument_attributes(argument: Argument, parameters: Parameters) -> list[list[object]]:
    known: list[list[object]] = []
    is_pointer = argument.type.startswith("*")
    if is_pointer or (argument.type == "stride" and parameters["aligned"]):
        known.append(["tt.divisibility", 16])
    if is_pointer and parameters.get("small_buffers", False):
        known.append(["tt.pointer_range", 32])
    return known


def _source_files(module: str) -> list[Path]:
    """The kernel module's file and those that it imports from this package, by name."""
    pattern = re.compile(r"^from dataset_builders\.kernels\.(\w+) import", re.MULTILINE)
    pending, found = [module], set[Path]()
    while pending:
        path = _KERNEL_FOLDER / f"{pending.pop()}.py"
        if path not in found:
            found.add(path)
            pending.extend(pattern.findall(path.read_text(encoding="utf-8")))
    return sorted(found)


def _import_triton() -> Any:
    try:
        return importlib.import_module("triton")
    except ModuleNotFoundError as error:
        if error.name != "triton":
            raise
        raise MissingExtraError("triton", "build", "compiling kernels") from None


@contextlib.contextmanager
def _triton_environment(cache_directory: Path) -> Iterator[None]:
    """Sets Triton's variables as we need them, whatever the user's are; restores them afterwards.

    Triton and LLVM read dozens of variables that change the code: most of them
    when they use them, some when a kernel is first imported.
    """
    theirs = {n: v for n, v in os.environ.items() if n.startswith(_VARIABLE_PREFIXES)}
    ours = {"TRITON_CACHE_DIR": str(cache_directory), "TRITON_DISABLE_LINE_INFO": "1"}
    _replace_environment(theirs, ours)
    try:
        yield
    finally:
        _replace_environment(ours, theirs)


def _replace_environment(old: Mapping[str, str], new: Mapping[str, str]) -> None:
    for name in old:
        os.environ.pop(name, None)
    os.environ.update(new)


def _one_line(error: BaseException) -> str:
    """The last line with any text, without folders."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[-1] if lines else ""
    text = re.sub(r"\S*/(?=[^/\s]+)", "", text)
    return f"{type(error).__name__}: {text}"[:_REASON_LENGTH]
