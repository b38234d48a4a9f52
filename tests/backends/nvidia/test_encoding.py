"""Every row of the table of encodings against nvdisasm: other numbers into each field."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile

import pytest

from tests.backends.nvidia.assembled_kernels import require_tools
from verilocc_bench.backends.nvidia import encoding
from verilocc_bench.backends.nvidia.encoding import register_fields, reuse_fields, reuse_mask
from verilocc_bench.backends.nvidia.flow import opcode_stem
from verilocc_bench.backends.nvidia.proof import ProofFailed, prove_instructions
from verilocc_bench.backends.nvidia.records import SassFunction, SassInstruction
from verilocc_bench.backends.nvidia.text import parse_sass
from verilocc_bench.backends.nvidia.tools import find_tool
from verilocc_bench.backends.nvidia.webs import GUARD
from verilocc_bench.errors import RejectedKernel

HERE = Path(__file__).parent
WORDS = {
    name: tuple(int(word, 16) for word in (HERE / f"encoding_words_{name}.txt").read_text().split())
    for name in ("sm_80", "sm_90")
}
"""What each architecture adds: one word for each form of the table.

ptxas writes it so, or with other bits in one field.
"""

_LINE = re.compile(r"\s*/\*([0-9a-f]+)\*/ +([^;]*);")
_TARGET = re.compile(
    r"((?:BRA|BRXU?|BSSY|CALL[.\w]*|LEPC|RET[.\w]*|WARPSYNC\.COLLECTIVE)\b.*?)-?0x[0-9a-f]+$"
)
_HEAD = """\
\t.target\t{}
\t.section\t.text.k,"ax",@progbits
\t.sectioninfo\t@"SHI_REGISTERS=255"
\t.size k,(.L_end - k)
k:
.L_x:
"""
# Stall 2, no yield, no barriers: only so does nvdisasm print reuse marks.
_CONTROL = 0x7F2 << 105
_CONTROL_BITS = 0x1FFFFF << 105


@cache
def texts(words: tuple[int, ...], architecture: str) -> list[str]:
    require_tools()
    binary = ["--binary", architecture.replace("_", "").upper()]
    with NamedTemporaryFile() as file:
        file.write(b"".join(word.to_bytes(16, "little") for word in words))
        file.flush()
        command = [find_tool("nvdisasm"), *binary, file.name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:500]
    found = [match[2].strip() for match in map(_LINE.match, done.stdout.splitlines()) if match]
    assert len(found) == len(words)
    return found


def parsed(words: tuple[int, ...], architecture: str) -> SassFunction:
    lines = [_HEAD.format(architecture)]
    for index, (word, text) in enumerate(zip(words, texts(words, architecture), strict=True)):
        printed = _TARGET.sub(r"\1`(.L_x)", text)
        low, high = word & (1 << 64) - 1, word >> 64
        lines.append(f"        /*{16 * index:04x}*/ {printed} ; /* {low:#018x} */\n")
        lines.append(f"        /* {high:#018x} */\n")
    return parse_sass("".join(lines) + ".L_end:\n")[0]


@pytest.fixture(scope="module", name="function", params=[*WORDS])
def _function(request: pytest.FixtureRequest) -> SassFunction:
    return parsed(WORDS[request.param], request.param)


def changes(instruction: SassInstruction) -> Iterator[tuple[int, dict[int, int]]]:
    """(word, register of each reference) with other registers, one reference at a time."""
    fields = register_fields(instruction)
    references = dict(enumerate((*instruction.definitions, *instruction.uses)))
    for number, field in fields.items():
        count = 1 if number == GUARD else references[number].count
        step = 1 if number == GUARD else references[number].step
        old = field.read(instruction.encoding)
        limit = {8: 252, 6: 60, 3: 7}[field.width]
        for value in {0, limit - count, old ^ step, (old + 13 * step) % limit}:
            if 0 <= value <= limit - count and value % step == 0:
                # Some references share a field: a register that is printed twice.
                shared = {n: value for n, f in fields.items() if f == field}
                yield field.write(instruction.encoding, value), shared


def test_other_numbers_in_each_field_are_the_renaming(function: SassFunction) -> None:
    originals: list[SassInstruction] = []
    words: list[int] = []
    renaming: dict[tuple[int, int], int] = {}
    for instruction in function.instructions:
        for word, registers in changes(instruction):
            for number, value in registers.items():
                renaming[len(words), number] = value
            originals.append(replace(instruction, address=16 * len(words)))
            words.append(word)
    assert len(words) > 3 * len(WORDS[function.architecture])
    expected = replace(function, instructions=tuple(originals))
    lowered = parsed(tuple(words), function.architecture)
    prove_instructions(expected, replace(lowered, labels=expected.labels), renaming)
    wrong = dict(renaming)
    key = next(key for key in wrong if key[1] != GUARD)
    wrong[key] ^= 4
    with pytest.raises(ProofFailed, match="at 0x"):
        prove_instructions(expected, replace(lowered, labels=expected.labels), wrong)


def test_each_line_of_the_table_has_a_word() -> None:
    seen: set[tuple[str, int, object]] = set()
    functions = [parsed(words, name) for name, words in WORDS.items()]
    for instruction in (each for function in functions for each in function.instructions):
        stem, code = opcode_stem(instruction.opcode), instruction.encoding & 0xFFF
        elements = encoding._elements(instruction)
        for _, line in encoding._lines()[stem, code]:
            kept = tuple(e for e in line if not e.optional or e in elements)
            if elements == kept:
                seen |= {(stem, code, line), *((stem, code, (line, e)) for e in elements)}
    for (stem, code), lines in encoding._lines().items():
        for _, line in lines:
            assert (stem, code, line) in seen, (stem, hex(code), line)
            for element in line:
                assert (stem, code, (line, element)) in seen, (stem, hex(code), element)


def test_reuse_marks_are_printed_at_the_operand_of_their_slot(function: SassFunction) -> None:
    words: list[int] = []
    for instruction in function.instructions:
        word = instruction.encoding & ~_CONTROL_BITS & ~(15 << 122) | _CONTROL
        for slot, field in reuse_fields(instruction).items():
            # A number that stands nowhere else tells the operand.
            words.append(field.write(word, 248) | reuse_mask(slot))
    assert len(words) > len(WORDS[function.architecture]) // 6
    for word, text in zip(words, texts(tuple(words), function.architecture), strict=True):
        assert re.findall(r"(\w+)\|?(?:\.[A-Z0-9_]+)?\.reuse", text) == ["R248"], (hex(word), text)


def test_what_the_table_does_not_cover_is_rejected_by_name(function: SassFunction) -> None:
    opcode = "IADD3" if function.architecture == "sm_80" else "VIADD"
    first = next(i for i in function.instructions if i.opcode == opcode)
    with pytest.raises(RejectedKernel, match=rf"{opcode} .*0x213.* not in the table"):
        register_fields(replace(first, encoding=first.encoding & ~0xFFF | 0x213))
    with pytest.raises(RejectedKernel, match="not in the table"):
        register_fields(replace(first, encoding=first.encoding ^ 1 << 16))
