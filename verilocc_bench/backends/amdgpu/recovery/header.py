"""The head of recovered machine IR: what the kernel's descriptor says, in LLVM's words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from verilocc_bench.errors import RejectedKernel
from verilocc_bench.machine.code_object import Descriptor, KernelCode
from verilocc_bench.targets.amdgpu import MAXIMUM_WAVES, VECTOR_REGISTERS
from verilocc_bench.targets.amdgpu_budget import Budget, budget_from_attributes

_PLAIN_NAME = re.compile(r"[A-Za-z_.$][\w.$]*", re.ASCII)
_LEFT_OUT = (
    "cluster-id-x", "cluster-id-y", "cluster-id-z", "completion-action", "default-queue",
    "heap-ptr", "hostcall-ptr", "implicitarg-ptr", "lds-kernel-id", "multigrid-sync-arg",
)  # fmt: skip
"""Arguments that no kernel of these has."""
_WORK_ITEM_IDS = ("workItemIDX", "workItemIDY", "workItemIDZ")
"""They share one register, ten bits each."""

_MODES = (
    ("ieee", "ieee"), ("dx10-clamp", "dx10_clamp"),
)  # fmt: skip


_ARGUMENT_SIZES = (1, 2, 4, 8)
PRELOADED = "firstKernArgPreloadReg"
"""LLVM's name of the registers that hold the first arguments themselves."""


def argument_units(descriptor: Descriptor) -> dict[str, tuple[str, int, int]]:
    """LLVM's name of each argument in registers: (file, first register, count).

    Source: LLVM, "User Guide for AMDGPU Backend", section "Initial Kernel Execution State".
    Raises RejectedKernel, `argument-registers`, for arguments that this package does not
    know how to ask LLVM for.
    """
    if descriptor.work_group_info or descriptor.private_segment or descriptor.preload_offset:
        raise RejectedKernel("argument-registers", "scratch, work-group information or an offset")
    found: dict[str, tuple[str, int, int]] = {}
    at = 0
    for name, count, present in (
        ("privateSegmentBuffer", 4, descriptor.private_segment_buffer),
        ("dispatchPtr", 2, descriptor.dispatch_pointer),
        ("queuePtr", 2, descriptor.queue_pointer),
        ("kernargSegmentPtr", 2, descriptor.kernarg_pointer),
        ("dispatchID", 2, descriptor.dispatch_id),
        ("flatScratchInit", 2, descriptor.flat_scratch_init),
        ("privateSegmentSize", 1, descriptor.private_segment_size),
    ):
        if present:
            found[name] = ("s", at, count)
            at += count
    if descriptor.preload_length:
        found[PRELOADED] = ("s", at, descriptor.preload_length)
        at += descriptor.preload_length
    if at != descriptor.user_scalars:
        reason = f"{descriptor.user_scalars} user SGPRs, {at} of them known"
        raise RejectedKernel("argument-registers", reason)
    for name, present in zip(
        ("workGroupIDX", "workGroupIDY", "workGroupIDZ"), descriptor.work_group_ids, strict=True
    ):
        if present:
            found[name] = ("s", at, 1)
            at += 1
    ids = _WORK_ITEM_IDS[: descriptor.work_item_dimensions]
    return found | dict.fromkeys(ids, ("v", 0, 1))


def attributes(kernel: KernelCode, used: Mapping[str, int]) -> dict[str, str]:
    """The LLVM attributes of a kernel; `used` has the number of registers used, by file.

    The kernel keeps the occupancy that its own registers leave it, and their division
    into VGPRs and AGPRs. Code without AGPRs may use VGPRs behind the place where the
    descriptor says that AGPRs begin; it has no AGPRs then.

    Raises RejectedKernel, `register-division`, for code that uses both there.
    """
    descriptor = kernel.descriptor
    total = descriptor.vector_registers
    vgprs = min(descriptor.accumulator_offset, total)
    if used.get("v", 0) > vgprs:
        if used.get("a", 0):
            raise RejectedKernel("register-division", f"{kernel.name}: VGPRs overlap AGPRs")
        vgprs = total
    agprs = total - vgprs
    if used.get("v", 0) > vgprs or used.get("a", 0) > agprs:
        raise RejectedKernel("register-division", f"{kernel.name}: more than its {total} registers")
    found = {
        "amdgpu-agpr-alloc": str(agprs),
        "amdgpu-flat-work-group-size": f"{kernel.largest_work_group},{kernel.largest_work_group}",
        "amdgpu-lds-size": str(descriptor.lds_bytes),
        "target-cpu": kernel.arch,
        "uniform-work-group-size": "true",
    }
    for waves in range(min(MAXIMUM_WAVES, VECTOR_REGISTERS // total), 0, -1):
        asked = found | {"amdgpu-waves-per-eu": str(waves)}
        if _holds(budget_from_attributes(kernel.arch, asked), vgprs, agprs, used.get("s", 0)):
            found = asked
            break
    ids = zip(("x", "y", "z"), descriptor.work_group_ids, strict=True)
    absent = [f"workgroup-id-{axis}" for axis, present in ids if not present]
    absent += [f"workitem-id-{axis}" for axis in "xyz"[descriptor.work_item_dimensions :]]
    for name, present in (
        ("dispatch-ptr", descriptor.dispatch_pointer),
        ("queue-ptr", descriptor.queue_pointer),
        ("dispatch-id", descriptor.dispatch_id),
        ("flat-scratch-init", descriptor.flat_scratch_init),
    ):
        absent += [] if present else [name]
    return found | {f"amdgpu-no-{name}": "" for name in sorted((*absent, *_LEFT_OUT))}


def _holds(budget: Budget, vgprs: int, agprs: int, scalars: int) -> bool:
    vectors = vgprs <= budget.vgprs and agprs <= budget.agprs
    return vectors and scalars <= budget.sgprs


def header(kernel: KernelCode, classes: Sequence[str], used: Mapping[str, int]) -> str:
    """The text of a file up to the body of its one function."""
    name = kernel.name
    quoted = name if _PLAIN_NAME.fullmatch(name) else '"' + name.replace('"', "\\22") + '"'
    words = " ".join(
        f'"{key}"="{value}"' if value else f'"{key}"'
        for key, value in attributes(kernel, used).items()
    )
    lines = [
        "--- |",
        '  target triple = "amdgcn-amd-amdhsa"',
        "  ",
        f"  define amdgpu_kernel void @{quoted}({_parameters(kernel)}) #0 {{",
        "    unreachable",
        "  }",
        "  ",
        f"  attributes #0 = {{ {words} }}",
        "...",
        "---",
        f"name:            {name if quoted == name else chr(39) + name + chr(39)}",
        "alignment:       256",
        "tracksRegLiveness: true",
        "noPhis:          true",
        "isSSA:           false",
        "noVRegs:         false",
        "registers:",
    ]
    lines += [f"  - {{ id: {n}, class: {name} }}" for n, name in enumerate(classes)]
    lines += ["machineFunctionInfo:", *_information(kernel)]
    return "\n".join([*lines, "body:             |", ""])


def _parameters(kernel: KernelCode) -> str:
    """The kernel's parameters: its arguments, or their bytes if LLVM would lay them out elsewhere.

    LLVM places each argument at the next multiple of its alignment.
    """
    found: list[str] = []
    end = 0
    for argument in kernel.arguments:
        if argument.kind.startswith("hidden_"):
            continue
        kind = "ptr addrspace(1)" if argument.kind == "global_buffer" else f"i{8 * argument.size}"
        end = -(-end // argument.size) * argument.size if argument.size else end
        if argument.size not in _ARGUMENT_SIZES or argument.offset != end:
            return f"[{-(-_argument_bytes(kernel) // 4)} x i32] %arguments"
        loaded = " inreg" if end < 4 * kernel.descriptor.preload_length else ""
        found.append(f"{kind}{loaded} %a{len(found)}")
        end += argument.size
    return ", ".join(found)


def _argument_bytes(kernel: KernelCode) -> int:
    """The size of the arguments in memory; descriptors written by hand may say 0."""
    ends = [argument.offset + argument.size for argument in kernel.arguments]
    return max([kernel.descriptor.kernarg_bytes, *ends])


def _information(kernel: KernelCode) -> list[str]:
    descriptor = kernel.descriptor
    lines = [
        f"  explicitKernArgSize: {_argument_bytes(kernel)}",
        "  maxKernArgAlign: 16",
        f"  ldsSize:         {descriptor.lds_bytes}",
        "  isEntryFunction: true",
        "  argumentInfo:",
    ]
    for name, (file, first, size) in argument_units(descriptor).items():
        count = 1 if name == PRELOADED else size
        register = "_".join(f"{file}gpr{index}" for index in range(first, first + count))
        kind = f"{{ reg: '${register}'"
        if name in _WORK_ITEM_IDS:
            kind += f", mask: {1023 << 10 * _WORK_ITEM_IDS.index(name)}"
        lines.append(f"    {name}: {kind} }}")
    denormals = descriptor.float_mode >> 4
    flags = {name: getattr(descriptor, attribute) for name, attribute in _MODES} | {
        "fp32-input-denormals": bool(denormals & 1),
        "fp32-output-denormals": bool(denormals & 2),
        "fp64-fp16-input-denormals": bool(denormals & 4),
        "fp64-fp16-output-denormals": bool(denormals & 8),
    }
    if descriptor.preload_length:
        lines.append(f"  numKernargPreloadSGPRs: {descriptor.preload_length}")
    return [*lines, "  mode:", *(f"    {n}: {str(v).lower()}" for n, v in flags.items())]
