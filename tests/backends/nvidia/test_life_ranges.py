from __future__ import annotations

from dataclasses import replace

import pytest

from verilocc_bench.backends.nvidia.life_range_gate import (
    LifeRangeMismatch,
    check_marks,
    file_masks,
)
from verilocc_bench.backends.nvidia.life_ranges import LifeRanges, Marks, parse_life_ranges
from verilocc_bench.backends.nvidia.records import (
    RegisterReference,
    SassFunction,
    SassGuard,
    SassInstruction,
)
from verilocc_bench.errors import InputError

TEXT = """\
\t.target\tsm_80

//--------------------- .text.add --------------------------
\t.section\t.text.add,"ax",@progbits
\t.sectioninfo\t@"SHI_REGISTERS=14"
                                                    // +-----------------+--------+-----------+
                                                    // |       GPR       | PRED   |   UGPR    |
                                                    // |                 |        |           |
                                                    // |    00000000001  |        |           |
                                                    // |  # 01234567890  |  # 01  | # 012345  |
                                                    // +-----------------+--------+-----------+
        .type           add,@function               // |                 |        |           |
add:                                                // |                 |        |           |
        /*0000*/      IMAD.MOV.U32 R1, RZ, RZ, R3 ; // |  2  ^ v         |        |           |
        /*0010*/      ULDC.64 UR4, c[0x0][0x118] ;  // |  1  :           |        | 2     ^^  |
        /*0020*/ @!P0 IADD3 R1, R1, 0x4, RZ ;       // |  1  x           |  1 v   | 2     ::  |
.L_x_1:                                             // |  1  :           |        | 2     ::  |
        /*0030*/      LDL R10, [R1] (*"Spill"*);    // |  2  v        ^  |        | 2     ::  |
        /*0040*/      STG.E [R2.64], R10 ;          // |  4  :vv      v  |        | 2     vv  |
.L_x_2:                                             // +.................+........+...........+
        /*0050*/      EXIT ;                        // |  1  :           |        |           |
.L_x_3:                                             // +-----------------+--------+-----------+

                                                    // Legend:
                                                    //     ^       : Register assignment
"""
CALLED = """\
\t.section\t.text.called,"ax",@progbits
                                // +------------+
                                // |    GPR     |
                                // |  # 0123    |
                                // +------------+
$called$helper:                 // |            |
        /*0000*/ RET.REL R2 ;   // |  2   vv    |
.L_x_4:                         // +------------+
"""


def parsed(text: str = TEXT, name: str = "add") -> LifeRanges:
    return parse_life_ranges(text, "add.lrm")[name]


def test_marks_of_each_pane() -> None:
    ranges = parsed()
    assert ranges.name == "add"
    assert [row.address for row in ranges.rows] == [0, 0x10, 0x20, 0x30, 0x40, 0x50]
    assert [row.line for row in ranges.rows] == [14, 15, 16, 18, 19, 21]
    general = [row.marks[0] for row in ranges.rows]
    assert general[0] == Marks(defined=0b10, used=0b1000, live=0b1010)
    assert general[1] == Marks(defined=0, used=0, live=0b10)
    assert general[2] == Marks(defined=0b10, used=0b10, live=0b10)
    assert general[3] == Marks(defined=1 << 10, used=0b10, live=1 << 10 | 0b10)
    assert [row.marks[1].used for row in ranges.rows] == [0, 0, 1, 0, 0, 0]
    assert ranges.rows[1].marks[2] == Marks(defined=0b110000, used=0, live=0b110000)
    assert all(row.marks[3] == Marks(0, 0, 0) for row in ranges.rows)


def test_two_functions_have_panes_of_their_own() -> None:
    functions = parse_life_ranges(TEXT + CALLED)
    assert list(functions) == ["add", "called"]
    assert functions["add"] == parsed()
    assert functions["called"].rows[0].marks[0] == Marks(0, 0b1100, 0b1100)


def test_more_than_a_hundred_registers() -> None:
    hundreds = " " * 100 + "11"
    tens = "".join(str(k // 10 % 10) for k in range(102))
    units = "".join(str(k % 10) for k in range(102))
    empty = " " * 102
    marks = list(empty)
    marks[7], marks[101] = "v", "^"
    text = "\n".join(
        [
            '\t.section\t.text.wide,"ax",@progbits',
            " " * 32 + f"// +----{'-' * 102}+",
            " " * 32 + f"// |{'GPR':^106}|",
            " " * 32 + f"// |    {hundreds}|",
            " " * 32 + f"// |    {tens}|",
            " " * 32 + f"// |  # {units}|",
            " " * 32 + f"// +----{'-' * 102}+",
            f"{'        /*0000*/ MOV R101, R7 ;':32}" + f"// |  2 {''.join(marks)}|",
            " " * 32 + f"// +----{'-' * 102}+",
        ]
    )
    assert parsed(text, "wide").rows[0].marks[0] == Marks(1 << 101, 1 << 7, 1 << 101 | 1 << 7)


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("|  1  x      ", "|  1  ?      ", 16, "expected the marks"),
        ("|  1  x      ", "|  1  1      ", 16, "expected the marks"),
        ("|  1  x      ", "|  2  x      ", 16, "expected 2 marks, found 1"),
        ("|  1  x      ", "|     x      ", 16, "expected no marks, found 1"),
        ("|  1  x      ", "|  :  x      ", 16, "expected : marks, found 1"),
        ("|  4  :vv      v  |", "|  4  :vv      v  ^", 19, "right bar of pane R"),
        ("|  4  :vv      v  |", "|  4  :vv      v v|", 19, "blanks right of 11 registers"),
        ("v  |        | 2     vv  |", "v  |", 19, "right bar of pane P"),
        ("R10 ;          // |", "R10 ;           // |", 19, "expected the panes at column 53"),
        ("/*0040*/", "/*0020*/", 19, "in order of address"),
        ("   GPR   ", "   CPR   ", 11, "pane 'CPR': expected GPR, PRED, UGPR, UPRED"),
        ("| PRED   |", "| GPR    |", 11, "each pane once"),
        ("|  # 01234567890  |", "|  # 01234567898  |", 11, "from 0 on, without a gap"),
        ("|  # 01234567890  |", "|  # 0123456789x  |", 11, "numbers of its registers"),
        ("|  # 01234567890  |", "|    01234567890  |", 11, "expected `#`"),
        ("|    00000000001  |        |", "|    00000000001  |         ", 9, "header of the panes"),
        ("\t.section\t.text.add", "\t.section\t.debug.add", 6, "expected a .section .text"),
        (".L_x_1:  ", "/* 0x0 */", 17, "leave out nvdisasm's option -hex"),
        ("// +--", "// ---", 14, "before the header of its panes"),
    ],
)
def test_malformed_text_names_the_line(old: str, new: str, line: int, words: str) -> None:
    assert old in TEXT
    with pytest.raises(InputError, match=words) as caught:
        parse_life_ranges(TEXT.replace(old, new), "add.lrm")
    assert (caught.value.source, caught.value.line) == ("add.lrm", line)


@pytest.mark.parametrize("lines", [6, 7, 10, 11, 13, 15, 21])
def test_truncated_text(lines: int) -> None:
    with pytest.raises(InputError, match="expected"):
        parse_life_ranges("".join(TEXT.splitlines(keepends=True)[:lines]))


def test_a_function_that_is_not_closed_before_the_next() -> None:
    open_end = TEXT[: TEXT.index(".L_x_3")]
    with pytest.raises(InputError, match="closes the panes of 'add'"):
        parse_life_ranges(open_end + CALLED)


def test_a_function_that_stands_there_twice() -> None:
    with pytest.raises(InputError, match="a second set of panes"):
        parse_life_ranges(TEXT + TEXT)


@pytest.mark.parametrize("text", ["", "\t.target\tsm_80\n"])
def test_text_without_life_ranges(text: str) -> None:
    with pytest.raises(InputError, match="nvdisasm -c -lrm narrow"):
        parse_life_ranges(text)


# The gate.


def reference(name: str, *, count: int = 1, fixed: bool = False) -> RegisterReference:
    file = name.rstrip("0123456789")
    return RegisterReference(file, int(name.removeprefix(file)), count, 0, fixed)


def references(names: str) -> tuple[RegisterReference, ...]:
    """`R4:2 UR6` and, with `!`, fixed ones."""
    found = []
    for word in names.split():
        name, _, count = word.rstrip("!").partition(":")
        found.append(reference(name, count=int(count or 1), fixed=word.endswith("!")))
    return tuple(found)


def instruction(
    index: int, opcode: str, defined: str = "", used: str = "", guard: SassGuard | None = None
) -> SassInstruction:
    return SassInstruction(
        address=16 * index,
        line=2 * index + 5,
        opcode=opcode,
        operands=(),
        guard=guard,
        never=False,
        definitions=references(defined),
        uses=references(used),
        encoding=0,
        target=None,
    )


def function(*instructions: SassInstruction) -> SassFunction:
    return SassFunction("add", instructions, {}, 14)


ADD = (
    instruction(0, "IMAD.MOV.U32", "R1", "R3"),
    instruction(1, "ULDC.64", "UR4:2"),
    instruction(2, "IADD3", "R1", "R1", SassGuard("P", 0, negated=True)),
    instruction(3, "LDL", "R10", "R1"),
    instruction(4, "STG.E", "", "R2:2 R10 UR4:2"),
    instruction(5, "EXIT"),
)


def test_marks_agree_and_trailing_nops_have_no_row() -> None:
    assert check_marks(function(*ADD), parsed()) is None
    assert check_marks(function(*ADD, instruction(6, "NOP")), parsed()) is None


def test_a_wrong_width_is_found() -> None:
    wrong = replace(ADD[4], uses=references("R2 R10 UR4:2"))
    found = check_marks(function(*ADD[:4], wrong, ADD[5]), parsed())
    assert found is not None
    assert (found.address, found.line, found.opcode, found.file) == (0x40, 13, "STG.E", "R")
    assert found.ours == "define none, use R2 R10"
    assert found.theirs == "define none, use R2 R3 R10"
    assert str(found) == (
        "STG.E at 0x0040 (line 13), file R: ours define none, use R2 R10; "
        "NVIDIA's define none, use R2 R3 R10"
    )
    wrong = replace(ADD[1], definitions=references("UR4"))
    assert str(check_marks(function(ADD[0], wrong, *ADD[2:]), parsed())) == (
        "ULDC.64 at 0x0010 (line 7), file UR: ours define UR4, use none; "
        "NVIDIA's define UR4 UR5, use none"
    )


@pytest.mark.parametrize(
    ("old", "new", "address", "file"),
    [
        ("|  2  ^ v   ", "|  2  ^ :   ", 0x00, "R"),
        ("|  2  ^ v   ", "|  2  x v   ", 0x00, "R"),
        ("|  1 v   |", "|  1 ^   |", 0x20, "P"),
        ("|  1 v   |", "|        |", 0x20, "P"),
        ("| 2     ^^  |", "| 2    ^^   |", 0x10, "UR"),
        ("| 2     vv  |", "| 2     v:  |", 0x40, "UR"),
    ],
)
def test_a_corrupted_mark_is_found(old: str, new: str, address: int, file: str) -> None:
    assert old in TEXT
    found = check_marks(function(*ADD), parsed(TEXT.replace(old, new)))
    assert found is not None
    assert (found.address, found.file) == (address, file)


def test_the_guard_is_a_use() -> None:
    found = check_marks(function(*ADD[:2], replace(ADD[2], guard=None), *ADD[3:]), parsed())
    assert found is not None
    assert (found.file, found.ours, found.theirs) == (
        "P",
        "define none, use none",
        "define none, use P0",
    )


def test_rows_and_instructions_must_correspond() -> None:
    missing = check_marks(function(*ADD[:5]), parsed())
    assert missing == LifeRangeMismatch(0x50, 0, "", "", "no instruction", "a row")
    more = check_marks(function(*ADD, instruction(6, "BRA")), parsed())
    assert more == LifeRangeMismatch(0x60, 17, "BRA", "", "an instruction", "no row")
    moved = check_marks(function(*ADD[:5], replace(ADD[5], address=0x60)), parsed())
    assert moved == LifeRangeMismatch(0x60, 15, "EXIT", "", "an instruction", "a row at 0x0050")


def one_row(general: str = "", predicates: str = "") -> LifeRanges:
    def pane(marks: str) -> str:
        count = len(marks.replace(" ", "")) or ""
        return f" {count:>2} {marks:8}"

    return parsed(
        '\t.section\t.text.one,"ax",@progbits\n'
        "                  // +------------+------------+\n"
        "                  // | GPR        | PRED       |\n"
        "                  // |  # 01234567|  # 0123456 |\n"
        "                  // +------------+------------+\n"
        f"        /*0000*/  // |{pane(general)}|{pane(predicates)}|\n"
        "                  // +------------+------------+\n",
        "one",
    )


AGREES: list[tuple[SassInstruction, str, str]] = [
    (instruction(0, "CALL.REL.NOINC", guard=SassGuard("P", 1, negated=False)), "xv:^", "^x"),
    (instruction(0, "LDGSTS.E", "", "R0 R2:2 P3"), "v:vv", ":::x"),
    (instruction(0, "LDGSTS.E", "", "R0 R2:2 P3", SassGuard("P", 0, negated=True)), "v:vv", "v::x"),
    (instruction(0, "R2P", "P0! P1!", "R4"), "    v", ": :"),
    (instruction(0, "P2R", "R4", "P0! P1!"), "    ^", " :"),
    (instruction(0, "P2R", "R4", "P0! P1!", SassGuard("P", 2, negated=False)), "    ^", "  v"),
]


@pytest.mark.parametrize(("subject", "general", "predicates"), AGREES)
def test_each_exception(subject: SassInstruction, general: str, predicates: str) -> None:
    assert check_marks(function(subject), one_row(general, predicates)) is None
    other = replace(subject, opcode="OTHER")
    assert check_marks(function(other), one_row(general, predicates)) is not None


@pytest.mark.parametrize(
    ("subject", "general", "predicates"),
    [
        # What we have must be there for a call, too.
        (instruction(0, "CALL.REL.NOINC", guard=SassGuard("P", 1, negated=False)), "xv:^", "^^"),
        (instruction(0, "CALL.REL.NOINC", "R5", ""), "xv:^", ""),
        # The guard is no trailing predicate; registers have no exception.
        (instruction(0, "LDGSTS.E", "", "R0 P3", SassGuard("P", 0, negated=True)), "v", "x  x"),
        (instruction(0, "LDGSTS.E", "", "R0 P3"), "v", "   ^"),
        (instruction(0, "LDGSTS.E", "", "R0 P3"), "v", "   :"),
        (instruction(0, "LDGSTS.E", "", "R0 P3"), "x", "   x"),
        (instruction(0, "LDGSTS.E", "", "R0 P3"), "v", " ^ x"),
        # Predicates beside the mask, and the general register, are compared.
        (instruction(0, "R2P", "P0! P1!", "R4"), "    v", "  ^"),
        (instruction(0, "R2P", "P0! P1!", "R4"), "    :", ""),
        (instruction(0, "P2R", "R4", "P0!", SassGuard("P", 2, negated=False)), "    ^", "  :"),
        (instruction(0, "P2R", "R4", "P0! P1"), "    ^", ""),
    ],
)
def test_an_exception_tolerates_nothing_else(
    subject: SassInstruction, general: str, predicates: str
) -> None:
    assert check_marks(function(subject), one_row(general, predicates)) is not None


def test_masks_of_references() -> None:
    assert file_masks(references("R4:2 P1 UR6 UP0 R0")) == (0b110001, 0b10, 1 << 6, 1)
