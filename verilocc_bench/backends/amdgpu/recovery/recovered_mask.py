"""Where EXEC may select only some lanes, and where it may select more lanes than before.

Forward dataflow over *full* values: EXEC at the entry selects all lanes if waves are full,
and a 32-bit half of a mask is full if it has at least these bits. Full are
the constant -1, copies of full values, and what logical operations make of them. So
EXEC is known to be full again where code restores a copy that it saved.

A *version* is a time in which EXEC only loses lanes. It ends where EXEC is written in
any other way, and where paths meet that come from different versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from verilocc_bench.backends.amdgpu.recovery.records import (
    UNITS,
    CodeBlock,
    RecoveredInstruction,
    RecoveredOperand,
)

_EXEC_UNITS = {"exec": (UNITS, UNITS + 1), "exec_lo": (UNITS,), "exec_hi": (UNITS + 1,)}
_EXEC = 0b11 << UNITS
_SUFFIXES = ("_B64", "_B32")
_Version = tuple[int, int]


@dataclass(frozen=True, slots=True)
class MaskFlow:
    """`merges[b]` is true if block b begins a version.

    `partial[b][i]` is true if EXEC may be partial at instruction i of block b, and
    `widens[b][i]` if a version begins after it.
    """

    merges: tuple[bool, ...]
    partial: tuple[tuple[bool, ...], ...]
    widens: tuple[tuple[bool, ...], ...]


def analyse_mask(blocks: Sequence[CodeBlock], *, full_waves: bool = True) -> MaskFlow:
    """The flow of EXEC through a kernel. Cost: a few passes over the code.

    If waves may not be full, EXEC is partial at the entry: -1 selects more lanes.
    """
    everything = (1 << (UNITS + 2)) - 1
    entry = [everything] * len(blocks)
    entry[0] = _EXEC if full_waves else 0
    changed = True
    while changed:
        changed = False
        for block, start in zip(blocks, entry, strict=True):
            facts = start
            for instruction in block.instructions:
                facts = _after(instruction, facts)
            for successor in block.successors:
                new = entry[successor] & facts
                changed |= new != entry[successor]
                entry[successor] = new
    partial: list[tuple[bool, ...]] = []
    widens: list[tuple[bool, ...]] = []
    for block, facts in zip(blocks, entry, strict=True):
        masked, wider = [], []
        for instruction in block.instructions:
            full = facts & _EXEC == _EXEC
            masked.append(not full)
            wider.append(writes_mask(instruction) and not (full or _narrows(instruction)))
            facts = _after(instruction, facts)  # noqa: PLW2901
        partial.append(tuple(masked))
        widens.append(tuple(wider))
    return MaskFlow(_merges(blocks, widens), tuple(partial), tuple(widens))


def _merges(blocks: Sequence[CodeBlock], widens: Sequence[tuple[bool, ...]]) -> tuple[bool, ...]:
    """True for blocks at whose entry different versions meet."""
    entry: list[_Version | None] = [None] * len(blocks)
    entry[0] = (0, -1)
    changed = True
    while changed:
        changed = False
        for number, block in enumerate(blocks):
            version = entry[number]
            if version is None:
                continue
            for at, wider in enumerate(widens[number]):
                if wider:
                    version = (number, at)
            for successor in block.successors:
                known = entry[successor]
                merged = (successor, -1)
                new = version if known in (None, version) else merged
                if known not in (new, merged):
                    entry[successor] = new
                    changed = True
    return tuple(version == (number, -1) for number, version in enumerate(entry))


def _units(operand: RecoveredOperand) -> tuple[int, ...]:
    return _EXEC_UNITS.get(operand.register or "", operand.units)


def _bits(units: Sequence[int]) -> int:
    mask = 0
    for unit in units:
        mask |= 1 << unit
    return mask


def writes_mask(instruction: RecoveredInstruction) -> bool:
    """True if an instruction writes EXEC or half of it."""
    return any(o.definition and o.register in _EXEC_UNITS for o in instruction.operands)


def _narrows(instruction: RecoveredInstruction) -> bool:
    """True if an instruction that writes EXEC leaves out lanes and adds none."""
    sources = [o.register for o in instruction.operands if o.is_use and not o.implicit]
    match instruction.opcode:
        case "S_AND_SAVEEXEC_B64":
            return True
        case "S_AND_B64":
            return "exec" in sources
        case "S_ANDN2_B64":
            return instruction.operands[1].register == "exec"
    return False


def _after(instruction: RecoveredInstruction, facts: int) -> int:
    """The full units after an instruction, as a mask."""
    written = 0
    for operand in instruction.operands:
        if operand.definition:
            written |= _bits(_units(operand))
    if not written:
        return facts
    return (facts & ~written) | _full(instruction, facts)


def _full(instruction: RecoveredInstruction, facts: int) -> int:
    """The units that an instruction writes with a full value."""
    opcode, operands = instruction.opcode, instruction.operands
    if not opcode.endswith(_SUFFIXES) or not operands or not operands[0].definition:
        return 0
    destination = _units(operands[0])
    sources = [_halves(o, facts, len(destination)) for o in operands[1:] if not o.implicit]
    result = [False] * len(destination)
    match opcode[:-4]:
        case "S_MOV":
            result = sources[0]
        case "S_OR":
            result = [a or b for a, b in zip(*sources, strict=True)]
        case "S_AND" | "S_CSELECT":
            result = [a and b for a, b in zip(*sources, strict=True)]
        case "S_AND_SAVEEXEC" | "S_OR_SAVEEXEC":
            mask = [bool(facts >> unit & 1) for unit in _EXEC_UNITS["exec"]]
            saved = _bits([u for u, full in zip(destination, mask, strict=True) if full])
            joined = all if opcode.startswith("S_AND") else any
            both = [joined(pair) for pair in zip(mask, sources[0], strict=True)]
            new = [u for u, full in zip(_EXEC_UNITS["exec"], both, strict=True) if full]
            return saved | _bits(new)
    return _bits([unit for unit, full in zip(destination, result, strict=True) if full])


def _halves(operand: RecoveredOperand, facts: int, count: int) -> list[bool]:
    """For each half of a source: whether it is full."""
    if operand.number is not None:
        return [operand.number == -1] * count
    units = _units(operand)
    if len(units) != count:
        return [False] * count
    return [bool(facts >> unit & 1) for unit in units]
