"""The machine code of one kernel, counted from LLVM's assembly for gfx90a and gfx942.

Blocks begin at labels and behind branches, loops are natural loops over them.
A count weighted by loops counts an instruction 10 to the power of its loop
depth times. Cost: linear in the text.
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
from verilocc_bench.ir import Block, Function

__all__ = ["AssemblyLoop", "CodeCounts", "count_code", "innermost_loops"]

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
"""How the opcodes of each kind begin; the first that fits counts."""
_PATTERNS = {kind: re.compile(starts) for kind, starts in _KINDS.items()}
_LEAVES = re.compile(r"s_endpgm\w*|s_setpc\w*|s_branch")


@dataclass(frozen=True, slots=True)
class CodeCounts:
    """What a kernel's assembly holds.

    `kinds` counts instructions by kind; `wait_states` is what the s_nop add
    up to: LLVM puts them where the hardware needs distance between two
    instructions. `register_moves` copy a register to a vector register.
    `spill_code` are LLVM's own "Folded Spill" and "Folded Reload";
    `long_encodings` the vector instructions in their form of 64 bits (`_e64`),
    which many need only for an SGPR pair where VCC would do. Counts that are
    `weighted` are by loops. `code_bytes` is None where the assembly does not say, and
    `metadata` (registers, scratch bytes, waves) empty for what is no kernel.
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
    """An innermost loop: its label, how many loops it is in with itself, its instructions in the
    order of the text."""

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
    """Counts a function of an assembly. Raises InputError where there is no such function."""
    blocks = _blocks(assembly, function)
    total, weighted = Counter[str](), Counter[str]()
    kinds = Counter[str]()
    for block in blocks:
        weight = LOOP_WEIGHT**block.depth
        for instruction in block.instructions:
            kinds[_kind(instruction)] += 1
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


def innermost_loops(assembly: str, function: str) -> tuple[AssemblyLoop, ...]:
    """The loops that contain no other, in the order of the text.

    A loop is a label and the blocks down to the last branch back to it, less
    those that are in fewer loops. Raises InputError where there is no such function.
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
    skeleton = Function("gfx942", (), (), (), (), tuple(Block((), each) for each in edges))
    for block, depth in zip(blocks, loop_depths(skeleton), strict=True):
        block.depth = depth
    return blocks


def _lines(assembly: str, function: str) -> Iterator[tuple[str | None, str, str]]:
    """(label, instruction, comment) of the lines of a function that have a label or code."""
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
    """Where the label of a function stands, -1 for none; LLVM puts unusual names in quotes."""
    quoted = function.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return max(assembly.find(f"\n{function}:"), assembly.find(f'\n"{quoted}":'))


def _numbers(blocks: list[_Block]) -> dict[str, int]:
    """The block of each label."""
    return {block.label: index for index, block in enumerate(blocks) if block.label is not None}


def _target(block: _Block) -> str:
    """The label that a block branches to; empty where it does not."""
    opcode, _, operand = block.instructions[-1].partition(" ") if block.instructions else ("",) * 3
    return operand if opcode.startswith(("s_branch", "s_cbranch")) else ""


def _successors(block: _Block, index: int, count: int, numbers: dict[str, int]) -> tuple[int, ...]:
    opcode = block.instructions[-1].partition(" ")[0] if block.instructions else ""
    target = numbers.get(_target(block))
    found = [] if target is None else [target]
    if not _LEAVES.fullmatch(opcode) and index + 1 < count and index + 1 not in found:
        found.append(index + 1)
    return tuple(found)


def _kind(instruction: str) -> str:
    return next((k for k, pattern in _PATTERNS.items() if pattern.match(instruction)), "other")


def _counted(instruction: str) -> dict[str, int]:
    """What an instruction adds to each count."""
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
