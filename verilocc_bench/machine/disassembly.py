"""Machine code as text, by LLVM's disassembler, taken apart into mnemonics and operands.

`llvm-objdump` of LLVM 22 decodes the bytes. The environment variable
VERILOCC_BENCH_OBJDUMP names it; otherwise it is `llvm-objdump-22` or
`llvm-objdump` of the PATH. What it cannot decode is refused.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from verilocc_bench.errors import InputError
from verilocc_bench.machine.code_object import KernelCode
from verilocc_bench.tool_process import run_tool

_VARIABLE = "VERILOCC_BENCH_OBJDUMP"
_NAMES = ("llvm-objdump-22", "llvm-objdump")
_SECONDS = 120
_LINE = re.compile(r"^\t(?P<text>[^/]*?)\s*// (?P<address>[0-9A-F]{12}): (?P<words>[0-9A-F ]+)")
_LABEL = re.compile(r"^[0-9a-f]+ <(.*)>:$")
_MODIFIER = re.compile(r"[a-z0-9_]+(?::.*)?\Z")
_BRANCH = re.compile(r"(s_branch|s_cbranch_(?:scc[01]|vccn?z|execn?z)) \w+$")


@dataclass(frozen=True, slots=True)
class CodeInstruction:
    """One instruction: where it is in its section, what it is, and how many bytes it has.

    `modifiers` are the words after the operands: `glc` is ("glc", ""),
    `offset:16` is ("offset", "16"). `text` is the disassembler's own line.
    """

    address: int
    mnemonic: str
    operands: tuple[str, ...]
    modifiers: tuple[tuple[str, str], ...]
    size: int
    text: str


@cache
def find_objdump() -> Path:
    """The program. Raises InputError without one of LLVM 22."""
    named = os.environ.get(_VARIABLE)
    for name in (named,) if named else _NAMES:
        found = shutil.which(name)
        if found is None:
            continue
        said = run_tool(Path(found), ["--version"], Path(), 20)
        if re.search(rb"\bLLVM version 22\.", said.stdout):
            return Path(found)
    raise InputError(
        "machine code needs llvm-objdump of LLVM 22; install it (Debian: apt-get install llvm-22), "
        f"or name it in {_VARIABLE}"
    )


def disassemble(data: bytes, kernel: KernelCode) -> tuple[CodeInstruction, ...]:
    """The instructions of a kernel, in the order of their addresses.

    Raises InputError for bytes that are not instructions of its architecture.
    """
    end = kernel.entry + kernel.size
    place = ("-j", kernel.section, f"--start-address={kernel.entry}", f"--stop-address={end}")
    found = []
    for line in _objdump(data, kernel.arch, *place):
        if not line.startswith("\t"):
            continue
        match = _LINE.match(line)
        if match is None:
            raise InputError(f"kernel {kernel.name}: cannot decode {line.strip()[:80]!r}")
        text, words = match["text"], match["words"].split()
        if branch := _BRANCH.match(text):
            # Where the code object has labels, their names stand in the place of distances.
            text = f"{branch[1]} {int(words[0], 16) & 0xFFFF}"
        found.append(parse_instruction(text, int(match["address"], 16), 4 * len(words)))
    if not found:
        raise InputError(f"kernel {kernel.name} has no instructions")
    return tuple(found)


def refuse_undecodable(data: bytes, arch: str) -> None:
    """Raises InputError if an object file has code that `arch` does not have."""
    function = ""
    for line in _objdump(data, arch):
        if label := _LABEL.match(line):
            function = label[1]
        elif line.startswith("\t"):
            match = _LINE.match(line)
            if match is None or match["text"].startswith("."):
                text = match["text"] if match else line.strip()
                raise InputError(
                    f"function {function} has code that {arch} lacks: "
                    f"llvm-objdump cannot decode {text[:80]!r}"
                )


def _objdump(data: bytes, arch: str, *options: str) -> list[str]:
    with tempfile.NamedTemporaryFile(suffix=".o") as file:
        file.write(data)
        file.flush()
        arguments = ["-d", f"--mcpu={arch}", *options, file.name]
        try:
            said = run_tool(find_objdump(), arguments, Path(), _SECONDS)
        except TimeoutError as error:
            raise InputError(str(error)) from None
    if said.returncode != 0:
        reason = said.stderr.decode(errors="replace").strip()[:200]
        raise InputError(f"llvm-objdump refuses the code object: {reason}")
    return said.stdout.decode(errors="replace").splitlines()


def parse_instruction(text: str, address: int = 0, size: int = 4) -> CodeInstruction:
    """An instruction in the disassembler's notation. Raises InputError for what is none."""
    mnemonic, _, rest = text.strip().partition(" ")
    pieces = _split(rest.strip(), ",")
    modifiers: list[tuple[str, str]] = []
    if pieces:
        words = _split(pieces[-1], " ")
        while words and _is_modifier(words, mnemonic):
            name, _, value = words.pop().partition(":")
            modifiers.append((name, value))
        pieces[-1] = " ".join(words)
    operands = tuple(piece for piece in pieces if piece)
    return CodeInstruction(
        address, mnemonic, operands, tuple(reversed(modifiers)), size, text.strip()
    )


def _is_modifier(words: list[str], mnemonic: str) -> bool:
    """True if the last word is a modifier: it has a colon, or stands behind an operand."""
    if mnemonic == "s_waitcnt":
        return False
    word = words[-1]
    if not _MODIFIER.match(word) or (":" in word and "[" in word.partition(":")[0]):
        return False
    return ":" in word or len(words) > 1


def _split(text: str, separator: str) -> list[str]:
    """The pieces between separators that stand outside brackets."""
    pieces, depth, piece = [], 0, ""
    for character in text:
        depth += (character in "([") - (character in ")]")
        if character == separator and depth == 0:
            pieces.append(piece.strip())
            piece = ""
        else:
            piece += character
    pieces.append(piece.strip())
    return [piece for piece in pieces if piece]
