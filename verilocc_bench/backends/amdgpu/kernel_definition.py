"""The LLVM IR that llc needs to write the descriptor of a kernel, where machine IR has none.

Without LLVM IR llc takes every function for one that others call: the descriptor of a kernel says
then that it needs no registers. An empty definition makes it a kernel, and its registers,
stack and local memory follow from its code. The arguments of the kernel stay unknown.
"""

from __future__ import annotations

from verilocc_bench.backends.amdgpu.kernel import MachineCode
from verilocc_bench.backends.amdgpu.read import MirFile

UNKNOWN_ARGUMENTS = (
    "the machine IR has no LLVM IR: the size and kinds of the kernel's arguments, and the values "
    "that it finds in registers at its start, are missing in its descriptor and metadata"
)


def lacks_definition(code: MachineCode) -> bool:
    """True for a kernel whose machine IR comes without LLVM IR."""
    is_kernel = code.machine.info.get("isEntryFunction") == "true"
    return is_kernel and code.machine.name not in code.module.calling_conventions


def with_definitions(text: str) -> str:
    """Machine IR with a definition of each of its functions, which have no definition yet."""
    lines = ["--- |"]
    for name, frame in MirFile(text, "the assigned machine IR").frames.items():
        is_kernel = frame.settings("machineFunctionInfo").get("isEntryFunction") == "true"
        convention = "amdgpu_kernel " if is_kernel else ""
        quoted = "".join(
            chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}"
            for byte in name.encode()
        )
        lines += [f'  define {convention}void @"{quoted}"() {{', "    unreachable", "  }"]
    return "\n".join([*lines, "...", text])
