"""The common parts of gfx90a and gfx942: register files, occupancy, banks.

Sources
- "AMD Instinct MI200" and "AMD Instinct MI300" Instruction Set Architecture
  reference guides, section 3 (kernel state: 256 VGPRs and 256 AGPRs a lane
  in a unified file of 512, 102 SGPRs, VCC as SGPR 106 and 107).
- LLVM 22, llvm/lib/Target/AMDGPU: SIRegisterInfo.td (classes and tuples),
  Utils/AMDGPUBaseInfo.cpp and GCNSubtarget.cpp (granularities, waves).
- Register use: the code object's accum_offset has a granularity of 4
  (AMDGPU user guide, "Code Object V3 Kernel Descriptor", GFX90A).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from verilocc_bench.ir import Instruction, VirtualLanes
from verilocc_bench.targets.amdgpu_scheduling import stays_behind, wait_states
from verilocc_bench.targets.target import MaskChange, Target, TargetFile, round_up

VECTOR_REGISTERS = 512  # per SIMD lane, VGPRs and AGPRs together
VECTOR_GRANULARITY = 8
ACCUMULATOR_OFFSET_GRANULARITY = 4
SCALAR_REGISTERS = 800  # per SIMD
SGPR_ALLOCATION_GRANULARITY = 16
RESERVED_SCALAR_REGISTERS = 6  # VCC, FLAT_SCRATCH and XNACK_MASK are counted with the SGPRs
MAXIMUM_WAVES = 8
VECTOR_BANKS = 4

TERMINATORS = re.compile(
    r"S_C?BRANCH\w*|S_ENDPGM\w*|S_SETPC_B64\w*|SI_RETURN\w*|SI_TCRETURN\w*|SI_CS_CHAIN\w*|\w+_term(\.\w+)?"
)
# No register class contains EXEC, so the text does not name it: a 64-bit scalar
# operation without a definition writes EXEC.
_MASK_WRITER = re.compile(
    r"S_(?!CMP|BITCMP|SETPC|SWAPPC|STORE|SCRATCH|BUFFER|ATOMIC)\w+_B64(_term)?"
)
# 32-bit encodings (VOPC, VOP2) read and write their mask in VCC alone; with any
# other register it takes the 64-bit one (ISA guides, section "VOP3").
_SHORT_WITH_VCC = re.compile(r"V_(CMP|CNDMASK|ADDC|ADD_CO|SUBB|SUB_CO|SUBREV_CO)\w*")
_WRITING = {
    "S_OR_B64": MaskChange.WIDENS,
    "S_OR_B64_term": MaskChange.WIDENS,
    "S_AND_B64": MaskChange.NARROWS,
    "S_AND_B64_term": MaskChange.NARROWS,
    "S_ANDN2_B64": MaskChange.NARROWS,
    "S_ANDN2_B64_term": MaskChange.NARROWS,
}
_SAVING = {
    "S_OR_SAVEEXEC_B64": MaskChange.WIDENS,
    "S_AND_SAVEEXEC_B64": MaskChange.NARROWS,
}
MASK_MARK = ".exec"
"""The suffix for the opcode of an instruction that writes EXEC in an unusual way."""

_MASK_BY_NAME = re.compile(
    r"\w*(SAVEEXEC|WREXEC|CMPX|INIT_EXEC|INIT_WHOLE_WAVE|KILL_I1|WQM|WWM)\w*"
)


def _reads_once(opcode: str, file: str) -> bool:
    """A vector instruction reads one scalar operand, and V_DIV_SCALE scales what it reads twice."""
    scalar = file in ("s", "vcc")
    return opcode.startswith("V_DIV_SCALE_") or (scalar and opcode.startswith("V_"))


def vector_use(used: Mapping[str, int]) -> int:
    """The VGPRs, or with AGPRs: the VGPRs rounded up to 4, plus the AGPRs."""
    vgprs, agprs = used.get("v", 0), used.get("a", 0)
    return round_up(vgprs, ACCUMULATOR_OFFSET_GRANULARITY) + agprs if agprs else vgprs


def occupancy_waves(used: Mapping[str, int]) -> int:
    """Waves per SIMD that the registers allow, at most 8; 0 if they exceed the file."""
    waves = MAXIMUM_WAVES
    if vector := vector_use(used):
        waves = min(waves, VECTOR_REGISTERS // round_up(vector, VECTOR_GRANULARITY))
    scalar = round_up(used.get("s", 0) + RESERVED_SCALAR_REGISTERS, SGPR_ALLOCATION_GRANULARITY)
    return min(waves, SCALAR_REGISTERS // scalar)


def mask_change(instruction: Instruction) -> MaskChange:
    """The change that an instruction may make to EXEC; any change if the opcode is not known."""
    opcode = instruction.opcode
    if opcode in _SAVING:
        return _SAVING[opcode]
    if _MASK_WRITER.fullmatch(opcode) and not instruction.definitions:
        return _WRITING.get(opcode, MaskChange.ANY)
    if opcode.endswith(MASK_MARK) or _MASK_BY_NAME.fullmatch(opcode):
        return MaskChange.ANY
    return MaskChange.NONE


def saves_mask(instruction: Instruction) -> int | None:
    """The virtual register that an instruction copies EXEC to, which the text does not name."""
    if instruction.opcode == "COPY" and not instruction.uses and len(instruction.definitions) == 1:
        (definition,) = instruction.definitions
        if isinstance(definition.location, VirtualLanes) and definition.location.count == 2:
            return definition.location.register
    return None


def mask_changes(instructions: Sequence[Instruction]) -> list[MaskChange]:
    """The changes of EXEC by the instructions of a block.

    S_MOV_B64_term, with which LLVM ends a block where an `if` begins, may do anything, unless the
    block says what it writes: EXEC as it is, ANDed with a condition.
    """
    changes: list[MaskChange] = []
    saved, narrowed = set[int](), set[int]()
    for each in instructions:
        change = mask_change(each)
        read = [
            use.location.register if isinstance(use.location, VirtualLanes) else -1
            for use in each.uses
        ]
        if each.opcode == "S_MOV_B64_term" and len(read) == 1 and read[0] in narrowed:
            change = MaskChange.NARROWS
        changes.append(change)
        if change:
            saved.clear()
            narrowed.clear()
        written = {
            definition.location.register
            for definition in each.definitions
            if isinstance(definition.location, VirtualLanes)
        }
        narrows = (each.opcode == "S_AND_B64" and not saved.isdisjoint(read)) or (
            each.opcode == "S_ANDN2_B64" and not saved.isdisjoint(read[:1])
        )
        saved -= written
        narrowed -= written
        if narrows and len(written) == 1:
            narrowed |= written
        elif (copied := saves_mask(each)) is not None:
            saved.add(copied)
    return changes


def make_target(name: str, *sources: str) -> Target:
    """A CDNA 2 or CDNA 3 target."""
    return Target(
        name=name,
        vendor="amd",
        files=(
            TargetFile("v", 256, "V", tuple_alignment=2, banks=VECTOR_BANKS),
            TargetFile("a", 256, "A", tuple_alignment=2, banks=VECTOR_BANKS),
            TargetFile("s", 102, "S", tuple_alignment=4),
            TargetFile("vcc", 2, "C", tuple_alignment=2, unit_names=("vcc_lo", "vcc_hi")),
        ),
        vector_files=("v", "a"),
        vector_use=vector_use,
        occupancy=occupancy_waves,
        occupancy_unit="waves",
        maximum_occupancy=MAXIMUM_WAVES,
        sources=sources,
        # Nearly every scalar class takes VCC too: S; G is an SGPR and no VCC.
        class_letters={"CS": "S", "S": "G"},
        copy_opcodes=frozenset({"COPY"}),
        short_forms=((_SHORT_WITH_VCC, "vcc"),),
        stays_behind=stays_behind,
        wait_states=wait_states,
        terminators=TERMINATORS,
        constant_opcodes=frozenset({"S_MOV_B32", "S_MOV_B64", "V_MOV_B32", "AV_MOV_B32_IMM"}),
        move_sources={
            "v": frozenset({"v", "a", "s", "vcc"}),
            "a": frozenset({"v", "a"}),
            "s": frozenset({"s", "vcc"}),
            "vcc": frozenset({"s", "vcc"}),
        },
        spill_files=frozenset({"v", "a", "s", "vcc"}),
        masked_files=frozenset({"v", "a"}),
        mask_change=mask_change,
        mask_changes=mask_changes,
        saves_mask=saves_mask,
        ties_equal_operands=True,
        reads_once=_reads_once,
    )
