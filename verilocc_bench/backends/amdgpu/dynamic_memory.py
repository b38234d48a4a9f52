"""The size of dynamic local memory among a kernel's hidden arguments.

LLVM notes while it selects instructions that a kernel uses dynamic local memory (an external
array without a length), and machine IR does not keep the note. So code that llc makes of machine
IR lacks the hidden argument with its size. It is put back into the metadata of the assembly.
Source: LLVM's User Guide for AMDGPU, "Code Object V5 Metadata": of the hidden arguments,
`hidden_dynamic_lds_size` starts 120 bytes after the first, `hidden_block_count_x`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

import yaml

from verilocc_bench.backends.amdgpu.mir_module import unescaped
from verilocc_bench.backends.amdgpu.recovery.assembler import assembled_file

_NAME = r'@(?:"[^"]*"|[\w.$-]+)'
_ARRAY = re.compile(rf"^ *({_NAME}) = .*\baddrspace\(3\) global \[0 x ", re.MULTILINE)
_KERNEL = re.compile(rf"^ *define .*\bamdgpu_kernel\b.*?({_NAME})\((.*)", re.MULTILINE)
_WITHOUT_HIDDEN = re.compile(
    r'^ *attributes (#\d+) = \{.*"amdgpu-no-implicitarg-ptr"', re.MULTILINE
)
_ENTRY = re.compile(r"^  - ", re.MULTILINE)
_ENTRY_NAME = re.compile(r"^    \.name: +(.*)$", re.MULTILINE)
_ARGUMENT = re.compile(
    r"^      - \.offset: +(\d+)\n        \.size: +\d+\n        \.value_kind: +(hidden_\w+)\n",
    re.MULTILINE,
)
_FIRST, _SIZE, _DISTANCE = "hidden_block_count_x", "hidden_dynamic_lds_size", 120


def llc_output(machine_ir: str, arch: str, kind: str, run: Callable[[str], bytes]) -> bytes:
    """llc's output for machine IR, with the hidden arguments that it lacks.

    `run` runs llc for a kind of output, `asm` or `obj`; so does `kind` name it. Raises InputError
    if an object file needs llvm-mc and it is missing.
    """
    kernels = kernels_with_dynamic_memory(machine_ir)
    if not kernels:
        return run(kind)
    made = run("asm").decode()
    assembly = with_dynamic_sizes(made, kernels)
    if kind == "asm":
        return assembly.encode()
    return run(kind) if assembly == made else assembled_file(assembly, arch)


def kernels_with_dynamic_memory(machine_ir: str) -> frozenset[str]:
    """The kernels with hidden arguments that use dynamic local memory."""
    llvm_ir = machine_ir.partition("\n...\n")[0]
    arrays = _ARRAY.findall(llvm_ir)
    if not arrays:
        return frozenset()
    used = re.compile("|".join(rf"{re.escape(array)}(?![\w.$-])" for array in arrays))
    without = set(_WITHOUT_HIDDEN.findall(llvm_ir))
    found = set()
    for kernel in _KERNEL.finditer(llvm_ir):
        if without.intersection(kernel[2].split()):
            continue
        end = llvm_ir.find("\n  }\n", kernel.end())
        if used.search(llvm_ir, kernel.end(), end if end >= 0 else len(llvm_ir)):
            name = kernel[1][1:]
            found.add(unescaped(name[1:-1]) if name.startswith('"') else name)
    return frozenset(found)


def with_dynamic_sizes(assembly: str, kernels: Collection[str]) -> str:
    """The assembly, with the hidden argument in the metadata of each of these kernels."""
    start = assembly.find("\t.amdgpu_metadata\n")
    if start < 0 or not kernels:
        return assembly
    bounds = [match.start() for match in _ENTRY.finditer(assembly, start)]
    # From the last entry on, so that places before it stay.
    for at, end in reversed(list(zip(bounds, [*bounds[1:], len(assembly)], strict=True))):
        name = _ENTRY_NAME.search(assembly, at, end)
        if name is None:
            continue
        # Whatever it would be elsewhere, a number or `!str inf`, here it is a text.
        plain = yaml.compose(name[1])
        if plain is not None and plain.value in kernels:
            assembly = assembly[:at] + _with_size(assembly[at:end]) + assembly[end:]
    return assembly


def _with_size(entry: str) -> str:
    hidden = {match[2]: match for match in _ARGUMENT.finditer(entry)}
    if _FIRST not in hidden or _SIZE in hidden:
        return entry
    offset = int(hidden[_FIRST][1]) + _DISTANCE
    before = max((m for m in hidden.values() if int(m[1]) < offset), key=lambda m: int(m[1]))
    added = (
        f"      - .offset:         {offset}\n"
        "        .size:           4\n"
        f"        .value_kind:     {_SIZE}\n"
    )
    return entry[: before.end()] + added + entry[before.end() :]
