"""The machine code of one kernel, counted from LLVM's assembly for gfx90a and gfx942.

Blocks begin at labels and after branches; loops are natural loops over them. In a
weighted count an instruction counts 10 to the power of its loop depth. Cost:
linear in the text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from verilocc_bench.analysis import loop_depths
from verilocc_bench.analysis.bank_conflicts import LOOP_WEIGHT
from verilocc_bench.backends.amdgpu.tools import machine_code_counts
from verilocc_bench.errors import InputError

_LABEL = re.compile(r"([\w.$]+):")
_INSTRUCTION = re.compile(r"\t([a-z]\w*)(?:\s+(.*))?")
_CODE_BYTES = re.compile(r"^; codeLenInByte = (\d+)$", re.MULTILINE)
_REGISTER = re.compile(r"[vas](?:\d|\[).*|vcc\w*|exec\w*|m0")
_MOVES = re.compile(r"v_(?:pk_)?mov_b(?:32|64)(?:_e32|_e64)?|v_accvgpr_(?:read|write|mov)_b32\w*")
_KINDS = {
    "wait": "s_waitcnt",
    "nop": "s_nop",
    "branch": "s_branch|s_cbranch|s_endpgm|s_setpc|s_swappc",
    "scalar": "s_",
    "mfma": "v_mfma|v_smfmac",
    "accumulator_move": "v_accvgpr",
    "vector": "v_",
    "local": "ds_",
    "global": "global_",
    "buffer": "buffer_",
    "flat": "flat_",
    "scratch": "scratch_",
}
"""The beginnings of the opcodes of each kind; the first match counts."""
_PATTERNS = {kind: re.compile(starts) for kind, starts in _KINDS.items()}
_LEAVES = re.compile(r"s_endpgm\w*|s_setpc\w*|s_branch")


@dataclass(frozen=True, slots=True)
class CodeCounts:
    """The counts of a kernel's assembly.

    `kinds` counts instructions by kind. `wait_states` is the sum of the s_nop,
    which LLVM inserts where the hardware needs distance between two instructions.
    `register_moves` copy a register to a vector register. `spill_code` counts
    LLVM's "Folded Spill" and "Folded Reload". `long_encodings` counts vector
    instructions in their 64-bit form (`_e64`), which many need only because an
    SGPR pair takes the place of VCC. `weighted` counts weigh loops. `code_bytes` is
    None if the assembly does not say it. `metadata` (registers, scratch bytes,
    waves) is empty for a function that is not a kernel.
    """

    instructions: int
    weighted_instructions: int
    kinds: dict[str, int]
    waits: int
    weighted_waits: int
    nops: int
    wait_states: int
    weighted_wait_states: int
    register_moves: int
    weighted_register_moves: int
    long_encodings: int
    spill_code: int
    weighted_spill_code: int
    code_bytes: int | None
    metadata: dict[str, int]


@dataclass(frozen=True, slots=True)
class AssemblyLoop:
    """An innermost loop: its label, its loop depth, and its instructions in order."""

    label: str
    depth: int
    instructions: tuple[str, ...]


@dataclass(slots=True)
class _Block:
    label: str | None
    instructions: list[str] = field(default_factory=list)  # opcode and operands
    spills: int = 0
    depth: int = 0


def count_code(assembly: str, function: str) -> CodeCounts:
    """The counts of a function. Raises InputError if the assembly does not contain it."""
    blocks = _blocks(assembly, function)
    total, weighted = Counter[str](), Counter[str]()
    kinds = Counter[str]()
    for block in blocks:
        weight = LOOP_WEIGHT**block.depth
        for instruction in block.instructions:
            kind = next((k for k, p in _PATTERNS.items() if p.match(instruction)), "other")
            kinds[kind] += 1
            for name, count in _counted(instruction).items():
                total[name] += count
                weighted[name] += weight * count
        total["spill_code"] += block.spills
        weighted["spill_code"] += weight * block.spills
    size = _CODE_BYTES.search(assembly, _label_start(assembly, function))
    return CodeCounts(
        instructions=total["instructions"],
        weighted_instructions=weighted["instructions"],
        kinds={kind: kinds[kind] for kind in (*_KINDS, "other") if kinds[kind]},
        waits=total["waits"],
        weighted_waits=weighted["waits"],
        nops=total["nops"],
        wait_states=total["wait_states"],
        weighted_wait_states=weighted["wait_states"],
        register_moves=total["register_moves"],
        weighted_register_moves=weighted["register_moves"],
        long_encodings=total["long_encodings"],
        spill_code=total["spill_code"],
        weighted_spill_code=weighted["spill_code"],
        code_bytes=int(size[1]) if size else None,
        metadata=machine_code_counts(assembly, function),
    )


def blocks_of_assembly(assembly: str, function: str) -> Iterator[tuple[int, list[str]]]:
    """The loop depth and the instructions of each block, in the order of the text.

    Raises InputError if the assembly does not contain the function.
    """
    for block in _blocks(assembly, function):
        yield block.depth, block.instructions


def innermost_loops(assembly: str, function: str) -> tuple[AssemblyLoop, ...]:
    """The loops that contain no other loop, in the order of the text.

    A loop is a label and the blocks up to the last branch back to it, without
    blocks of a smaller loop depth. Raises InputError if the assembly does not
    contain the function.
    """
    blocks = _blocks(assembly, function)
    numbers = _numbers(blocks)
    last: dict[int, int] = {}
    for index, block in enumerate(blocks):
        head = numbers.get(_target(block))
        if head is not None and head <= index and blocks[head].depth > 0:
            last[head] = index
    found = []
    for head, end in sorted(last.items()):
        depth = blocks[head].depth
        body = [block for block in blocks[head : end + 1] if block.depth >= depth]
        others = any(head < other <= end for other in last)
        if others or any(block.depth > depth for block in body):
            continue
        instructions = tuple(each for block in body for each in block.instructions)
        found.append(AssemblyLoop(blocks[head].label or "", depth, instructions))
    return tuple(found)


def _blocks(assembly: str, function: str) -> list[_Block]:
    """The blocks of a function, with their loop depths."""
    blocks = [_Block(None)]
    for label, instruction, comment in _lines(assembly, function):
        if label is not None:
            if blocks[-1].instructions or blocks[-1].label is not None:
                blocks.append(_Block(None))
            blocks[-1].label = label
        else:
            blocks[-1].instructions.append(instruction)
            blocks[-1].spills += "Folded Spill" in comment or "Folded Reload" in comment
            if _PATTERNS["branch"].match(instruction):
                blocks.append(_Block(None))
    if len(blocks) > 1 and not blocks[-1].instructions and blocks[-1].label is None:
        blocks.pop()
    numbers = _numbers(blocks)
    edges = [_successors(block, index, len(blocks), numbers) for index, block in enumerate(blocks)]
    for block, depth in zip(blocks, loop_depths(edges), strict=True):
        block.depth = depth
    return blocks


def _lines(assembly: str, function: str) -> Iterator[tuple[str | None, str, str]]:
    """(label, instruction, comment) of each line of a function with a label or code."""
    start = _label_start(assembly, function)
    end = assembly.find("\n.Lfunc_end", start)
    if start < 0 or end < 0:
        raise InputError(f"the assembly has no function {function!r}")
    for line in assembly[start:end].split("\n")[2:]:
        text, _, comment = line.partition(";")
        if label := _LABEL.match(text):
            yield label[1], "", comment
        elif match := _INSTRUCTION.fullmatch(text.rstrip()):
            yield None, f"{match[1]} {match[2] or ''}".rstrip(), comment


def _label_start(assembly: str, function: str) -> int:
    """The offset of a function's label, or -1; LLVM puts unusual names in quotes."""
    quoted = function.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return max(assembly.find(f"\n{function}:"), assembly.find(f'\n"{quoted}":'))


def _numbers(blocks: list[_Block]) -> dict[str, int]:
    """The number of the block of each label."""
    return {block.label: index for index, block in enumerate(blocks) if block.label is not None}


def _target(block: _Block) -> str:
    """The label to which a block branches, or an empty text."""
    opcode, _, operand = block.instructions[-1].partition(" ") if block.instructions else ("",) * 3
    return operand if opcode.startswith(("s_branch", "s_cbranch")) else ""


def _successors(block: _Block, index: int, count: int, numbers: dict[str, int]) -> tuple[int, ...]:
    opcode = block.instructions[-1].partition(" ")[0] if block.instructions else ""
    target = numbers.get(_target(block))
    found = [] if target is None else [target]
    if not _LEAVES.fullmatch(opcode) and index + 1 < count and index + 1 not in found:
        found.append(index + 1)
    return tuple(found)


def _counted(instruction: str) -> dict[str, int]:
    """The amount that an instruction adds to each count."""
    opcode, _, operands = instruction.partition(" ")
    states = int(operands, 0) + 1 if opcode == "s_nop" else 0
    sources = operands.split(", ")[1:]
    moves = _MOVES.fullmatch(opcode) and all(map(_REGISTER.match, sources))
    return {
        "instructions": 1,
        "waits": int(opcode.startswith("s_waitcnt")),
        "nops": int(opcode == "s_nop"),
        "wait_states": states,
        "register_moves": int(bool(moves)),
        "long_encodings": int(opcode.endswith("_e64")),
    }
