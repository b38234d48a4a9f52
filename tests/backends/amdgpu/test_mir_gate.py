"""The gate: each fault in a normalized text is told with the line of the machine IR.

No judge can see such a fault: judges know the text alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from verilocc_bench.backends.amdgpu import normalize
from verilocc_bench.backends.amdgpu.machine import MachineFunction, MachineModule
from verilocc_bench.backends.amdgpu.mir_gate import check_against_mir, normalized_problem
from verilocc_bench.backends.amdgpu.read import parse_mir
from verilocc_bench.errors import InputError
from verilocc_bench.ir import (
    BaseRange,
    FixedUnits,
    Function,
    Guard,
    Instruction,
    Operand,
    VirtualLanes,
    print_function,
)
from verilocc_bench.selftest.renumber import renumber
from verilocc_bench.targets import get_target

TEXT = """\
--- |
  define amdgpu_kernel void @f() #0 { ret void }
  attributes #0 = { "amdgpu-flat-work-group-size"="1,256" "amdgpu-waves-per-eu"="3,4" }
...
---
name: f
registers:
  - { id: 0, class: vreg_64_align2 }
  - { id: 1, class: vgpr_32 }
  - { id: 2, class: vreg_256_align2 }
  - { id: 3, class: sreg_64_xexec }
  - { id: 4, class: av_32 }
  - { id: 5, class: sreg_32_xm0_xexec }
machineFunctionInfo:
  scratchRSrcReg: '$sgpr0_sgpr1_sgpr2_sgpr3'
  stackPtrOffsetReg: '$sgpr32'
  sgprForEXECCopy: '$sgpr100_sgpr101'
body: |
  bb.0.entry:
    successors: %bb.1(0x40000000), %bb.2(0x40000000)
    liveins: $vgpr0, $vgpr1, $vgpr40, $sgpr36_sgpr37

    %1:vgpr_32 = COPY $vgpr0
    undef %0.sub0:vreg_64_align2 = V_LSHLREV_B32_e64 2, %1, implicit $exec ; a shift of "x"
    %0.sub1:vreg_64_align2 = V_MOV_B32_e32 0, implicit $exec
    early-clobber %2:vreg_256_align2 = V_MFMA_F64_16X16X4F64_mac_vgprcd_e64 %0, %0, undef %2(tied-def 0), 0, 0, 0, implicit $mode, implicit $exec
    %5:sreg_32_xm0_xexec = S_MOV_B32 $m0
    %3:sreg_64_xexec = V_CMP_EQ_U32_e64 %1, killed %2.sub3, implicit $exec
    DBG_VALUE %1, $noreg, 0
    $sgpr30_sgpr31 = SI_CALL %3, @g, csr_amdgpu_gfx90ainsts, implicit $vgpr1, implicit-def $vgpr0
    $vcc = S_AND_B64 $exec, killed %3, implicit-def dead $scc
    $exec = S_OR_B64 $exec, $sgpr36_sgpr37, implicit-def $scc
    S_CBRANCH_VCCNZ %bb.2, implicit $vcc
    S_BRANCH %bb.1

  bb.1 (%ir-block.7):
    %4:av_32 = GLOBAL_LOAD_DWORD %0, 0, 0, implicit $exec :: (load (s32) from %ir.p, !tbaa !5)
    %1.lo16:vgpr_32 = COPY $vgpr40_lo16
    BUNDLE implicit-def $vgpr7, implicit-def $vgpr8, implicit %4, implicit $exec {
      $vgpr7 = COPY %4
      $vgpr8 = V_ADD_U32_e32 internal $vgpr7, %1, implicit $exec
    }

  bb.2:
    INLINEASM &"v_nop ; %bb.1, $vgpr9", 1, 10, def $vgpr6, 9, %0:vreg_64_align2
    $exec = COPY $sgpr36_sgpr37
    S_ENDPGM 0, implicit undef $vgpr7
...
"""  # noqa: E501


def loaded(text: str = TEXT) -> tuple[MachineFunction, MachineModule]:
    module = parse_mir(text, "x.mir")
    return module.functions[0], module


def gated(text: str = TEXT) -> Function:
    machine, module = loaded(text)
    target = get_target("gfx942")
    return normalized_problem(text, machine, module, target, source="x.mir")[1].function


def check(function: Function, text: str = TEXT) -> None:
    """What the gate says of a function in place of the normalized one."""
    machine, module = loaded(text)
    printed = print_function(renumber(function)[0])
    check_against_mir(printed, text, machine, module, get_target("gfx942"), source="x.mir")


def line_of(words: str) -> int:
    return TEXT[: TEXT.index(words)].count("\n") + 1


def test_the_function_passes() -> None:
    function = gated()
    machine, module = loaded()
    own = normalize.normalize_machine_function(machine, module, get_target("gfx942"))
    assert own.function == function
    check(function)
    text = print_function(function)
    assert text[text.index("bb0(") :] == BODY


BODY = """\
bb0(v0,v1,v40,s[36:37])->bb1,bb2
%0:V=COPY v0
%1:V2.0!=V_LSHLREV_B32 %0
%1.1=V_MOV_B32
%2:V8&=V_MFMA_F64_16X16X4F64_mac %1,%1,%2!~0
%3:S=S_MOV_B32.outside
%4:S2=V_CMP_EQ_U32 %0,%2.3
s[30:31],+v0=SI_CALL %4,+v1 ^m0
vcc=S_AND_B64 %4
S_OR_B64 s[36:37]
S_CBRANCH_VCCNZ +vcc
S_BRANCH
bb1->bb2
%5=GLOBAL_LOAD_DWORD %1
%0=COPY +%0,v40
v7&,v8=BUNDLE %5,%0
bb2
v6=INLINEASM %1
COPY.exec s[36:37]
S_ENDPGM +v7!
"""

Edit = Callable[[Instruction], Instruction]


def edited(function: Function, opcode: str, edit: Edit) -> Function:
    """The function with the instructions of that opcode changed."""
    blocks = tuple(
        replace(b, instructions=tuple(edit(i) if i.opcode == opcode else i for i in b.instructions))
        for b in function.blocks
    )
    assert blocks != function.blocks
    return replace(function, blocks=blocks)


def definition(**changes: Any) -> Edit:
    def edit(instruction: Instruction) -> Instruction:
        first, *others = instruction.definitions
        return replace(instruction, definitions=(replace(first, **changes), *others))

    return edit


def use(place: int, **changes: Any) -> Edit:
    def edit(instruction: Instruction) -> Instruction:
        uses = list(instruction.uses)
        uses[place] = replace(uses[place], **changes)
        return replace(instruction, uses=tuple(uses))

    return edit


def changed(**changes: Any) -> Edit:
    return lambda instruction: replace(instruction, **changes)


def without_use(place: int) -> Edit:
    return lambda i: replace(i, uses=i.uses[:place] + i.uses[place + 1 :])


def without_lanes(instruction: Instruction) -> Instruction:
    """The whole register in place of one lane."""
    uses = list(instruction.uses)
    location = uses[-1].location
    assert isinstance(location, VirtualLanes)
    uses[-1] = replace(uses[-1], location=VirtualLanes(location.register, 0, 8))
    return replace(instruction, uses=tuple(uses))


V9 = FixedUnits("v", 9, 1)
MFMA = "V_MFMA_F64_16X16X4F64_mac"
INSTRUCTION_FAULTS: dict[str, tuple[str, Edit, str, str]] = {
    "sub-register index lost": ("V_CMP_EQ_U32", without_lanes, "%3:sreg_64_xexec = V_CMP", "uses"),
    "another sub-register index": (
        "V_MOV_B32",
        definition(location=VirtualLanes(1, 0, 1)),
        "%0.sub1:vreg_64_align2 = ",
        "definitions",
    ),
    "undef lost from a definition": (
        "V_LSHLREV_B32",
        definition(undef=False),
        "undef %0.sub0",
        "definitions",
    ),
    "undef added to a definition": (
        "V_MOV_B32",
        definition(undef=True),
        "%0.sub1:vreg_64_align2 = ",
        "definitions",
    ),
    "undef lost from a use": (MFMA, use(2, undef=False), "early-clobber %2", "uses"),
    "undef added to a use": (MFMA, use(0, undef=True), "early-clobber %2", "uses"),
    "tie lost": (
        MFMA,
        use(2, tied_to=None),
        "early-clobber %2",
        "the uses %1.0:2; %1.0:2; undef %2.0:8, "
        "the machine IR %1.0:2; %1.0:2; undef %2.0:8 tied to 0$",
    ),
    "tie added": ("GLOBAL_LOAD_DWORD", use(0, tied_to=0), "%4:av_32 = ", "uses"),
    "early clobber lost": (
        MFMA,
        definition(early_clobber=False),
        "early-clobber %2",
        "definitions",
    ),
    "early clobber added": (
        "V_CMP_EQ_U32",
        definition(early_clobber=True),
        "%3:sreg_64_xexec = V_CMP",
        "definitions",
    ),
    "early clobber of a bundle lost": (
        "BUNDLE",
        definition(early_clobber=False),
        "BUNDLE",
        "definitions",
    ),
    "implicit use dropped": ("SI_CALL", without_use(1), "$sgpr30_sgpr31 = SI_CALL", "uses"),
    "implicit flag lost": ("SI_CALL", use(1, implicit=False), "$sgpr30_sgpr31 = SI_CALL", "uses"),
    "use of a bundle dropped": ("BUNDLE", without_use(1), "BUNDLE", "uses"),
    "a copy's use dropped": ("COPY", changed(uses=()), "%1:vgpr_32 = COPY", "uses"),
    "other half dropped": (
        "COPY",
        lambda i: without_use(0)(i) if len(i.uses) > 1 else i,
        "%1.lo16:vgpr_32 = COPY",
        "uses",
    ),
    "uses dropped": ("V_LSHLREV_B32", changed(uses=()), "undef %0.sub0", "uses none, .* %0.0:1$"),
    "uses added": (
        "V_MOV_B32",
        changed(uses=(Operand(V9),)),
        "%0.sub1",
        "the uses v9:1, the machine IR none$",
    ),
    "definitions dropped": (
        "V_MOV_B32",
        changed(definitions=()),
        "%0.sub1",
        "the definitions none",
    ),
    "a guard": ("V_MOV_B32", changed(guard=Guard(V9)), "%0.sub1", "a guard, the machine IR none$"),
    "implicit definition dropped": (
        "SI_CALL",
        lambda i: replace(i, definitions=i.definitions[:-1]),
        "$sgpr30_sgpr31 = SI_CALL",
        "definitions",
    ),
    "another physical register": (
        "INLINEASM",
        definition(location=V9),
        "INLINEASM",
        "definitions",
    ),
    "a physical use dropped": ("S_ENDPGM", changed(uses=()), "S_ENDPGM", "uses"),
    "destroyed registers dropped": ("SI_CALL", changed(destroys=()), "$sgpr30", "another.* csr_"),
    "fewer destroyed registers": (
        "SI_CALL",
        lambda i: replace(i, destroys=i.destroys[1:]),
        "$sgpr30",
        "destroyed",
    ),
    "destroyed registers added": (
        "V_MOV_B32",
        changed(destroys=(V9,)),
        "%0.sub1",
        "another set of destroyed registers, the machine IR none$",
    ),
    "another opcode": (
        "V_MOV_B32",
        changed(opcode="V_NOT_B32"),
        "%0.sub1",
        "V_NOT_B32, .*V_MOV_B32_e32",
    ),
    "a part of the opcode": ("V_MOV_B32", changed(opcode="V_MOV"), "%0.sub1", "V_MOV_B32_e32"),
    "a constant": (
        "S_MOV_B32.outside",
        changed(opcode="S_MOV_B32"),
        "%5:sreg_32",
        "a constant, S_MOV_B32, the machine IR a register that may change$",
    ),
    "EXEC said to change": (
        "V_MOV_B32",
        changed(opcode="V_MOV_B32.exec"),
        "%0.sub1",
        "a change of EXEC, the machine IR no change$",
    ),
}


@pytest.mark.parametrize(
    ("opcode", "edit", "place", "words"), INSTRUCTION_FAULTS.values(), ids=INSTRUCTION_FAULTS
)
def test_a_fault_in_an_instruction(opcode: str, edit: Edit, place: str, words: str) -> None:
    with pytest.raises(InputError, match=f"the normalized text has .*{words}") as caught:
        check(edited(gated(), opcode, edit))
    assert (caught.value.source, caught.value.line) == ("x.mir", line_of(place))


def with_blocks(function: Function, **changes: Any) -> Function:
    """The function with its second block changed."""
    blocks = list(function.blocks)
    blocks[1] = replace(blocks[1], **changes)
    return replace(function, blocks=tuple(blocks))


def with_edges(function: Function, *successors: int) -> Function:
    entry, *others = function.blocks
    return replace(function, blocks=(replace(entry, successors=successors), *others))


def with_class(function: Function, name: str, *ranges: BaseRange, **changes: Any) -> Function:
    """The function with another class in place of that of this name."""
    classes = function.virtual_registers
    (old,) = {c for c in classes if c.name == name}
    new = replace(old, **(changes | ({"ranges": ranges} if ranges else {})))
    return replace(function, virtual_registers=tuple(new if c == old else c for c in classes))


def with_budget(function: Function, name: str, count: int) -> Function:
    files = tuple(replace(f, count=count) if f.name == name else f for f in function.files)
    return replace(function, files=files)


def read_as(function: Function, old: int, new: int) -> Function:
    """The function in which uses of one virtual register are uses of another."""

    def moved(operand: Operand) -> Operand:
        location = operand.location
        if isinstance(location, VirtualLanes) and location.register == old:
            return replace(operand, location=replace(location, register=new))
        return operand

    def renamed(instruction: Instruction) -> Instruction:
        return replace(instruction, uses=tuple(map(moved, instruction.uses)))

    blocks = tuple(
        replace(block, instructions=tuple(map(renamed, block.instructions)))
        for block in function.blocks
    )
    return replace(function, blocks=blocks)


def separated(function: Function) -> Function:
    """The function in which what is read of %0 is another register than what is written."""
    number = len(function.virtual_registers)
    classes = (*function.virtual_registers, function.virtual_registers[0])
    return read_as(replace(function, virtual_registers=classes), 0, number)


def without_last(function: Function) -> Function:
    """The function in which a fixed register takes the place of the last virtual one."""

    changed = edited(function, "GLOBAL_LOAD_DWORD", definition(location=V9))
    return edited(changed, "BUNDLE", use(0, location=V9))


FUNCTION_FAULTS: dict[str, tuple[Callable[[Function], Function], str, str]] = {
    "edge lost": (
        lambda f: with_edges(f, 1),
        "bb.0.entry",
        r"edges to \(1,\), the machine IR to \(1, 2\)$",
    ),
    "edges exchanged": (lambda f: with_edges(f, 2, 1), "bb.0.entry", "edges to"),
    "edge added": (lambda f: with_edges(f, 0, 1, 2), "bb.0.entry", "edges to"),
    "falling through lost": (lambda f: with_blocks(f, successors=()), "bb.1 (", "edges to"),
    "instruction lost": (
        lambda f: with_blocks(f, instructions=f.blocks[1].instructions[:-1]),
        "bb.1 (",
        "2 instructions, the machine IR 3",
    ),
    "instruction added": (
        lambda f: with_blocks(f, instructions=(*f.blocks[1].instructions, Instruction("S_NOP"))),
        "bb.1 (",
        "4 instructions, the machine IR 3",
    ),
    "block lost": (
        lambda f: replace(f, blocks=(with_edges(f, 1).blocks[0], replace(f.blocks[2]))),
        "bb.0.entry",
        "2 blocks, the machine IR 3",
    ),
    "stack pointer freed": (
        lambda f: replace(f, reserved=(f.reserved[0], f.reserved[2])),
        "bb.0.entry",
        "s0:4, s100:2 reserved, the machine IR s0:4, s32:1, s100:2",
    ),
    "nothing reserved": (lambda f: replace(f, reserved=()), "bb.0.entry", "none reserved"),
    "live-in lost": (
        lambda f: replace(f, live_ins=f.live_ins[1:]),
        "bb.0.entry",
        "live-ins s36:2, v1:1, v40:1, the machine IR s36:2, v0:1, v1:1, v40:1",
    ),
    "live-in added": (
        lambda f: replace(f, live_ins=(*f.live_ins, FixedUnits("s", 9, 1))),
        "bb.0.entry",
        "live-ins s9:1, s36:2, v0:1, v1:1, v40:1",
    ),
    "alignment lost": (
        lambda f: with_class(f, "V8", BaseRange("v", 0, 76, 1)),
        "- { id: 2, ",
        "class V8 for %2, the machine IR vreg_256_align2",
    ),
    "class widened": (
        lambda f: with_class(f, "V", BaseRange("v", 0, 83, 1), BaseRange("a", 0, 83, 1)),
        "- { id: 1, ",
        "class V for %1, the machine IR vgpr_32",
    ),
    "scalar tuple at any start": (
        lambda f: with_class(f, "S2", BaseRange("s", 0, 100, 1), BaseRange("vcc", 0, 0, 2)),
        "- { id: 3, ",
        "class S2 for %3, the machine IR sreg_64_xexec",
    ),
    "class without its last register": (
        lambda f: with_class(f, "V", BaseRange("v", 0, 82, 1)),
        "- { id: 1, ",
        "class V for %1, the machine IR vgpr_32",
    ),
    "scalar tuple without VCC": (
        lambda f: with_class(f, "S2", BaseRange("s", 0, 100, 2)),
        "- { id: 3, ",
        "class S2 for %3, the machine IR sreg_64_xexec",
    ),
    "class without its second file": (
        lambda f: with_class(f, "AV", BaseRange("v", 0, 83, 1)),
        "- { id: 4, ",
        "class AV for %4, the machine IR av_32",
    ),
    "values exchanged": (lambda f: read_as(f, 5, 0), "BUNDLE", "the uses"),
    "value separated": (separated, "undef %0.sub0", "the uses"),
    "value lost": (
        without_last,
        "%4:av_32 = GLOBAL",
        "no register for %4, the machine IR one more$",
    ),
    "budget raised": (
        lambda f: with_budget(f, "s", 104),
        "name: f",
        "allows {'v': 84, 'a': 84, 's': 104, 'vcc': 2}",
    ),
    "occupancy lost": (
        lambda f: replace(f, maximum_occupancy=None),
        "name: f",
        "and None waves, the function .* and 4 waves",
    ),
}


@pytest.mark.parametrize(("edit", "place", "words"), FUNCTION_FAULTS.values(), ids=FUNCTION_FAULTS)
def test_a_fault_in_the_function(
    edit: Callable[[Function], Function], place: str, words: str
) -> None:
    with pytest.raises(InputError, match=f"the normalized text .*{words}") as caught:
        check(edit(gated()))
    assert (caught.value.source, caught.value.line) == ("x.mir", line_of(place))


def nothing(*arguments: object) -> bool:
    return False


PLANTED: dict[str, tuple[str, object, str]] = {
    "registers that info names": ("_RESERVED_INFO", (), "none reserved"),
    "halves": ("_keeps_half", nothing, "the uses"),
    "changes of EXEC": (
        "is_misnamed_mask_writer",
        nothing,
        "has no change of EXEC, the machine IR a change$",
    ),
}


@pytest.mark.parametrize(("name", "part", "words"), PLANTED.values(), ids=PLANTED)
def test_a_fault_planted_in_the_normalizer(
    name: str, part: object, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(normalize, name, part)
    with pytest.raises(InputError, match=words) as caught:
        gated()
    assert caught.value.source == "x.mir"


def test_what_a_call_destroys_ends_with_the_budget() -> None:
    """Of a run of registers that begins within the budget only those within it are left."""
    lengths = []
    for count in (45, 46, 47, 48, 54):
        text = TEXT.replace('"amdgpu-waves-per-eu"="3,4"', f'"amdgpu-num-sgpr"="{count}"')
        function = gated(text)
        assert function.file("s").count == count - 6
        (call,) = (i for _, _, i in function.instructions() if i.opcode == "SI_CALL")
        lengths.append([units.count for units in call.destroys if units.first == 40])
    assert lengths == [[], [], [1], [2], [8]]


def test_texts_of_no_file_have_names() -> None:
    machine, module = loaded()
    target, other = get_target("gfx942"), TEXT.replace("V_LSHLREV", "V_LSHRREV")
    texts = {"verilocc-bench 1\n": "the normalized text", print_function(gated()): "<mir>"}
    for text, name in texts.items():
        with pytest.raises(InputError) as caught:
            check_against_mir(text, other, machine, module, target)
        assert caught.value.source == name
    with pytest.raises(InputError, match=r"^<mir>:.* has V_LSHLREV_B32, the machine IR V_LSHRREV"):
        normalized_problem(other, machine, module, target)


SHORT = """\
---
name: f
FRAMEbody: |
  bb.0:
    S_NOP 0, implicit undef %0:av_96_with_sub1_sub2_in_av_64_align2
    S_ENDPGM 0
...
"""


def test_a_value_that_is_read_alone() -> None:
    text = SHORT.replace("FRAME", "")
    function = gated(text)
    assert [r.first for c in function.virtual_registers for r in c.ranges] == [1, 1]
    with pytest.raises(InputError, match=r"no register for %0, the machine IR one more$") as caught:
        check(edited(function, "S_NOP", use(0, location=V9)), text)
    assert caught.value.line == 5


@pytest.mark.parametrize(
    ("alignment", "items", "reserved"), [(32, "{ id: 0 }", 34), (16, "{ id: 0 }", 0), (32, "", 0)]
)
def test_the_base_pointer_of_an_aligned_frame(alignment: int, items: str, reserved: int) -> None:
    frame = f"frameInfo:\n  maxAlignment: {alignment}\nfixedStack: [ {items} ]\n"
    units = gated(SHORT.replace("FRAME", frame)).reserved
    assert units == ((FixedUnits("s", reserved, 1),) if reserved else ())
