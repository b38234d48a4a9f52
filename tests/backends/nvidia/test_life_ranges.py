from __future__ import annotations

from dataclasses import replace

import pytest

from tests.backends.nvidia.assembly import assemble, changed
from verilocc_bench.backends.nvidia.life_range_gate import (
    LifeRangeMismatch,
    check_marks,
    file_masks,
)
from verilocc_bench.backends.nvidia.life_ranges import LifeRanges, Marks, parse_life_ranges
from verilocc_bench.backends.nvidia.records import RegisterReference, SassFunction
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


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("|  1  x      ", "|  1  ?      ", 16, "expected the marks"),
        ("|  1  x      ", "|  2  x      ", 16, "expected 2 marks, found 1"),
        ("|  1  x      ", "|     x      ", 16, "expected no marks, found 1"),
        ("|  4  :vv      v  |", "|  4  :vv      v  ^", 19, "right bar of pane R"),
        ("|  4  :vv      v  |", "|  4  :vv      v v|", 19, "blanks right of 11 registers"),
        ("v  |        | 2     vv  |", "v  |", 19, "right bar of pane P"),
        ("R10 ;          // |", "R10 ;           // |", 19, "expected the panes at column 53"),
        ("/*0040*/", "/*0020*/", 19, "in order of address"),
        ("   GPR   ", "   CPR   ", 11, "pane 'CPR': expected GPR, PRED, UGPR, UPRED"),
        ("| PRED   |", "| GPR    |", 11, "each pane once"),
        ("|  # 01234567890  |", "|  # 01234567898  |", 11, "from 0 on, without a gap"),
        ("|  # 01234567890  |", "|    01234567890  |", 11, "expected `#`"),
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


def add(more: str = "") -> SassFunction:
    return assemble(
        """
        IMAD.MOV.U32 R1, RZ, RZ, R3
        ULDC.64 UR4, c[0x0][0x118]
        @!P0 IADD3 R1, R1, 0x4, RZ
        LDL R10, [R1]
        STG.E desc[UR4][R2.64], R10
        EXIT
        """
        + more
    )


def narrowed(references: tuple[RegisterReference, ...], file: str) -> tuple[RegisterReference, ...]:
    return tuple(replace(each, count=1) if each.file == file else each for each in references)


def test_marks_agree_and_trailing_nops_have_no_row() -> None:
    assert check_marks(add(), parsed()) is None
    assert check_marks(add("NOP"), parsed()) is None


def test_a_wrong_width_is_found() -> None:
    _, constant, _, _, store, _ = add().instructions
    found = check_marks(changed(add(), 4, uses=narrowed(store.uses, "R")), parsed())
    assert found is not None
    assert (found.address, found.line, found.opcode, found.file) == (0x40, 14, "STG.E", "R")
    assert found.ours == "define none, use R2 R10"
    assert found.theirs == "define none, use R2 R3 R10"
    assert str(found) == (
        "STG.E at 0x0040 (line 14), file R: ours define none, use R2 R10; "
        "NVIDIA's define none, use R2 R3 R10"
    )
    wrong = changed(add(), 1, definitions=narrowed(constant.definitions, "UR"))
    assert str(check_marks(wrong, parsed())) == (
        "ULDC.64 at 0x0010 (line 8), file UR: ours define UR4, use none; "
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
    found = check_marks(add(), parsed(TEXT.replace(old, new)))
    assert found is not None
    assert (found.address, found.file) == (address, file)


def test_the_guard_is_a_use() -> None:
    found = check_marks(changed(add(), 2, guard=None), parsed())
    assert found is not None
    none, guard = "define none, use none", "define none, use P0"
    assert (found.file, found.ours, found.theirs) == ("P", none, guard)


def test_rows_and_instructions_must_correspond() -> None:
    missing = check_marks(replace(add(), instructions=add().instructions[:5]), parsed())
    assert missing == LifeRangeMismatch(0x50, 0, "", "", "no instruction", "a row")
    assert check_marks(add("YIELD"), parsed()) is None  # nothing reaches it
    more = check_marks(changed(add("YIELD\n        EXIT"), 5, opcode="NOP"), parsed())
    assert more == LifeRangeMismatch(0x60, 18, "YIELD", "", "an instruction", "no row")
    ranges = replace(parsed(), rows=(*parsed().rows[:2], *parsed().rows[3:]))
    assert check_marks(changed(add(), 2, opcode="NOP"), ranges) is None
    assert "a row at 0x0030" in str(check_marks(add(), ranges))
    moved = check_marks(changed(add(), 5, address=0x60), parsed())
    assert moved == LifeRangeMismatch(0x60, 16, "EXIT", "", "an instruction", "a row at 0x0050")


def one_row(general: str = "", predicates: str = "", registers: int = 8) -> LifeRanges:
    """One instruction with these marks, in panes of so many registers and of seven predicates."""
    sizes, marks = {"GPR": registers, "PRED": 7}, (general, predicates)
    edge = "+".join("-" * (size + 4) for size in sizes.values())
    lines = [edge, "|".join(f"{name:^{size + 4}}" for name, size in sizes.items())]
    for digit in (100, 10, 1):
        if digit < registers:
            sign = "#" if digit == 1 else ""
            panes = (
                "".join(str(k // digit % 10) if digit < size else " " for k in range(size))
                for size in sizes.values()
            )
            lines.append("|".join(f"{sign:>3} {each}" for each in panes))
    counts = (len(each.replace(" ", "")) or "" for each in marks)
    rows = zip(counts, marks, sizes.values(), strict=True)
    lines += [edge, "|".join(f"{count:>3} {each:{size}}" for count, each, size in rows), edge]
    codes = ["/*0000*/" if number == len(lines) - 2 else "" for number in range(len(lines))]
    text = "".join(
        f"        {code:10}// {'+' if line == edge else '|'}{line}{'+' if line == edge else '|'}\n"
        for code, line in zip(codes, lines, strict=True)
    )
    return parsed(f'\t.section\t.text.one,"ax",@progbits\n{text}', "one")


def test_more_than_a_hundred_registers() -> None:
    ranges = one_row(f"{'':7}v{'':93}^", registers=102)
    assert ranges.rows[0].marks[0] == Marks(1 << 101, 1 << 7, 1 << 101 | 1 << 7)


CALL, COPY = "L1:\n@P1 CALL.REL.NOINC L(1)", "LDGSTS.E [R0], [R2.64], P3"
FROM_PREDICATES = "P2R R4, PR, RZ, 0x3"


@pytest.mark.parametrize(
    ("line", "general", "predicates"),
    [
        (CALL, "xv:^", "^x"),
        (COPY, "v:vv", ":::x"),
        (f"@!P0 {COPY}", "v:vv", "v::x"),
        ("R2P PR, R4, 0x3", "    v", ": :"),
        (FROM_PREDICATES, "    ^", " :"),
        (f"@P2 {FROM_PREDICATES}", "    ^", "  v"),
    ],
)
def test_each_exception(line: str, general: str, predicates: str) -> None:
    assert check_marks(assemble(line), one_row(general, predicates)) is None
    other = changed(assemble(line), 0, opcode="OTHER")
    assert check_marks(other, one_row(general, predicates)) is not None


@pytest.mark.parametrize(
    ("line", "general", "predicates"),
    [
        # What we have must be there for a call, too.
        (CALL, "xv:^", "^^"),
        # The guard is no trailing predicate; registers have no exception.
        (f"@!P0 {COPY}", "v:vv", "x  x"),
        (COPY, "v:vv", "   ^"),
        (COPY, "v:vv", "   :"),
        (COPY, "x:vv", "   x"),
        (COPY, "v:vv", " ^ x"),
        # Predicates beside the mask, and the general register, are compared.
        ("R2P PR, R4, 0x3", "    v", "  ^"),
        ("R2P PR, R4, 0x3", "    :", ""),
        ("@P2 P2R R4, PR, RZ, 0x1", "    ^", "  :"),
    ],
)
def test_an_exception_tolerates_nothing_else(line: str, general: str, predicates: str) -> None:
    assert check_marks(assemble(line), one_row(general, predicates)) is not None


def test_an_exception_has_its_own_registers() -> None:
    call = changed(assemble(CALL), 0, guard=None, definitions=(RegisterReference("R", 5, 1, 0),))
    assert check_marks(call, one_row("xv:^")) is not None
    moved = assemble(FROM_PREDICATES)
    first, *others = moved.instructions[0].uses
    free = changed(moved, 0, uses=(first, *(replace(each, fixed=False) for each in others)))
    assert check_marks(free, one_row("    ^")) is not None


def test_masks_of_references() -> None:
    places = (("R", 4, 2), ("P", 1, 1), ("UR", 6, 1), ("UP", 0, 1), ("R", 0, 1))
    references = [RegisterReference(file, first, count, 0) for file, first, count in places]
    assert file_masks(references) == (0b110001, 0b10, 1 << 6, 1)
