"""The gate's last step on short functions: each line names what nvdisasm shows in use beside it."""

from __future__ import annotations

import pytest

from tests.backends.nvidia.assembly import assemble, encoded
from verilocc_bench.backends.nvidia.life_ranges import FILES, LifeRangeRow, LifeRanges, Marks
from verilocc_bench.backends.nvidia.normalize import normalize_sass
from verilocc_bench.backends.nvidia.read import GatedFunction
from verilocc_bench.backends.nvidia.records import SassInstruction
from verilocc_bench.backends.nvidia.text_gate import check_text
from verilocc_bench.errors import InputError, RejectedKernel
from verilocc_bench.ir import print_function

LIMIT = 64


def kernel(listing: str) -> GatedFunction:
    """`LINE | REGISTERS` for each instruction, as nvdisasm shows them, and labels."""
    lines = [line.strip() for line in listing.strip().splitlines()]
    code = encoded(assemble("\n".join(line.partition("|")[0] for line in lines)), guard_bits)
    shown = [line.partition("|")[2].split() for line in lines if "|" in line]
    rows = []
    for instruction, names in zip(code.instructions, shown, strict=True):
        live = dict.fromkeys(FILES, 0)
        for name in names:
            file = name.rstrip("0123456789")
            live[file] |= 1 << int(name.removeprefix(file))
        r, p, ur, up = (Marks(0, 0, live[file]) for file in FILES)
        rows.append(LifeRangeRow(instruction.address, instruction.line, (r, p, ur, up)))
    return GatedFunction(code, LifeRanges(code.name, tuple(rows)))


def guard_bits(_: int, instruction: SassInstruction) -> int:
    guard = instruction.guard
    return (7 if guard is None else guard.index | guard.negated << 3) << 12


def refusal(listing: str, old: str = "", new: str = "", limit: int = LIMIT) -> str:
    """What the gate says of a function with `new` for `old` in its text.

    A virtual register that the text has more lies where %0 lies.
    """
    subject = kernel(listing)
    normalized = normalize_sass(subject.function, LIMIT)
    text, label = print_function(normalized.function), normalized.assignment
    assert old in text
    text, label = text.replace(old, new), {**label, len(label): label[0]}
    with pytest.raises(RejectedKernel) as caught:
        check_text(text, label, subject.function, subject.ranges, limit)
    assert caught.value.kind == "text-contradicts-code"
    return caught.value.reason


STRAIGHT = """
    MOV R2, 0x1                      | R2
    ISETP.NE.AND P0, P1, R2, RZ, PT  | R2 P0 P1
    MOV R3, 0x2                      | R2 R3 P0 P1
    @P0 MOV R4, R2                   | R2 R3 R4 P0 P1
    @P1 FADD R3, R3, R2              | R2 R3 R4 P1
    STS.64 [RZ], R2                  | R2 R3 R4
    MOV R2, 0x3                      | R2 R4
    STS [R4], R2                     | R2 R4
    EXIT                             |
"""
GUARDED = """
    MOV R2, 0x1                      | R2
    MOV R5, 0x5                      | R2 R5
    S2R R3, SR_TID.X                 | R2 R3 R5
    ISETP.NE.AND P0, PT, R3, RZ, PT  | R2 R3 R5 P0
    MOV R4, RZ                       | R2 R4 R5 P0
    @P0 STS [R4], R5                 | R2 R4 R5 P0
    L1:
    S2R R3, SR_TID.X                 | R2 R3 P0
    @P0 MOV R2, 0x2                  | R2 R3 P0
    STS [R3], R2                     | R2 R3 P0
    @!P0 BRA L(1)                    | R2 P0
    EXIT                             |
"""
LOOPING = """
    MOV R2, 0x1                      | R2 R9
    MOV R6, R2                       | R2 R6 R9
    MOV R3, 0x3                      | R3 R6 R9
    L1:
    FADD R4, R9, R9                  | R3 R4 R6 R9
    ISETP.NE.AND P2, PT, R4, RZ, PT  | R3 R4 R6 R9 P2
    @P2 BRA L(1)                     | R3 R6 R9 P2
    STS [R3], R6                     | R3 R6
    EXIT                             |
"""
THROUGH = """
    MOV R2, 0x1                      | R2 R9
    L1:
    FADD R4, R9, R9                  | R2 R4 R9
    ISETP.NE.AND P2, PT, R4, RZ, PT  | R2 R4 R9 P2
    @P2 BRA L(1)                     | R2 R9 P2
    STS [RZ], R2                     | R2
    EXIT                             |
"""
BRANCHES = """
    ISETP.NE.AND P0, P1, R9, RZ, PT  | R9 P0 P1
    @P0 EXIT                         | R9 P0 P1
    L1:
    ISETP.NE.AND P0, PT, R9, RZ, PT  | R9 P0 P1
    BRA P1, L(1)                     | R9 P0 P1
    @!P1 BRA P0, L(1)                | R9 P0 P1
    EXIT                             |
"""
UNIFORM = """
    UISETP.NE.AND UP0, UPT, UR9, URZ, UPT  | UR9 UP0
    UMOV UR6, 0x1                          | UR6 UP0
    @UP0 UMOV UR6, 0x2                     | UR6 UP0
    UMOV UR7, 0x3                          | UR6 UR7
    UIADD3 UR6, UR6, UR7, URZ              | UR6 UR7
    MOV R2, UR6                            | R2 UR6
    STS [RZ], R2                           | R2
    EXIT                                   |
"""
FIXED = """
    MOV R2, R1                          | R1 R2
    ISETP.NE.AND P2, PT, R2, RZ, PT     | R1 R2 P2
    ISETP.NE.AND P3, PT, R2, 0x2, PT    | R1 R2 P2 P3
    P2R R2, PR, RZ, 0xc                 | R1 R2
    STS [RZ], R2                        | R1 R2
    EXIT                                | R1
"""
STACK = "S2R R3, SR_TID.X | R1 R3\nSTS [RZ], R3 | R1 R3\nEXIT | R1"
EXITS = """
    MOV R1, R2                       | R1 R2 R3
    ISETP.NE.AND P0, PT, R2, RZ, PT  | R1 R2 R3 P0
    @P0 EXIT                         | R1 R2 R3 P0
    STS.64 [RZ], R2                  | R1 R2 R3
    EXIT                             | R1
"""


@pytest.mark.parametrize(
    "listing", [STRAIGHT, GUARDED, LOOPING, THROUGH, BRANCHES, UNIFORM, FIXED, STACK, EXITS]
)
def test_a_text_of_its_code_passes(listing: str) -> None:
    kernel(listing).normalized(LIMIT)


@pytest.mark.parametrize(
    ("listing", "row", "names", "shown"),
    [
        # A value that lives through instructions that do not name it.
        (GUARDED, "MOV R4", "R5, P0", False),
        (LOOPING, "FADD", "R3, R6", False),
        (THROUGH, "FADD", "R2", False),
        (UNIFORM, "UMOV UR7", "UR6", False),
        # What the text never defines is in use from the entry on.
        (LOOPING, "MOV R2", "R9", False),
        # A value that nobody reads any more, or not yet.
        (STRAIGHT, "ISETP", "R3", True),
        (STRAIGHT, "STS [R4]", "R3, P0, P1", True),
        (LOOPING, "FADD", "R2", True),
        (LOOPING, "@P2 BRA", "R2", True),
        (LOOPING, "@P2 BRA", "R2, P0, UR3, UP1", True),
        (LOOPING, "MOV R6", "P2", True),
        (UNIFORM, "STS", "UR6, UP0", True),
        # Beside registers that the text fixes.
        (FIXED, "STS", "R0", True),
        (FIXED, "STS", "P1", True),
        (FIXED, "STS", "P4", True),
        (STACK, "STS", "R2", True),
    ],
)
def test_a_row_that_disagrees(listing: str, row: str, names: str, shown: bool) -> None:
    lines = [line for line in listing.splitlines() if "|" in line]
    index = next(n for n, line in enumerate(lines) if line.strip().startswith(row))
    code, _, registers = lines[index].partition("|")
    named, kept = names.split(", "), registers.split()
    assert set(kept).isdisjoint(named) if shown else set(kept) >= set(named)
    kept = [*kept, *named] if shown else [each for each in kept if each not in named]
    changed = listing.replace(lines[index], f"{code}|{' '.join(kept)}")
    instruction = kernel(changed).function.instructions[index]
    place = f"f, {instruction.opcode} at 0x{16 * index:04x} (line {instruction.line})"
    theirs, ours = ("in use", "free") if shown else ("free", "in use")
    words = f"{names}: {theirs} by NVIDIA's life ranges, {ours} by the text"
    assert refusal(changed) == f"{place}: {words}"


SPLIT = """
    BRA L(2)     |
    L1:
    STS [RZ], R2 | R2
    EXIT         |
    L2:
    MOV R2, 0x1  | R2
    BRA L(1)     | R2
"""
MOVE, STORE = ", MOV at 0x0000 (line 6): the ", ", STS.64 at 0x0030 (line 12): the "


@pytest.mark.parametrize(
    ("listing", "old", "new", "words"),
    [
        (EXITS, "\nbb2\n", "\nbb2->bb0\n", ": the text leads from bb2 to bb0, the code not"),
        (EXITS, "R1=", "R9=", f"{MOVE}text has R9, the code R1"),
        (EXITS, "R1=", "UR1=", f"{MOVE}text has UR1, the code R1"),
        (EXITS, "R1=", "R[1:2]=", f"{MOVE}text has R1 and 1 more, the code R1"),
        (EXITS, "%3:R2", "%3:R2.1", f"{STORE}text has R3, the code R2 and 1 more"),
        (EXITS, "R/2", "R", f"{STORE}class R2 does not align R2 and 1 more"),
        (EXITS, "P 1 P", "P 1 P UP", ": %1 may lie in P and UP, the code has it in P"),
        # The blocks show R2 as if both were one value; the first row does not.
        (SPLIT, "%0=MOV", "%1=MOV", ", BRA at 0x0000 (line 6): R2: free by NVIDIA's life ranges, "
         "in use by the text"),
    ],
)  # fmt: skip
def test_the_words_of_a_refusal(listing: str, old: str, new: str, words: str) -> None:
    assert refusal(listing, old, new) == f"f{words}"


def test_a_limit_below_what_ptxas_adds() -> None:
    assert refusal(EXITS, limit=1) == "f: the text allows 62 registers of R, not 0"


def test_a_text_that_cannot_be_read() -> None:
    subject = kernel(EXITS)
    with pytest.raises(InputError, match=r"^the normalized text:"):
        check_text("verilocc-bench 1\n", {}, subject.function, subject.ranges, LIMIT)
