"""What recovered machine IR must pass before it is a kernel like others.

1. llc's machine verifier accepts it, with virtual registers.
2. The verifier accepts the registers of the machine code as an answer.
3. With these registers in it, llc's machine verifier accepts it again.
4. Assembled as it is, it gives the machine code: the same instructions with the same
   bytes, or with other bytes for the same text (some instructions have two encodings).
5. The descriptor says the same of modes and of registers at entry.
"""

from __future__ import annotations

from dataclasses import fields

from verilocc_bench.backends.amdgpu.machine import MachineFunction
from verilocc_bench.backends.amdgpu.normalize import NormalizedMachineFunction
from verilocc_bench.backends.amdgpu.recovery.records import RecoveredInstruction
from verilocc_bench.backends.amdgpu.recovery.recover import RecoveredCode, read_instructions
from verilocc_bench.backends.amdgpu.tools import LlcFailed, run_llc
from verilocc_bench.backends.amdgpu.write_back import write_assignment
from verilocc_bench.errors import InputError, RejectedKernel
from verilocc_bench.ir import Assignment
from verilocc_bench.machine.code_object import Descriptor, load_code_object, section_of

_CHECK = ("-run-pass=none", "-verify-machineinstrs")
_EMIT = ("-O3", "-start-after=branch-relaxation")
"""No pass of LLVM's runs that would change an instruction."""

_OTHER_SIZES = {"kernarg_bytes", "vector_registers", "accumulator_offset"}
"""What a descriptor may say otherwise: llc counts for itself."""

GATE_OPTIONS = {"llc, check": _CHECK, "llc, encode": _EMIT}
"""The options of llc by what it is run for."""


def check_virtual_registers(recovered: RecoveredCode) -> None:
    """Raises RejectedKernel, `llc-virtual`, if llc's verifier refuses the machine IR."""
    _accepted(recovered.text, recovered.arch, "llc-virtual")


def check_encoding(
    recovered: RecoveredCode,
    machine: MachineFunction,
    normalized: NormalizedMachineFunction,
    label: Assignment,
) -> int:
    """How many instructions get another encoding with the same text.

    `label` has the registers of the machine code. Raises RejectedKernel: `llc-physical`
    if llc's verifier refuses the machine IR with these registers, `other-code` if it does
    not give the code and its descriptor.
    """
    try:
        text = write_assignment(recovered.text, machine, normalized, label).text
    except InputError as error:
        raise RejectedKernel("llc-physical", error.message) from None
    _accepted(text, recovered.arch, "llc-physical")
    try:
        data = run_llc(text, recovered.arch, "obj", _EMIT)
    except LlcFailed as failure:
        raise RejectedKernel("llc-physical", failure.message) from None
    _check_descriptor(recovered, load_code_object(data).kernel(recovered.name).descriptor)
    code = section_of(data, ".text")[recovered.start :]
    made = read_instructions(code, recovered.arch, recovered.start)
    return _other_encodings([i for block in recovered.blocks for i in block.instructions], made)


def _check_descriptor(recovered: RecoveredCode, made: Descriptor) -> None:
    for name in sorted({field.name for field in fields(Descriptor)} - _OTHER_SIZES):
        own, new = getattr(recovered.descriptor, name), getattr(made, name)
        if own != new:
            what = name.replace("_", " ")
            raise RejectedKernel("other-code", f"the descriptor's {what}: {own}, llc makes {new}")


def _accepted(text: str, arch: str, kind: str) -> None:
    try:
        run_llc(text, arch, "asm", _CHECK)
    except LlcFailed as failure:
        raise RejectedKernel(kind, failure.message) from None


def _other_encodings(own: list[RecoveredInstruction], made: list[RecoveredInstruction]) -> int:
    places = {instruction.address: n for n, instruction in enumerate(own)}
    new_places = {instruction.address: n for n, instruction in enumerate(made)}
    others = 0
    if len(made) < len(own):
        raise RejectedKernel("other-code", f"{len(made)} instructions for {len(own)}")
    for old, new in zip(own, made, strict=False):
        if old.target is not None and old.opcode == new.opcode:
            if new.target is None or places[old.target] != new_places.get(new.target):
                raise RejectedKernel(
                    "other-code", f"{old.text}, at 0x{old.address:x}: leads elsewhere"
                )
        elif old.encoding != new.encoding:
            if old.text != new.text:
                place = f"{old.text}, at 0x{old.address:x}"
                raise RejectedKernel("other-code", f"{place}: llc makes {new.text}")
            others += 1
    return others
