"""The gate: each fault in a normalized text is told with the line of the machine IR.

No judge can see such a fault: judges know the text alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import accumulate
from pathlib import Path

import pytest

from tests.backends.function_edits import (
    Edit,
    changed,
    definition,
    use,
    with_block,
    with_budget,
    with_instruction,
    without_use,
)
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

TEXT = Path(__file__).with_name("gated.mir").read_text()


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


def edited(function: Function, place: str, edit: Edit, text: str = TEXT) -> Function:
    """The function with the instruction changed whose line has these words."""
    lines = [line for line in text.splitlines() if re.match(r"    (?!DBG|succ|livein|\})\S", line)]
    (number,) = (n for n, line in enumerate(lines) if place in line)
    ends = accumulate(len(block.instructions) for block in function.blocks)
    (at, end), *_ = ((b, end) for b, end in enumerate(ends) if number < end)
    found = with_instruction(function, at, number - end, edit)
    assert found != function
    return found


V9 = FixedUnits("v", 9, 1)
TIE_LOST = (
    "the uses %1.0:2; %1.0:2; undef %2.0:8, the machine IR %1.0:2; %1.0:2; undef %2.0:8 tied to 0$"
)
INSTRUCTION_FAULTS: list[tuple[str, Edit, str]] = [
    # Lanes: the whole register in place of one, and another one.
    ("V_CMP", use(-1, location=VirtualLanes(2, 0, 8)), "uses"),
    ("V_MOV_B32", definition(location=VirtualLanes(1, 0, 1)), "definitions"),
    # Flags lost and added.
    ("V_LSHLREV", definition(undef=False), "definitions"),
    ("V_MOV_B32", definition(undef=True), "definitions"),
    ("V_MFMA", use(2, undef=False), "uses"),
    ("V_MFMA", use(0, undef=True), "uses"),
    ("V_MFMA", use(2, tied_to=None), TIE_LOST),
    ("GLOBAL_LOAD", use(0, tied_to=0), "uses"),
    ("V_MFMA", definition(early_clobber=False), "definitions"),
    ("V_CMP", definition(early_clobber=True), "definitions"),
    ("BUNDLE", definition(early_clobber=False), "definitions"),
    ("SI_CALL", use(1, implicit=False), "uses"),
    # Operands dropped, added, and in other registers.
    ("SI_CALL", without_use(1), "uses"),
    ("BUNDLE", without_use(1), "uses"),
    ("COPY $vgpr0", changed(uses=()), "uses"),
    ("%1.lo16", without_use(0), "uses"),
    ("V_LSHLREV", changed(uses=()), "uses none, .* %0.0:1$"),
    ("V_MOV_B32", changed(uses=(Operand(V9),)), "the uses v9:1, the machine IR none$"),
    ("V_MOV_B32", changed(definitions=()), "the definitions none"),
    ("SI_CALL", lambda i: replace(i, definitions=i.definitions[:-1]), "definitions"),
    ("INLINEASM", definition(location=V9), "definitions"),
    ("S_ENDPGM", changed(uses=()), "uses"),
    # What else an instruction has.
    ("V_MOV_B32", changed(guard=Guard(V9)), "a guard, the machine IR none$"),
    ("SI_CALL", changed(destroys=()), "another.* csr_"),
    ("SI_CALL", lambda i: replace(i, destroys=i.destroys[1:]), "destroyed"),
    (
        "V_MOV_B32",
        changed(destroys=(V9,)),
        "another set of destroyed registers, the machine IR none$",
    ),
    ("V_MOV_B32", changed(opcode="V_NOT_B32"), "V_NOT_B32, .*V_MOV_B32_e32"),
    ("V_MOV_B32", changed(opcode="V_MOV"), "V_MOV_B32_e32"),
    (
        "S_MOV_B32",
        changed(opcode="S_MOV_B32"),
        "a constant, S_MOV_B32, the machine IR a register that may change$",
    ),
    (
        "V_MOV_B32",
        changed(opcode="V_MOV_B32.exec"),
        "a change of EXEC, the machine IR no change$",
    ),
]


@pytest.mark.parametrize(("place", "edit", "words"), INSTRUCTION_FAULTS)
def test_a_fault_in_an_instruction(place: str, edit: Edit, words: str) -> None:
    with pytest.raises(InputError, match=f"the normalized text has .*{words}") as caught:
        check(edited(gated(), place, edit))
    assert (caught.value.source, caught.value.line) == ("x.mir", line_of(place))


def read_as(function: Function, old: int, new: int) -> Function:
    """The function in which uses of one virtual register are uses of another."""

    def moved(operand: Operand) -> Operand:
        location = operand.location
        if isinstance(location, VirtualLanes) and location.register == old:
            return replace(operand, location=replace(location, register=new))
        return operand

    for number, block in enumerate(function.blocks):
        renamed = (replace(i, uses=tuple(map(moved, i.uses))) for i in block.instructions)
        function = with_block(function, number, instructions=tuple(renamed))
    return function


def separated(function: Function) -> Function:
    """The function in which what is read of %0 is another register than what is written."""
    number = len(function.virtual_registers)
    classes = (*function.virtual_registers, function.virtual_registers[0])
    return read_as(replace(function, virtual_registers=classes), 0, number)


def without_last(function: Function) -> Function:
    """The function in which a fixed register takes the place of the last virtual one."""
    changed = edited(function, "GLOBAL_LOAD", definition(location=V9))
    return edited(changed, "BUNDLE", use(0, location=V9))


def without_block(function: Function) -> Function:
    entry, _, last = with_block(function, 0, successors=(1,)).blocks
    return replace(function, blocks=(entry, last))


def with_body(function: Function, *more: Instruction, kept: int = 3) -> Function:
    body = (*function.blocks[1].instructions[:kept], *more)
    return with_block(function, 1, instructions=body)


def with_live_ins(function: Function, *more: FixedUnits, first: int = 0) -> Function:
    return replace(function, live_ins=(*function.live_ins[first:], *more))


S9 = FixedUnits("s", 9, 1)
FunctionEdit = Callable[[Function], Function]
FUNCTION_FAULTS: list[tuple[FunctionEdit, str, str]] = [
    (lambda f: with_block(f, 1, successors=()), "bb.1 (", "edges to"),
    (lambda f: with_body(f, kept=2), "bb.1 (", "2 instructions, the machine IR 3"),
    (lambda f: with_body(f, Instruction("S_NOP")), "bb.1 (", "4 instructions, the machine IR 3"),
    (without_block, "bb.0.entry", "2 blocks, the machine IR 3"),
    (
        lambda f: replace(f, reserved=(f.reserved[0], f.reserved[2])),
        "bb.0.entry",
        "s0:4, s100:2 reserved, the machine IR s0:4, s32:1, s100:2",
    ),
    (lambda f: replace(f, reserved=()), "bb.0.entry", "none reserved"),
    (
        lambda f: with_live_ins(f, first=1),
        "bb.0.entry",
        "live-ins s36:2, v1:1, v40:1, the machine IR s36:2, v0:1, v1:1, v40:1",
    ),
    (lambda f: with_live_ins(f, S9), "bb.0.entry", "live-ins s9:1, s36:2, v0:1, v1:1, v40:1"),
    (lambda f: read_as(f, 5, 0), "BUNDLE", "the uses"),
    (separated, "undef %0.sub0", "the uses"),
    (without_last, "%4:av_32 = GLOBAL", "no register for %4, the machine IR one more$"),
    (
        lambda f: with_budget(f, "s", 104),
        "name: f",
        "allows {'v': 84, 'a': 84, 's': 104, 'vcc': 2}",
    ),
    (
        lambda f: replace(f, maximum_occupancy=None),
        "name: f",
        "and None waves, the function .* and 4 waves",
    ),
]


@pytest.mark.parametrize(("edit", "place", "words"), FUNCTION_FAULTS)
def test_a_fault_in_the_function(edit: FunctionEdit, place: str, words: str) -> None:
    with pytest.raises(InputError, match=f"the normalized text .*{words}") as caught:
        check(edit(gated()))
    assert (caught.value.source, caught.value.line) == ("x.mir", line_of(place))


@pytest.mark.parametrize("successors", [(1,), (2, 1), (0, 1, 2)])
def test_a_fault_in_the_edges(successors: tuple[int, ...]) -> None:
    edit = partial(with_block, number=0, successors=successors)
    words = re.escape(f"edges to {successors}, the machine IR to (1, 2)") + "$"
    test_a_fault_in_the_function(edit, "bb.0.entry", words)


@pytest.mark.parametrize(
    ("name", "ranges", "number"),
    [
        ("V8", [("v", 0, 76, 1)], 2),  # no longer aligned
        ("V", [("v", 0, 83, 1), ("a", 0, 83, 1)], 1),  # wider
        ("V", [("v", 0, 82, 1)], 1),  # without its last register
        ("S2", [("s", 0, 100, 1), ("vcc", 0, 0, 2)], 3),  # a tuple of scalars at any start
        ("S2", [("s", 0, 100, 2)], 3),  # without VCC
        ("AV", [("v", 0, 83, 1)], 4),  # without its second file
    ],
)
def test_a_fault_in_a_class(
    name: str, ranges: list[tuple[str, int, int, int]], number: int
) -> None:
    def edit(function: Function) -> Function:
        (old,) = {c for c in function.virtual_registers if c.name == name}
        new = replace(old, ranges=tuple(BaseRange(*each) for each in ranges))
        classes = tuple(new if c == old else c for c in function.virtual_registers)
        return replace(function, virtual_registers=classes)

    place = f"{{ id: {number}, "
    own = TEXT.partition(f"{place}class: ")[2].partition(" }")[0]
    test_a_fault_in_the_function(edit, place, f"class {name} for %{number}, the machine IR {own}$")


def nothing(*arguments: object) -> bool:
    return False


@pytest.mark.parametrize(
    ("name", "part", "words"),
    [
        ("_RESERVED_INFO", (), "none reserved"),
        ("_keeps_half", nothing, "the uses"),
        ("is_misnamed_mask_writer", nothing, "has no change of EXEC, the machine IR a change$"),
    ],
)
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
        check(edited(function, "S_NOP", use(0, location=V9), text), text)
    assert caught.value.line == 5


@pytest.mark.parametrize(
    ("alignment", "items", "reserved"), [(32, "{ id: 0 }", 34), (16, "{ id: 0 }", 0), (32, "", 0)]
)
def test_the_base_pointer_of_an_aligned_frame(alignment: int, items: str, reserved: int) -> None:
    frame = f"frameInfo:\n  maxAlignment: {alignment}\nfixedStack: [ {items} ]\n"
    units = gated(SHORT.replace("FRAME", frame)).reserved
    assert units == ((FixedUnits("s", reserved, 1),) if reserved else ())
