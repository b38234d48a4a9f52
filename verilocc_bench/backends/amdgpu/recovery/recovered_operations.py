"""Instructions of the assembler to instructions of machine IR.

LLVM's tables give the opcode of machine IR and its operands. Some facts stand in no
table: which instructions leave a part of their destination as it was, and which read
lanes that EXEC does not select. They follow AMD's "Instinct MI300 Instruction Set
Architecture", sections 6.3 (SDWA), 6.4 (DPP), 7 (matrix) and 11 (data share).
"""

from __future__ import annotations

import re
from dataclasses import replace

from verilocc_bench.backends.amdgpu.recovery.assembler import AssembledInstruction
from verilocc_bench.backends.amdgpu.recovery.records import (
    RecoveredInstruction,
    RecoveredOperand,
    units_of,
)
from verilocc_bench.errors import RejectedKernel
from verilocc_bench.targets.amdgpu_classes import fixed_units, is_outside_allocation
from verilocc_bench.targets.amdgpu_instructions import EncodedOpcode, opcodes_encoded_as

_ENCODED_REGISTER = re.compile(r"_(vi|gfxpre11|gfx9plus)$")
_BRANCH = re.compile(r"S_C?BRANCH_?\w*")
_REFUSED = {
    re.compile(r"S_(SWAPPC|CALL|SETPC|RFE|GETPC|CBRANCH_G_FORK|CBRANCH_I_FORK|CBRANCH_JOIN)\w*"):
        "computed-jump",
    re.compile(r"S_SET_GPR_IDX\w*|[SV]_MOVREL\w*"): "indexed-registers",
    re.compile(r"S_(SETVSKIP|CBRANCH_CDBG\w*|TRAP|SENDMSG\w*)"): "unmodelled-state",
    re.compile(r"SCRATCH_\w*"): "scratch-memory",
}  # fmt: skip
_ALL_LANES = re.compile(
    r"V_(SM?FMAC|MFMA|SMFMAC|READLANE|READFIRSTLANE|PERMLANE|ACCVGPR)\w*"
    r"|DS_(B?PERMUTE|SWIZZLE)\w*|\w+_dpp"
)
# What gfx9 brought with op_sel writes one half of its destination: its low one without op_sel.
_KEEPS = re.compile(
    r"S_CMOV\w*|\w+_D16(_HI)?(_\w+)?|V_\w*MIX(LO|HI)\w*|V_PK_FMAC_F16\w*|V_CVT_PKACCUM\w*"
    r"|V_(MAD|FMA|DIV_FIXUP|INTERP_P2)_[FIU]16_gfx9\w*|V_(MIN3|MAX3|MED3)_[FIU]16\w*"
    r"|V_(ADD|SUB)_I16\w*|V_MAD[AM]K_F16\w*|V_SAT_PK_U8_I16\w*|V_CVT_NORM_[IU]16_F16\w*"
)
_SHORT_SIGNED = re.compile(r"S_(C?MOVK|ADDK|MULK|CMPK_\w+)_I32")
_HIGH_HALF = re.compile(r"op_sel:\[[01],(?:[01],){0,2}1\]")
_SCALAR_LOAD = re.compile(r"S_(BUFFER_)?LOAD_DWORDX\w+")
_DPP_WHOLE = re.compile(r"quad_perm:|row_ror:|row_mirror|row_half_mirror|row_newbcast:|wave_ror:")


def recover_instruction(
    assembled: AssembledInstruction, address: int, *, full_waves: bool = True
) -> RecoveredInstruction:
    """The instruction in LLVM's machine IR.

    `full_waves` is false if a wave may have less than 64 work-items.
    Raises RejectedKernel with the instruction for an opcode without a counterpart there,
    for one that cannot be analysed, and for unknown registers.
    """
    chosen = _opcode(assembled)
    for pattern, kind in _REFUSED.items():
        if pattern.fullmatch(chosen.name):
            raise RejectedKernel(kind, f"{assembled.text}, at 0x{address:x}")
    operands = _operands(assembled, chosen, full_waves)
    target = None
    if _BRANCH.fullmatch(chosen.name):
        (distance,) = assembled.operands
        assert isinstance(distance, int)
        target = address + 4 + 4 * ((distance + 0x8000) % 0x10000 - 0x8000)
    text = assembled.text
    return RecoveredInstruction(
        address=address,
        text=text,
        encoding=assembled.encoding,
        opcode=chosen.name,
        form=chosen.form,
        operands=operands,
        target=target,
        keeps_lanes=(
            ("UNUSED_PRESERVE" in text and "dst_sel:DWORD" not in text)
            or _KEEPS.fullmatch(chosen.name) is not None
            or (_HIGH_HALF.search(text) is not None and "_pk_" not in text)
        ),
        reads_all_lanes=_ALL_LANES.fullmatch(chosen.name) is not None,
    )


def _opcode(assembled: AssembledInstruction) -> EncodedOpcode:
    encoding = assembled.opcode
    found: tuple[EncodedOpcode, ...] = ()
    if encoding.startswith("DS_"):  # gfx9 needs no M0 there
        found = opcodes_encoded_as(encoding.removesuffix("_vi") + "_gfx9_vi")
    found = found or opcodes_encoded_as(encoding)
    if not found:
        raise RejectedKernel("unknown-opcode", f"{assembled.text}: {encoding} has no machine IR")
    if len(found) == 1:
        return found[0]
    # Of a matrix operation's two opcodes one ties the accumulator to the result; the other
    # one is for an accumulator elsewhere, and its result must not overlap any source.
    in_place = assembled.operands[0] == assembled.operands[3]
    tied = [each for each in found if any(o.tied_to is not None for o in each.form.operands)]
    chosen = tied if in_place else [each for each in found if each not in tied]
    if len(chosen) != 1:
        raise RejectedKernel("unknown-opcode", f"{assembled.text}: {encoding} is ambiguous")
    return chosen[0]


def _operands(
    assembled: AssembledInstruction, opcode: EncodedOpcode, full_waves: bool
) -> tuple[RecoveredOperand, ...]:
    form, values = opcode.form, assembled.operands
    if values[len(form.operands) :] == (0,):
        values = values[:-1]  # buffer atomics: a bit that only the assembler's form has
    last = form.operands[-1] if form.operands else None
    if last is not None and last.tied_to is not None:
        # The assembler may leave out an operand that only repeats a definition, or write 0.
        if len(values) == len(form.operands) and values[-1] == 0:
            values = values[:-1]
        if len(values) == len(form.operands) - 1:
            values = (*values, values[last.tied_to])
    if len(values) != len(form.operands):
        raise RejectedKernel(
            "operand-form",
            f"{assembled.text}: {len(values)} operands, {opcode.name} has {len(form.operands)}",
        )
    old_is_dead = opcode.name.endswith("_dpp") and _overwrites_all(assembled.text, full_waves)
    # A load is done again after a page fault (XNACK): it may not have overwritten its address.
    named = [units_of(_ENCODED_REGISTER.sub("", v)) for v in values if isinstance(v, str)]
    several = _SCALAR_LOAD.fullmatch(opcode.name) is not None
    apart = int(several and set(named[0]).isdisjoint(*named[1:]))
    operands = []
    for place, (value, shape) in enumerate(zip(values, form.operands, strict=True)):
        if isinstance(value, int):
            if _SHORT_SIGNED.fullmatch(opcode.name):  # the assembler counts from 0 to 65535
                value = (value + 0x8000) % 0x10000 - 0x8000  # noqa: PLW2901
            operands.append(RecoveredOperand(None, value))
            continue
        register = _ENCODED_REGISTER.sub("", value)
        if fixed_units(register) is None and not is_outside_allocation(register):
            raise RejectedKernel("unknown-register", f"{assembled.text}: {register}")
        operand = RecoveredOperand(
            register,
            None,
            units_of(register),
            definition=place < form.definitions,
            class_name=shape.class_name,
            early_clobber=shape.early_clobber or place < apart,
            tied_to=shape.tied_to,
        )
        if old_is_dead and shape.tied_to is not None:
            operand = replace(operand, undef=True)
        operands.append(operand)
    for names, definition in ((form.implicit_definitions, True), (form.implicit_uses, False)):
        operands += [
            RecoveredOperand(name, None, units_of(name), definition=definition, implicit=True)
            for name in names
        ]
    return tuple(operands)


def _overwrites_all(text: str, full_waves: bool) -> bool:
    """True if a DPP operation writes every lane that EXEC selects, if EXEC selects all.

    Without `bound_ctrl` a lane stays as it was where the lane that it reads does not run.
    """
    full = "row_mask:0xf" in text and "bank_mask:0xf" in text
    shifts = full_waves and _DPP_WHOLE.search(text) is not None
    return full and ("bound_ctrl:" in text or shifts)
