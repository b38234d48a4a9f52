"""The tokenizer `text`, for models that read functions: `whole` and `window`.

Its words come from the targets alone. The name of a virtual or a physical
register is one token (`%2000` and above are two). `:V2`, `.0-1` and `..` are
one token each, and so is each part of an answer's object: `{"`, `%12`,
`": "`, `v4`, `"`, `, "`, `}`.

The tokenizer keeps answers exactly. It shortens prompts: it drops what
allocation cannot depend on.

- It drops an opcode that defines nothing, and a line without operands. It
  replaces any other opcode by its kind: `=copy`, `=load`, `=matrix` or
  `=other`; and by `=nothing` if the instruction reads no operand.
- It drops the bases in class lines, which follow from the name.
- It drops what stands above the line `place` of a window: the lines below it
  list all that is free.
- It drops the first lines of `whole` except the target, its last line,
  commas, brackets, and marks of implicit operands.
"""

from __future__ import annotations

from collections.abc import Iterator
from re import escape
from typing import Any

from verilocc_bench.targets import TARGETS, TargetFile
from verilocc_bench.training.word_tokenizer import UNITS, WIDEST, word_tokenizer

REGISTERS = 2_000
"""Virtual registers with a token of their own; others take two, one for the last two digits."""

BLOCKS = 100
TIES = 8

MARKS = ("\n", "!", "&", "@", "@!", "->", "..", "place", "given", "reserved")
WINDOW_MARKS = ("beyond", "free", "also")
OBJECT = ('{"', "{}", '": "', ', "', '"', "}")
OPCODES = ("=copy", "=load", "=matrix", "=other", "=nothing")
CLASS_REMARKS = (".from", ".to", ".by")

OPCODE = r"[A-Z_][\w.$]*"
LOADS = r"(?:GLOBAL|BUFFER|FLAT|SCRATCH|DS|S)_(?:LOAD|READ)|LD[A-Z]*(?=[. \n])"
MATRIX = r"V_S?MFMA|[A-Z]+MMA(?=[. \n])"


def text_tokenizer() -> Any:
    """A transformers tokenizer for `whole` and `window`."""
    return word_tokenizer(_words(), list(_rewritten()), _pattern())


def _files() -> dict[str, TargetFile]:
    """The register files of all targets whose units are numbered, by name."""
    found: dict[str, TargetFile] = {}
    for target in TARGETS.values():
        for file in target.files:
            if not file.unit_names:
                found[file.name] = file
    return found


def _unit_names() -> list[str]:
    """The names of the files whose units have names, and of these units; longest first."""
    files = [file for target in TARGETS.values() for file in target.files if file.unit_names]
    names = {name for file in files for name in (*file.unit_names, file.name)}
    return sorted(names, key=lambda name: (-len(name), name))


def _class_letters() -> Iterator[str]:
    """The letters that class names begin with.

    A class of one file has the file's letter or the target's name for it; a
    class of all vector files has the letters of all of them.
    """
    for target in TARGETS.values():
        yield from (target.class_letters.get(file.letter, file.letter) for file in target.files)
        yield from target.class_letters.values()
        yield "".join(sorted(target.file(name).letter for name in target.vector_files))


def _words() -> Iterator[str]:
    yield from (*MARKS, *WINDOW_MARKS, *OBJECT, *OPCODES)
    yield from (f"target {name}" for name in TARGETS)
    yield from _unit_names()
    for file in _files().values():
        yield f"{file.name}:"
        yield from (f"{file.name}{number}" for number in range(file.count))
    for letters in _class_letters():
        yield f":{letters}"
        yield from (f":{letters}{width}" for width in range(2, WIDEST + 1))
    yield from CLASS_REMARKS
    yield from (str(number) for number in range(UNITS + 1))
    yield from (f"{number:02}" for number in range(10))
    yield from (f":{number}" for number in range(UNITS))
    yield from (f".{lane}" for lane in range(WIDEST))
    yield from (f".{lane}-{last}" for last in range(WIDEST) for lane in range(last))
    yield from (f"~{number}" for number in range(TIES))
    yield from (f"bb{number}" for number in range(BLOCKS))
    yield from (f"%{number}" for number in range(REGISTERS))


def _rewritten() -> Iterator[tuple[str, str]]:
    """Patterns and their replacements, in the order in which they are applied."""
    numbered = "|".join(_files())
    named = "|".join(map(escape, _unit_names()))
    register = rf"(?:{named}|(?:{numbered})\d+)(?:\.\.|(?![\w.$]))"
    copies = sorted({opcode for target in TARGETS.values() for opcode in target.copy_opcodes})
    yield r"window \d+ of \d+\n(?:(?:registers|reserved|class) [^\n]*\n)*", ""
    yield r"verilocc-bench \d+\n|Assign registers to [^\n]*\n", ""
    yield rf" (?:{named}):\d+=[\w,]+", ""
    # A class line keeps its name alone, with the colon that it has elsewhere.
    yield r" \d+(?: [A-Za-z]+(?:\[\d+-\d+\])?(?:/\d+)?)+(?=\n)", ""
    yield r"\nclass ", ":"
    yield r"(?<=\n)free (?=[A-Z])", "free :"
    yield r"(?<=\n)(?!bb\d)[A-Z_][\w.$]*\n", ""
    yield rf"(?<=[\n ])(?!{register}){OPCODE}(?=[ \n])", ""
    yield rf"=(?:{'|'.join(map(escape, copies))})(?=[ \n])", "=copy"
    yield rf"=(?:{LOADS})[\w.$]*(?=[ \n])", "=load"
    yield rf"=(?:{MATRIX})[\w.$]*(?=[ \n])", "=matrix"
    yield rf"=(?!{register}){OPCODE}\n", "=nothing "
    yield rf"=(?!{register}){OPCODE}", "=other"
    # These lines begin with a word of their own.
    yield r"\n(?=reserved |place |given |beyond |free |%\d+ also )", " "
    yield r"(?<=[A-Za-z])\[(?=\d)", ""


def _pattern() -> str:
    """The pattern of one word; the tokenizer drops the text between words."""
    numbered = "|".join(sorted(_files(), key=len, reverse=True))
    return "|".join(
        [
            r'": "|\{"|, "|"|\{\}|\}|\n',
            r"%1\d{3}(?!\d)|%\d{1,3}(?!\d)|%\d+(?=\d\d(?!\d))",
            "|".join(OPCODES),
            rf"(?:{'|'.join(map(escape, _unit_names()))})(?!\w)",
            rf"(?<!\w)(?:{numbered})(?:\d+|:)",
            r":[A-Z]+\d*|:\d+|\.(?:from|to|by)|\.\d+(?:-\d+)?",
            r"\.\.|~\d+|@!?|!|&|->",
            r"bb\d{1,2}(?!\d)|bb\d+(?=\d\d(?!\d))",
            "|".join([r"target \w+", *filter(str.isalpha, (*MARKS, *WINDOW_MARKS)), r"\d+"]),
        ]
    )
