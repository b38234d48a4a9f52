"""Answers with edits in machine IR: LLVM's machine verifier accepts them, code comes out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache

import pytest

from tests.backends.amdgpu.machine_ir import ROWS, SPLIT_ROWS, Kernel, answer_of, load, split_answer
from tests.backends.amdgpu.test_write_back import body_of, small
from tests.sampling import few_rows, in_turns
from verilocc_bench.allocators import BUILT_IN, Request
from verilocc_bench.backends.amdgpu.tools import LLC_OPTIONS, run_llc
from verilocc_bench.backends.amdgpu.write_back import LoweredMir
from verilocc_bench.dataset import Row
from verilocc_bench.errors import InputError
from verilocc_bench.ir import Operand, VirtualLanes

pytestmark = pytest.mark.slow

Llc = Callable[..., str]
# One of each architecture, with loops, and with AGPRs in the budget.
CHOSEN = [
    min((r for r in ROWS if (r.arch, r.kernel) == (arch, "gemm")), key=lambda r: r.n_instructions)
    for arch in ("gfx90a", "gfx942")
]
chosen = pytest.mark.parametrize("row", CHOSEN, ids=lambda row: row.arch)


@cache
def subject(row: Row) -> tuple[Kernel, dict[str, str]]:
    """The kernel and linear-scan's answer."""
    return load(row), answer_of(load(row), "linear-scan")


def assembled(lowered: LoweredMir, arch: str) -> str:
    """The assembly, in which each instruction has its bytes."""
    options = (*LLC_OPTIONS, *lowered.llc_options, "-show-mc-encoding")
    assembly = run_llc(lowered.text, arch, "asm", options).decode()
    assert "; encoding: [" in assembly
    return assembly


def values(kernel: Kernel, answer: dict[str, str], file: str) -> tuple[list[int], str, str]:
    """A place, and two registers of one lane that hold values there and are read later."""
    function = kernel.problem.function
    for block, each in enumerate(function.blocks):
        found: list[str] = []
        for index, instruction in enumerate(each.instructions):
            if len(found) == 2:
                return [block, index], found[0], found[1]
            later = {n for i in each.instructions[index + 2 :] for n in registers(i.uses)}
            for number in registers(instruction.definitions):
                name, width = f"%{number}", function.virtual_registers[number].width
                if width == 1 and answer[name].startswith(file) and number in later:
                    found += [] if name in found else [name]
    raise AssertionError("no such values")


def at(place: Sequence[int], *actions: Mapping[str, object]) -> list[dict[str, object]]:
    """Insertions, all at one place."""
    return [{"at": list(place), **action} for action in actions]


def registers(operands: Sequence[Operand]) -> list[int]:
    locations = (operand.location for operand in operands)
    return [each.register for each in locations if isinstance(each, VirtualLanes)]


@pytest.mark.parametrize(("file", "row"), in_turns(["v", "s"], CHOSEN))
def test_a_swap_there_and_back(file: str, row: Row, llc: Llc) -> None:
    kernel, answer = subject(row)
    place, one, other = values(kernel, answer, file)
    swap = {"move": [[one, other], [other, one]]}
    lowered = kernel.lower_split(split_answer(answer, insert=at(place, swap, swap)))
    assert lowered.text.count("V_SWAP_B32") == (2 if file == "v" else 0)
    assembled(lowered, row.arch)


@chosen
def test_a_spill_and_its_reload_reach_scratch_memory(row: Row, llc: Llc) -> None:
    kernel, answer = subject(row)
    place, one, other = values(kernel, answer, "v")
    insert = at(
        place,
        {"spill": ["slot7", one]},
        {"spill": ["slot2", other]},
        {"reload": [other, "slot2"]},
        {"reload": [one, "slot7"]},
    )
    assembly = assembled(kernel.lower_split(split_answer(answer, insert=insert)), row.arch)
    access = {"gfx90a": "buffer_{}_dword", "gfx942": "scratch_{}_dword"}[row.arch]
    for what, word in (("store", "Spill"), ("load", "Reload")):
        pattern = rf"{access.format(what)} .*Folded {word}"
        assert len(re.findall(pattern, assembly)) == 2
    segment = re.search(r"private_segment_fixed_size: (\d+)", assembly)
    assert segment is not None
    assert int(segment[1]) >= 8


@pytest.mark.parametrize(("to_memory", "row"), in_turns([False, True], CHOSEN))
def test_spilled_scalars_go_to_lanes_or_to_memory(to_memory: bool, row: Row, llc: Llc) -> None:
    kernel, answer = subject(row)
    place, one, _ = values(kernel, answer, "s")
    insert = at(place, {"spill": ["slot0", one]}, {"reload": [one, "slot0"]})
    lowered = kernel.lower_split(split_answer(answer, insert=insert))
    assert lowered.llc_options == ()
    options = ("-amdgpu-spill-sgpr-to-vgpr=0",) if to_memory else ()
    assembly = run_llc(lowered.text, row.arch, "asm", (*LLC_OPTIONS, *options)).decode()
    spilled = "Folded Spill" if to_memory else "v_writelane_b32"
    assert spilled in assembly


@chosen
def test_accumulators_and_vcc_keep_values(row: Row, llc: Llc) -> None:
    kernel, answer = subject(row)
    place, one, other = values(kernel, answer, "v")
    first, second = (f"%{len(answer) + n}" for n in range(2))
    spill, reload = {"spill": ["slot0", first]}, {"reload": [first, "slot0"]}
    there = {"move": [[first, one], [second, other]]}
    swap = {"move": [[first, second], [second, first]]}
    back = {"move": [[one, second], [other, first]]}
    wanted = split_answer(
        {**answer, first: "a1", second: "a0"},
        new={first: "A 1 a", second: "A 1 a"},
        insert=at(place, there, swap, spill, reload, back),
    )
    assembly = assembled(kernel.lower_split(wanted), row.arch)
    assert "v_accvgpr_mov_b32" in assembly or "v_accvgpr_read_b32" in assembly
    place, one, _ = values(kernel, answer, "s")
    there, back = {"move": [[first, one]]}, {"move": [[one, first]]}
    wanted = split_answer(
        {**answer, first: "vcc_hi"},
        new={first: "C 1 vcc"},
        insert=at(place, there, spill, reload, back),
    )
    lowered = kernel.lower_unverified(wanted)  # VCC may hold something there
    assert "SI_SPILL_S32_SAVE $vcc_hi, %stack.0" in lowered.text
    assembled(lowered, row.arch)


@chosen
def test_constants_are_made_again(row: Row, llc: Llc) -> None:
    kernel, answer = subject(row)
    function, opcodes = kernel.problem.function, set[str]()
    for block, index, instruction in function.instructions():
        numbers = registers(instruction.definitions)
        if (
            instruction.opcode not in kernel.target.constant_opcodes - opcodes
            or instruction.uses
            or not numbers
        ):
            continue
        number = numbers[0]
        whole = VirtualLanes(number, 0, function.virtual_registers[number].width)
        if instruction.definitions[0].location != whole:
            continue
        again = at([block, index + 1], {"rematerialize": [f"%{number}", [block, index]]})
        assembled(kernel.lower_split(split_answer(answer, insert=again)), row.arch)
        opcodes.add(instruction.opcode)
    assert len(opcodes) == 2


@chosen
def test_every_edge_can_hold_moves(row: Row, llc: Llc) -> None:
    kernel, answer = subject(row)
    _, one, other = values(kernel, answer, "v")
    swap = [[one, other], [other, one]]
    insert = [
        {"at": {"edge": [source, target]}, "move": swap}
        for source, block in enumerate(kernel.problem.function.blocks)
        for target in block.successors
        for _ in range(2)
    ]
    lowered = kernel.lower_unverified(split_answer(answer, insert=insert))
    assert lowered.inserted == len(insert)
    assert lowered.text.count("V_SWAP_B32") == len(insert)
    assembled(lowered, row.arch)


@pytest.mark.parametrize(
    "row", few_rows(SPLIT_ROWS), ids=lambda row: f"{row.arch}-{row.kernel}-{row.id}"
)
def test_answers_of_the_split_track(row: Row, llc: Llc) -> None:
    kernel = load(row)
    answer = BUILT_IN["spill-everywhere"].allocate(Request(kernel.problem))
    if answer.has_edits:
        lowered = kernel.lower_split(answer)
        assert lowered.inserted
    else:
        lowered = kernel.lower(answer.assignment)
    assembled(lowered, row.arch)


DIAMOND = """  bb.0:
    successors: %bb.2(0x30000000), %bb.1(0x50000000)
    liveins: $vgpr0

    %0:vgpr_32 = COPY $vgpr0
    %1:vgpr_32 = V_MOV_B32_e32 7, implicit $exec
    S_CBRANCH_SCC1 %bb.2, implicit undef $scc
  bb.1:
    successors: %bb.2
    S_NOP 0, implicit %0
    S_BRANCH %bb.2
  bb.2:
    S_NOP 0, implicit %0, implicit %1
    S_ENDPGM 0
"""
PLACES = {"%0": "v1", "%1": "v2"}


def test_edges_get_blocks_where_they_need_them(llc: Llc) -> None:
    kernel = small(DIAMOND, "vgpr_32", "vgpr_32")
    swap = [["%0", "%1"], ["%1", "%0"]]
    insert = [{"at": {"edge": edge}, "move": swap} for edge in ([0, 2], [0, 1], [1, 2])]
    insert.append({"at": [2, 0], "move": swap})
    insert.insert(1, {"at": [1, 0], "move": swap})
    lowered = kernel.lower_split(split_answer(PLACES, insert=insert))
    swapped = "$vgpr1, $vgpr2 = V_SWAP_B32 $vgpr2, $vgpr1, implicit $exec"
    assert body_of(lowered.text) == [
        "bb.0:",
        "successors: %bb.3(0x30000000), %bb.1(0x50000000)",
        "liveins: $vgpr0",
        "renamable $vgpr1 = COPY $vgpr0",
        "renamable $vgpr2 = V_MOV_B32_e32 7, implicit $exec",
        "S_CBRANCH_SCC1 %bb.3, implicit undef $scc",
        "bb.1:",
        "successors: %bb.2",
        "liveins: $vgpr1, $vgpr2",
        swapped,  # on the edge from bb.0, which has no other way here
        swapped,
        "S_NOP 0, implicit renamable $vgpr1",
        swapped,  # on the edge to bb.2, the only way from here
        "S_BRANCH %bb.2",
        "bb.2:",
        "liveins: $vgpr1, $vgpr2",
        swapped,
        "S_NOP 0, implicit renamable $vgpr1, implicit renamable $vgpr2",
        "S_ENDPGM 0",
        "bb.3:",
        "successors: %bb.2",
        "liveins: $vgpr1, $vgpr2",
        swapped,
        "S_BRANCH %bb.2",
        "...",
    ]
    assert "v_swap_b32" in run_llc(lowered.text, "gfx90a", "asm").decode()


def test_an_edge_that_falls_through(llc: Llc) -> None:
    body = DIAMOND.replace("%bb.2(0x30000000)", "%bb.3").replace("%bb.1(0x50000000)", "%bb.1")
    body = body.replace("SCC1 %bb.2", "SCC1 %bb.3").replace(
        "%bb.2\n    S_NOP", "%bb.2, %bb.3\n    S_NOP"
    )
    body = body.replace("S_BRANCH %bb.2", "S_CBRANCH_SCC1 %bb.3, implicit undef $scc")
    body = body.replace("  bb.2:\n", "  bb.2:\n    successors: %bb.3\n    S_NOP 1\n  bb.3:\n")
    kernel = small(body, "vgpr_32", "vgpr_32")
    swap = [["%0", "%1"], ["%1", "%0"]]
    insert = [{"at": {"edge": edge}, "move": swap} for edge in ([1, 3], [1, 2], [2, 3], [0, 3])]
    lowered = kernel.lower_unverified(split_answer(PLACES, insert=insert))
    lines = body_of(lowered.text)
    assert "S_CBRANCH_SCC1 %bb.4, implicit undef $scc" in lines
    assert "S_CBRANCH_SCC1 %bb.5, implicit undef $scc" in lines
    assert lines[lines.index("bb.4:") - 1].startswith("S_ENDPGM")
    run_llc(lowered.text, "gfx90a", "asm")


def test_replaced_operands_and_dead_marks() -> None:
    body = """  bb.0:
    liveins: $vgpr0

    %0:vgpr_32 = COPY $vgpr0
    undef %2.sub1:vreg_64_align2, dead %1:sreg_64_xexec = V_ADD_CO_U32_e64 %0, %0, 0, implicit $exec
    S_NOP 0, implicit %2.sub1
    S_ENDPGM 0
"""
    kernel = small(body, "vgpr_32", "sreg_64_xexec", "vreg_64_align2")
    answer = split_answer(
        {"%0": "v1", "%1": "v4", "%2": "s4", "%3": "v8", "%4": "s6", "%5": "v10", "%6": "s8"},
        new={"%3": "V", "%4": "S2", "%5": "V2 2 v/2", "%6": "S2"},
        replace=[[0, 1, 2, "%5.1"], [0, 1, 1, "%4"], [0, 1, 0, "%3"]],
        insert=[{"at": [0, 2], "move": [["%1.1", "%3"], ["%6", "%4"]]}],
    )
    lowered = kernel.lower_unverified(answer)
    assert body_of(lowered.text)[3:] == [
        "renamable $vgpr8, renamable $sgpr6_sgpr7 = V_ADD_CO_U32_e64 renamable undef $vgpr11, "
        "renamable $vgpr1, 0, implicit $exec",
        "renamable $vgpr5 = COPY renamable $vgpr8",
        "renamable $sgpr8_sgpr9 = COPY renamable $sgpr6_sgpr7",
        "S_NOP 0, implicit renamable $vgpr5",
        "S_ENDPGM 0",
        "...",
    ]


STACK = "stack:\n  - { id: 3, type: spill-slot, size: 4, alignment: 4 }\n"


def test_slots_follow_the_functions_own_stack_objects(llc: Llc) -> None:
    kernel = small(DIAMOND, "vgpr_32", "vgpr_32", stack=STACK)
    insert = at([0, 2], {"spill": ["slot9", "%0"]}) + at([2, 0], {"reload": ["%0", "slot9"]})
    lowered = kernel.lower_split(split_answer(PLACES, insert=insert))
    assert "SI_SPILL_V32_SAVE $vgpr1, %stack.4, $sgpr32, 0, implicit $exec" in lowered.text
    assert lowered.text.count("type: spill-slot") == 2
    run_llc(lowered.text, "gfx90a", "asm")


@pytest.mark.parametrize(
    ("register_class", "base", "constant"),
    [
        ("sgpr_64", "s4", "S_MOV_B32 5"),
        ("sreg_64", "vcc_lo", "S_MOV_B32 5"),
        ("vreg_64_align2", "v2", "V_MOV_B32_e32 5, implicit $exec"),
        ("areg_64_align2", "a2", "V_ACCVGPR_WRITE_B32_e64 5, implicit $exec"),
    ],
)
@pytest.mark.parametrize("slots", ["whole", "the lane that was never written"])
def test_a_spill_stores_no_lane_that_was_never_written(
    register_class: str, base: str, constant: str, slots: str, llc: Llc
) -> None:
    body = f"""  bb.0:
    liveins: $vgpr0

    undef %0.sub0:{register_class} = {constant}
    S_NOP 0
    %0.sub1:{register_class} = {constant}
    S_NOP 0, implicit %0.sub0, implicit %0.sub1
    S_ENDPGM 0
"""
    lanes = ["%0", "slot0-1"] if slots == "whole" else ["%0.1", "slot0"]
    insert = at([0, 1], {"spill": lanes[::-1]}) + at([0, 2], {"reload": lanes})
    lowered = small(body, register_class).lower_split(split_answer({"%0": base}, insert=insert))
    written = 1 if slots == "whole" else 0
    assert len(re.findall(r"SI_SPILL_\w+_SAVE", lowered.text)) == written
    assert len(re.findall(r"SI_SPILL_\w+_RESTORE", lowered.text)) == written + 1
    assembled(lowered, "gfx90a")


def test_what_cannot_be_lowered_is_told() -> None:
    kernel = small(
        DIAMOND.replace("V_MOV_B32_e32 7", "V_MOV_B32_e32 1234567"), "vgpr_32", "vgpr_32"
    )
    answer = {**PLACES, "%2": "a0"}
    again = [{"at": [1, 0], "rematerialize": ["%2", [0, 1]]}]
    with pytest.raises(InputError, match=r"V_MOV_B32 of bb0 instruction 1 .* again in \$agpr0"):
        kernel.lower_unverified(split_answer(answer, new={"%2": "A 1 a"}, insert=again))
    bundle = DIAMOND.replace(
        "S_NOP 0, implicit %0\n", "BUNDLE implicit %0 {\n      S_NOP 0, implicit %0\n    }\n"
    )
    kernel = small(bundle, "vgpr_32", "vgpr_32")
    with pytest.raises(InputError, match="operand in a bundle"):
        kernel.lower_unverified(split_answer(PLACES, replace=[[1, 0, 0, "%1"]]))
