"""Refuses machine functions to which the rules of allocation do not apply, by name.

- MIR for another architecture: the triple, `target-cpu`, waves of another size, dynamic
  VGPRs, more LDS than there is.
- Opcodes that the target lacks in machine IR before allocation, and operands that LLVM's
  tables do not allow (`operand_checks`). After this, normalization refuses reads of
  physical registers that hold nothing (`undefined_reads`).
- MIR from another place in the pipeline: in SSA form, before tied operands became
  one register, or with assigned registers.
- Functions that neither end the program, nor return to their caller by SI_RETURN, nor
  leave that to another function by a tail call: chains, and returns to an address in a
  register.
- Calls whose register mask is not known, and tail calls that read what they have to
  restore first.
- Registers that are counted from an operand on (S_MOVRELS, S_SET_GPR_IDX): an edit could move
  that operand alone.
- Jumps to an address in a register, and branches within inline assembly (INLINEASM_BR): code on
  such an edge of the control flow graph has no place.
- Whole-wave and whole-quad mode: they write lanes of a register that are live outside the
  control flow graph's liveness. LLVM sets registers aside for the first.
- Opcodes that keep a part of their destination and do not name it as a use: LLVM's tables tie
  none of them.
"""

from __future__ import annotations

import re

from verilocc_bench.backends.amdgpu.machine import (
    MachineFunction,
    MachineInstruction,
    MachineModule,
    MachineOperandFlag,
)
from verilocc_bench.backends.amdgpu.operand_checks import operand_fault
from verilocc_bench.errors import InputError
from verilocc_bench.ir import FixedUnits
from verilocc_bench.targets import Target
from verilocc_bench.targets.amdgpu_budget import LDS_BYTES
from verilocc_bench.targets.amdgpu_calls import destroyed_units
from verilocc_bench.targets.amdgpu_classes import class_bases, fixed_units
from verilocc_bench.targets.amdgpu_instructions import (
    InstructionForm,
    instruction_form,
    targets_with,
)

_EXPECTED = "expected MIR from llc -stop-before=greedy"
_OTHER_FEATURES = re.compile(r"\+(wavefrontsize(16|32)|dynamic-vgpr.*)")
_DYNAMIC_REGISTERS = ("amdgpu-dynamic-vgpr-block-size", "dynamicVGPRBlockSize")
_LDS_SIZES = ("amdgpu-lds-size", "ldsSize")
_LEADING_NUMBER = re.compile(r"[0-9]+")
_OTHER_CONVENTIONS = re.compile(r"amdgpu_cs_chain\w*|amdgpu_gfx_whole_wave")
_OTHER_ENDS = re.compile(
    r"S_SETPC_B64(_return\w*)?|SI_TCRETURN_(?!GFX$)\w+|SI_CS_CHAIN_TC\w*"
    r"|SI_WHOLE_WAVE_FUNC_RETURN"
)
TAIL_CALLS = frozenset({"SI_TCRETURN", "SI_TCRETURN_GFX"})
_INDEXED = re.compile(r"S_MOVREL[SD]\w*|S_SET_GPR_IDX\w*|V_MOV_B32_indirect\w*")
_WHOLE_WAVE = re.compile(
    r"(ENTER|EXIT)_(STRICT_W[WQ]M|PSEUDO_WM)|STRICT_W[WQ]M|SI_INIT_WHOLE_WAVE"
    r"|SI_WHOLE_WAVE_FUNC_(SETUP|RETURN)|SI_(SPILL|RESTORE)_S32_(TO|FROM)_VGPR"
)
_KEEPS = re.compile(r"S_CMOVK?_[BI](32|64)|V_PK_FMAC_F16_\w+|V_CVT_PKACCUM_U8_F32_\w+")


def refuse_unsupported(
    machine: MachineFunction, module: MachineModule, target: Target, source: str
) -> None:
    """Raises InputError with the line for a function that is not supported."""
    _Check(machine, module, target, source).run()


class _Check:
    def __init__(
        self, machine: MachineFunction, module: MachineModule, target: Target, source: str
    ) -> None:
        self.machine, self.module = machine, module
        self.target, self.source = target, source
        self.forms: dict[str, InstructionForm] = {}

    def error(self, message: str, line: int | None = None) -> InputError:
        line = self.machine.line if line is None else line
        return InputError(message, source=self.source, line=line)

    def run(self) -> None:
        self.check_target()
        self.check_stage()
        self.check_kind()
        for block in self.machine.blocks:
            for instruction in block.instructions:
                self.check_instruction(instruction)
                for part in instruction.bundled:
                    if part.register_mask:
                        raise self.error("a call in a bundle is not supported", part.line)
                    self.check_instruction(part)

    def check_target(self) -> None:
        triple = self.module.triple
        if triple is not None and not triple.startswith("amdgcn"):
            raise self.error(f"expected MIR for {self.target.name}, this is for {triple!r}")
        attributes = self.module.attributes.get(self.machine.name, {})
        cpu = attributes.get("target-cpu", self.target.name)
        if cpu != self.target.name:
            raise self.error(f"expected MIR for {self.target.name}, this is for {cpu}")
        for feature in attributes.get("target-features", "").split(","):
            if _OTHER_FEATURES.fullmatch(feature):
                raise self.error(f"the target feature {feature} is not supported")
        for key, value in (*attributes.items(), *self.machine.info.items()):
            if key in _DYNAMIC_REGISTERS and value not in ("", "0", "false"):
                raise self.error(f"dynamic VGPRs are not supported: {key}")
            found = _LEADING_NUMBER.match(value) if key in _LDS_SIZES else None
            size = int(found[0][:18]) if found else 0
            if size > LDS_BYTES:
                raise self.error(f"{key} is {size}: {self.target.name} has {LDS_BYTES} bytes")

    def check_stage(self) -> None:
        machine = self.machine
        if machine.is_ssa:
            raise self.error(f"the function is in SSA form: {_EXPECTED}")
        if machine.no_virtual_registers is None:
            # Without the key, LLVM also decides by the registers in the text.
            assigned = not machine.classes and any(
                fixed_units(operand.name)
                for block in machine.blocks
                for instruction in block.instructions
                for _, operand in instruction.operands
            )
        else:
            assigned = machine.no_virtual_registers
        if assigned:
            raise self.error(f"the registers of {machine.name!r} are assigned already: {_EXPECTED}")
        for name, line in machine.whole_wave.items():
            raise self.error(f"%{name}: whole-wave-mode registers are not supported", line)
        if names := machine.info.get("wwmReservedRegs"):
            raise self.error(f"registers reserved for whole-wave mode are not supported: {names}")

    def check_kind(self) -> None:
        for key, what in (
            ("isChainFunction", "chain functions"),
            ("isWholeWaveFunction", "whole-wave functions"),
        ):
            if self.machine.info.get(key) == "true":
                raise self.error(f"{what} are not supported: {key}")
        convention = self.module.calling_conventions.get(self.machine.name, "")
        if _OTHER_CONVENTIONS.fullmatch(convention):
            raise self.error(f"functions of calling convention {convention} are not supported")

    def check_instruction(self, instruction: MachineInstruction) -> None:
        opcode, line = instruction.opcode, instruction.line
        if instruction.register_mask or opcode in TAIL_CALLS:
            self.check_call(instruction)
        form = self.forms.get(opcode)
        if form is None:
            form = self.forms[opcode] = self.known_form(opcode, line)
        for use, definition in form.ties:
            self.check_tie(use, definition, instruction)
        if fault := operand_fault(instruction, form, self.machine.classes):
            raise self.error(fault, line)
        if opcode.startswith("S_WQM") and instruction.operands[0][1].name.startswith("exec"):
            raise self.error(f"whole-quad mode is not supported: {opcode}", line)
        if _KEEPS.fullmatch(opcode):
            own, *others = (operand for _, operand in instruction.operands)
            same = [o for o in others if (o.name, o.virtual) == (own.name, own.virtual)]
            if all(o.sub_register not in (None, own.sub_register) for o in same):
                message = f"{opcode} keeps a part of its destination: expected it as a use, too"
                raise self.error(message, line)

    def check_call(self, instruction: MachineInstruction) -> None:
        mask, line = instruction.register_mask, instruction.line
        destroyed = destroyed_units(mask)
        if destroyed is None:
            raise self.error(f"a call with an unknown register mask: {mask[:40]}", line)
        if instruction.opcode in TAIL_CALLS:
            self.check_tail_call(instruction, destroyed)
        elif instruction.opcode != "SI_CALL":
            raise self.error(f"calls by {instruction.opcode} are not supported", line)

    def check_tail_call(
        self, instruction: MachineInstruction, destroyed: tuple[FixedUnits, ...]
    ) -> None:
        """Checks that a tail call reads only registers that the function need not restore.

        LLVM restores the registers that callers count on just before the tail call. A value
        in one of them would be lost there, so LLVM's class for the address leaves them out.
        """
        free = {(units.file, units.first + n) for units in destroyed for n in range(units.count)}
        for _, operand in instruction.operands:
            places = [fixed_units(operand.name)]
            if operand.virtual:
                if MachineOperandFlag.IMPLICIT in operand.flags:
                    continue  # a token of LLVM's, which no machine code reads
                class_name = self.machine.classes.get(operand.name, "")
                width, bases = class_bases(class_name) or (1, {})
                places = [
                    FixedUnits(file, base, width)
                    for file, ranges in bases.items()
                    for each in ranges
                    for base in each
                ]
            units = [(p.file, p.first + n) for p in places if p is not None for n in range(p.count)]
            if not free.issuperset(units):
                name = f"%{operand.name}" if operand.virtual else f"${operand.name}"
                raise self.error(
                    f"{instruction.opcode} reads {name}, which may be a register to restore before",
                    instruction.line,
                )

    def known_form(self, opcode: str, line: int) -> InstructionForm:
        """The operands of an opcode that is supported; raises InputError for another one."""
        if opcode in ("PHI", "G_PHI"):
            raise self.error(f"PHI: {_EXPECTED}", line)
        if _WHOLE_WAVE.fullmatch(opcode):
            mode = "whole-quad" if "WQM" in opcode else "whole-wave"
            raise self.error(f"{mode} mode is not supported: {opcode}", line)
        if _INDEXED.fullmatch(opcode):
            raise self.error(f"registers counted from an operand are not supported: {opcode}", line)
        if opcode == "INLINEASM_BR":
            raise self.error("branches within inline assembly are not supported", line)
        if _OTHER_ENDS.fullmatch(opcode):
            raise self.error(f"a function that ends in {opcode} is not supported", line)
        targets, form = targets_with(opcode), instruction_form(opcode)
        if form is None:
            raise self.error(
                f"{self.target.name} has no {opcode} in machine IR before allocation", line
            )
        if self.target.name not in targets:
            raise self.error(
                f"expected MIR for {self.target.name}: {opcode} is an instruction of "
                f"{targets[0]}, not of {self.target.name}",
                line,
            )
        return form

    def check_tie(self, use: int, definition: int, instruction: MachineInstruction) -> None:
        """Checks a tie: after LLVM's two-address pass both operands name one register."""
        operands = dict(instruction.operands)
        tied = [operands[place] for place in (use, definition) if place in operands]
        if len({(each.name, each.virtual, each.sub_register) for each in tied}) > 1:
            raise self.error(
                f"operand {use} of {instruction.opcode} is tied to operand {definition}, and has "
                f"another register: {_EXPECTED}",
                instruction.line,
            )
