"""The gate's last step: each fault in a normalized text is told by its row.

No judge can see such a fault: judges know the text alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

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
from tests.backends.nvidia.assembled_kernels import LOOP, PRODUCT, assembled, embedded
from tests.backends.nvidia.assembly import changed as with_fields
from verilocc_bench.allocators import answer_from_assignment
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.backends.nvidia import flow, normalize, text_gate, webs
from verilocc_bench.backends.nvidia.context_code import with_contexts
from verilocc_bench.backends.nvidia.cubin import read_cubin
from verilocc_bench.backends.nvidia.life_range_gate import check_marks
from verilocc_bench.backends.nvidia.life_ranges import parse_life_ranges
from verilocc_bench.backends.nvidia.one_listing import parted
from verilocc_bench.backends.nvidia.read import GatedFunction, disassembled_function, load_kernel
from verilocc_bench.backends.nvidia.records import SassBlock, SassFunction
from verilocc_bench.backends.nvidia.text import parse_sass
from verilocc_bench.backends.nvidia.text_gate import check_text
from verilocc_bench.backends.nvidia.tools import code_and_life_ranges, disassemble, life_ranges
from verilocc_bench.dataset import load_rows
from verilocc_bench.errors import RejectedKernel
from verilocc_bench.ir import (
    Assignment,
    FixedUnits,
    Function,
    Instruction,
    Operand,
    VirtualLanes,
    print_function,
)
from verilocc_bench.selftest.renumber import renumber
from verilocc_bench.verification import FastVerifier
from verilocc_bench.verification.verifier import IndependentVerifier

LIMIT = 255
LISTINGS = Path(__file__).parent / "listings"
LEFT_BY_CALL = "cad9ef1c585f0b3e"


@cache
def gated() -> GatedFunction:
    """The kernel LOOP past the gate's first step, from what nvdisasm prints of it."""
    (function,) = parse_sass((LISTINGS / "loop.sass").read_text())
    ranges = parse_life_ranges((LISTINGS / "loop.life_ranges").read_text())[function.name]
    assert check_marks(function, ranges) is None
    return GatedFunction(function, ranges)


def check(function: Function, label: Assignment, code: SassFunction | None = None) -> None:
    """What the gate says of a function in place of the normalized one."""
    subject, numbers = renumber(function)
    moved = {new: label[old] for old, new in numbers.items()}
    kernel = gated()
    check_text(print_function(subject), moved, code or kernel.function, kernel.ranges, LIMIT)


def edited(function: Function, opcode: str, edit: Edit) -> Function:
    """The function with the first instruction that begins like `opcode` changed."""
    for block, index, instruction in function.instructions():
        if instruction.opcode.startswith(opcode) and edit(instruction) != instruction:
            return with_instruction(function, block, index, edit)
    raise AssertionError(f"there is no {opcode} to change")


def test_the_kernel_passes() -> None:
    normalized, problem = gated().normalized(LIMIT)
    check(normalized.function, normalized.assignment)
    assert problem.normalized == print_function(normalized.function)


@pytest.mark.slow
def test_the_listings_are_those_of_the_tools() -> None:
    cubin = assembled(LOOP)
    for name, text in (("loop.sass", disassemble(cubin)), ("loop.life_ranges", life_ranges(cubin))):
        lines = (LISTINGS / name).read_text().splitlines()
        assert [line.rstrip() for line in text.splitlines()] == lines
    assert load_kernel(cubin, "<cubin>")[1] == gated()
    load_kernel(assembled(PRODUCT), "<cubin>")[1].normalized(LIMIT)


@pytest.mark.slow
def test_one_run_of_nvdisasm_gives_both_listings() -> None:
    """Where an instruction is missing that is no NOP at the end, there is none."""
    cubin = assembled(LOOP)
    kernel = read_cubin(cubin).kernels[0]
    both, code = code_and_life_ranges(cubin, ""), cubin[kernel.code_offset :][: kernel.code_size]
    found = parted(both, {kernel.name: code})
    assert found is not None
    assert parse_sass(found[0]) == parse_sass(disassemble(cubin))
    assert parse_life_ranges(found[1])[kernel.name] == gated().ranges
    assert parted(both, {kernel.name: code[:-8] + bytes(8)}) is None
    lines = both.splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if "/*0020*/" in line)
    assert parted("".join(lines[:at] + lines[at + 2 :]), {kernel.name: code}) is None


def negated(instruction: Instruction) -> Instruction:
    guard = instruction.guard
    if guard is None:
        return instruction
    return replace(instruction, guard=replace(guard, negated=not guard.negated))


def other_half(instruction: Instruction) -> Instruction:
    location = instruction.uses[0].location
    assert isinstance(location, VirtualLanes)
    return use(0, location=replace(location, first=location.first ^ 1))(instruction)


@pytest.mark.parametrize(
    ("opcode", "edit", "words"),
    [
        ("FADD", changed(guard=None), r"no guard, the code @P\d$"),
        ("FADD", negated, r"@!P\d, the code @P\d$"),
        ("BRA", negated, r"@P\d, the code @!P\d$"),
        ("BRA", changed(guard=None), r"no guard, the code @!P\d$"),
        ("FFMA", changed(uses=()), "0 uses, the code 3$"),
        ("STG.E", without_use(2), "2 uses, the code 3$"),
        ("I2F", changed(definitions=()), "0 definitions, the code 1$"),
        ("FADD", other_half, r"R\d+, the code R\d+$"),
        ("FFMA", changed(opcode="FMUL"), "FMUL$"),
        ("FFMA", use(0, undef=True), ""),
        ("FFMA", use(0, tied_to=0), ""),
        ("FFMA", use(0, implicit=True), ""),
        ("FFMA", definition(early_clobber=True), ""),
        ("FFMA", changed(destroys=(FixedUnits("R", 9, 1),)), ""),
    ],
)
def test_a_fault_in_an_instruction(opcode: str, edit: Edit, words: str) -> None:
    normalized, _ = gated().normalized(LIMIT)
    pattern = rf"{opcode} at 0x[0-9a-f]{{4}} \(line \d+\): the text has {words}"
    with pytest.raises(RejectedKernel, match=pattern) as caught:
        check(edited(normalized.function, opcode, edit), normalized.assignment)
    assert caught.value.kind == "text-contradicts-code"


def with_ranges(function: Function, name: str, **changes: Any) -> Function:
    """The function with the ranges of a class changed."""
    classes = tuple(
        c if c.name != name else replace(c, ranges=tuple(replace(r, **changes) for r in c.ranges))
        for c in function.virtual_registers
    )
    return replace(function, virtual_registers=classes)


def with_last_body(function: Function, edit: Callable[..., tuple[Instruction, ...]]) -> Function:
    return with_block(function, -1, instructions=edit(function.blocks[-1].instructions))


def without_last_block(function: Function) -> Function:
    return replace(function, blocks=with_block(function, 1, successors=(1,)).blocks[:-1])


def with_reserved(function: Function, *units: tuple[str, int, int]) -> Function:
    return replace(function, reserved=tuple(FixedUnits(*each) for each in units))


def with_live_in(function: Function) -> Function:
    return replace(function, live_ins=(FixedUnits("R", 7, 1),))


LACKS, ADDS = "bb2: the text lacks an instruction$", "bb2: the text has one too many$"
NOT_RESERVED = "^text-contradicts-code: sums: the text does not reserve %s$"
NOT_ALIGNED = r"at 0x[0-9a-f]{4} \(line \d+\): the class \S+ does not align R\d+ and %d more$"


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda f: with_block(f, 1, successors=(1,)), "BRA .*leads from bb1 to bb1, the code not$"),
        (lambda f: with_block(f, 1, successors=(2, 1)), "BRA .*from bb1 to bb2, bb1, the code"),
        (lambda f: with_block(f, 2, successors=(0,)), "EXIT .*: the text leads from bb2 to bb0"),
        (lambda f: with_block(f, 1, successors=()), "BRA .*leads from bb1 to nowhere, the code"),
        (lambda f: with_reserved(f, ("UR", 0, 4)), NOT_RESERVED % "R1"),
        (lambda f: with_reserved(f, ("R", 1, 1), ("UR", 0, 3)), NOT_RESERVED % "UR3"),
        (with_reserved, NOT_RESERVED % "R1"),
        (lambda f: with_ranges(f, "R4", step=1), NOT_ALIGNED % 3),
        (lambda f: with_ranges(f, "R4", step=2), NOT_ALIGNED % 3),
        (lambda f: with_ranges(f, "R2", first=1, last=249), NOT_ALIGNED % 1),
        (lambda f: with_ranges(f, "P", file="UP"), r"%\d+ may lie in UP, the code has it in P$"),
        (lambda f: with_budget(f, "R", 255), "sums: the text allows 255 registers of R, not 253$"),
        (lambda f: with_budget(f, "P", 6), "sums: the text allows 6 registers of P, not 7$"),
        (lambda f: replace(f, target="sm_90"), "sums: the text is for sm_90$"),
        (with_live_in, "sums: the text has registers that are live into the entry$"),
        (lambda f: with_last_body(f, lambda body: body[:-1]), LACKS),
        (lambda f: with_last_body(f, lambda body: (*body, body[-1])), ADDS),
        (without_last_block, "sums: 2 blocks, the code has 3$"),
    ],
)
def test_a_fault_in_the_function(edit: Callable[[Function], Function], words: str) -> None:
    normalized, _ = gated().normalized(LIMIT)
    with pytest.raises(RejectedKernel, match=words):
        check(edit(normalized.function), normalized.assignment)


def test_a_budget_follows_from_the_limit() -> None:
    normalized, problem = gated().normalized(64)
    assert problem.function.file("R").count == 62
    with pytest.raises(RejectedKernel, match="allows 62 registers of R, not 253"):
        check(normalized.function, normalized.assignment)


@pytest.mark.slow
def test_calls_that_never_return_are_the_jumps_that_they_are() -> None:
    """nvdisasm would show another liveness of a loop that ptxas leaves by a CALL."""
    (row,) = (row for row in load_rows("mini").rows if row.id == LEFT_BY_CALL)
    cubin = embedded(row)
    function = disassembled_function(cubin, "<cubin>")
    (kernel,) = read_cubin(cubin).kernels
    jumping = with_contexts(cubin, kernel, function, flow.control_flow(function))
    changed = disassembled_function(jumping, "<cubin>")
    for old, new in zip(function.instructions, changed.instructions, strict=True):
        opcode = "BRA" if old.opcode == "CALL.REL.NOINC" else old.opcode
        assert (new.opcode, new.target, new.guard) == (opcode, old.target, old.guard)
    assert any(i.opcode == "CALL.REL.NOINC" for i in function.instructions)
    with_call = parse_life_ranges(life_ranges(cubin))[function.name]
    with pytest.raises(RejectedKernel, match="by NVIDIA's life ranges"):
        GatedFunction(function, with_call).normalized(LIMIT)
    load_kernel(cubin, "<cubin>")[1].normalized(LIMIT)


# The life ranges: what agrees with the code instruction by instruction, and is still another value.


def separated(function: Function, label: Assignment, opcode: str) -> tuple[Function, Assignment]:
    """The first use of an instruction as a value of its own, in the same register."""
    number = len(function.virtual_registers)
    taken: list[int] = []

    def edit(instruction: Instruction) -> Instruction:
        location = instruction.uses[0].location
        assert isinstance(location, VirtualLanes)
        taken.append(location.register)
        use = Operand(replace(location, register=number))
        return replace(instruction, uses=(use, *instruction.uses[1:]))

    changed = edited(function, opcode, edit)
    classes = (*function.virtual_registers, function.virtual_registers[taken[0]])
    return replace(changed, virtual_registers=classes), {**label, number: label[taken[0]]}


@pytest.mark.parametrize("opcode", ["I2F", "MUFU.EX2", "STS.128", "FFMA"])
def test_a_use_that_has_lost_its_definition(opcode: str) -> None:
    normalized, _ = gated().normalized(LIMIT)
    function, label = separated(normalized.function, normalized.assignment, opcode)
    words = r"R\d+.*: free by NVIDIA's life ranges, in use by the text"
    with pytest.raises(RejectedKernel, match=words):
        check(function, label)
    # The judges find nothing wrong with it.
    subject, numbers = renumber(function)
    problem = AllocationProblem(subject)
    answer = answer_from_assignment(problem, {new: label[old] for old, new in numbers.items()})
    for judge in (FastVerifier(problem), IndependentVerifier(problem)):
        assert judge.verify(answer).valid


@pytest.mark.parametrize(
    ("successors", "words"),
    [
        ((1,), r"[RP]\d+: .* by NVIDIA's life ranges"),
        ((2,), r"[RP]\d+: .* by NVIDIA's life ranges"),
        ((2, 1), r"BRA at .*: the text leads from bb1 to bb2, bb1"),
    ],
)
def test_edges_that_the_control_flow_loses_or_exchanges(
    successors: tuple[int, ...], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    true_flow = flow.control_flow

    def wrong(function: SassFunction) -> tuple[SassBlock, ...]:
        blocks = true_flow(function)
        return (blocks[0], replace(blocks[1], successors=successors), *blocks[2:])

    for module in (normalize, text_gate):
        monkeypatch.setattr(module, "control_flow", wrong)
    with pytest.raises(RejectedKernel, match=words):
        gated().normalized(LIMIT)


def test_a_guard_that_the_code_is_read_without() -> None:
    """The text agrees with what was read, which the bits of the encoding contradict."""
    kernel = gated()
    instructions = tuple(replace(i, guard=None) for i in kernel.function.instructions)
    misread = replace(kernel.function, instructions=instructions)
    with pytest.raises(RejectedKernel, match=r"the text has no guard, the code @!?P\d"):
        GatedFunction(misread, kernel.ranges).normalized(LIMIT)


def test_the_stack_pointer_as_a_register_like_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webs, "STACK_POINTER", ("R", 999))
    with pytest.raises(RejectedKernel, match=r"MOV.* at 0x0000 .*: the text does not fix R1$"):
        gated().normalized(LIMIT)


def test_a_fixed_register_that_the_text_frees() -> None:
    normalized, _ = gated().normalized(LIMIT)
    code = gated().function
    index = next(n for n, i in enumerate(code.instructions) if i.opcode.startswith("FSETP"))
    fixed = tuple(replace(r, fixed=True) for r in code.instructions[index].definitions)
    other = with_fields(code, index, definitions=fixed)
    with pytest.raises(RejectedKernel, match=r"FSETP.* at .*: the text does not fix P\d"):
        check(normalized.function, normalized.assignment, other)
