"""The instructions of sm_80 and sm_90 as the timing model sees them.

This is a reading of its own of the control words and of the kinds of operations; it
shares no code with the analysis (see timing_model). The names of the kinds are those of
the distance table, which is data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from verilocc_bench.backends.nvidia.records import SassFunction, SassInstruction

Registers = Sequence[tuple[tuple[int, ...], tuple[int, ...]]]
"""For each instruction the units that it reads, guard first, and those that it writes."""


class TimedOperation(NamedTuple):
    """An instruction as the model sees it; the classes are those of the table."""

    waits: int
    stall: int
    read_barrier: int
    write_barrier: int
    late: bool
    read_queue: str
    write_queue: str
    read_classes: tuple[str, ...]
    write_classes: tuple[str, ...]
    read_files: tuple[str, ...]
    write_files: tuple[str, ...]
    guard: tuple[int, bool] | None
    targets: tuple[int, ...]
    may_fall_through: bool
    ends: bool
    closes_group: bool = False


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_LONG = _names(
    "ATOM ATOMG ATOMS B2R BREV CCTL DADD DFMA DMMA DMUL DSETP F2F F2I FCHK FLO FRND HGMMA I2F "
    "IGMMA LD LDC LDG LDGSTS LDL LDS LDSM LEPC MATCH MOVM MUFU POPC QGMMA QSPC R2UR RED REDG "
    "REDUX S2R S2UR SHFL ST STG STL STS STSM"
)
_SHORT_ON_SM_90 = _names("DADD DFMA DMUL DSETP R2UR")
_WARP_GROUP = _names("HGMMA IGMMA QGMMA")
_MEMORY = ("ATOM", "LD", "ST", "RED")
_IN_ORDER_READS = _names("ATOMS LDG LDGSTS LDL LDS LDSM REDG SHFL STG STL STS STSM")
_IN_ORDER_WRITES = _names("ATOMS LDS LDSM SHFL")
_DOUBLE = _names("DADD DFMA DMUL DSETP")
_SPECIAL = _names("MUFU FLO POPC BREV F2F F2I FRND I2F")
_BY_UNIT = {
    "integer": "BMSK F2FP FMNMX FSEL FSET FSETP IABS IADD3 IMNMX ISETP LEA LOP3 MOV PLOP3 PRMT "
    "PSETP SEL SGXT SHF",
    "multiply-add": "FADD FFMA FMUL IMAD",
    "half": "HADD2 HFMA2 HMNMX2 HMUL2 HSET2 HSETP2",
    "uniform": "UBMSK UIADD3 UIMNMX UISETP ULEA ULOP3 UMOV UPLOP3 UPRMT USEL USGXT USHF",
    "jump": "BRA CALL EXIT",
}
_UNIT_OF = {name: unit for unit, names in _BY_UNIT.items() for name in names.split()}
FILE_BASE = {"R": 0, "UR": 512, "P": 1024, "UP": 1536}


def registers_of(
    function: SassFunction, renaming: Mapping[tuple[int, int], int] | None = None
) -> Registers:
    """The registers of a kernel. `renaming` replaces the first register of some references.

    Its keys are (instruction, reference): definitions count from 0, uses follow, and
    the guard is -1.
    """
    renaming = renaming or {}
    return [
        _units(index, instruction, renaming)
        for index, instruction in enumerate(function.instructions)
    ]


def _units(
    index: int, instruction: SassInstruction, renaming: Mapping[tuple[int, int], int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if instruction.never:
        return (), ()
    count = len(instruction.definitions)
    reads, writes = list[int](), list[int]()
    if instruction.guard is not None:
        guard = instruction.guard
        reads.append(FILE_BASE[guard.file] + renaming.get((index, -1), guard.index))
    for number, reference in enumerate((*instruction.definitions, *instruction.uses)):
        first = FILE_BASE[reference.file] + renaming.get((index, number), reference.first)
        units = range(first, first + reference.count)
        (writes if number < count else reads).extend(units)
    return tuple(reads), tuple(writes)


def timed_operation(function: SassFunction, instruction: SassInstruction) -> TimedOperation:
    """An instruction of a function; the labels give its target."""
    word, opcode = instruction.encoding, instruction.opcode
    stem = opcode.split(".", maxsplit=1)[0]
    hopper = instruction.architecture == "sm_90"
    late = stem in _LONG - (_SHORT_ON_SM_90 if hopper else set()) and not instruction.never
    waits = word >> 116 & 0x3F
    if stem == "DEPBAR":
        waits |= _barriers_of(instruction.operands)
    elif opcode == "WARPGROUP.DEPBAR.LE":
        # Beside the six barriers one for each number of groups that may still be at work.
        waits |= 1 << 6 + int(instruction.operands[1], 0)
    unit = _unit_of(stem, opcode.split(".")[1:], single=hopper)
    guard = instruction.guard
    count = 0 if instruction.never else None
    return TimedOperation(
        waits,
        max(1, word >> 105 & 0xF),
        word >> 113 & 7,
        word >> 110 & 7,
        late,
        _queue(stem, _IN_ORDER_READS, "reads"),
        _queue(stem, _IN_ORDER_WRITES, "writes"),
        tuple(_read_classes(instruction, unit))[:count],
        tuple(_write_classes(instruction, "variable latency" if late else unit))[:count],
        tuple(_read_files(instruction))[:count],
        tuple(r.file for r in instruction.definitions for _ in range(r.count))[:count],
        None
        if guard is None or instruction.never
        else (FILE_BASE[guard.file] + guard.index, guard.negated),
        _targets(function, instruction, stem),
        stem == "BRA" and len(instruction.operands) == 2,
        stem in {"EXIT", "KILL"} and not instruction.never,
        late and stem in _WARP_GROUP and "gsb0" in instruction.operands,
    )


def _targets(function: SassFunction, instruction: SassInstruction, stem: str) -> tuple[int, ...]:
    """Where an instruction may jump to: one place, or those of a table."""
    if instruction.never or stem not in {"BRA", "CALL", "BRX"}:
        return ()
    named = instruction.table if stem == "BRX" else (instruction.target or "",)
    return tuple(function.labels[name] for name in named if name in function.labels)


def _barriers_of(operands: Sequence[str]) -> int:
    """The barriers for which a DEPBAR waits until all of them are lowered."""
    named: list[str] = [text for operand in operands[2:] for text in operand.strip("{}").split(",")]
    if len(operands) > 1 and int(operands[1], 0) == 0:
        named.append(operands[0].lstrip("SB"))
    return sum({1 << int(name) for name in named})


def _queue(stem: str, in_order: frozenset[str], what: str) -> str:
    if stem in in_order:
        return what
    if stem in _WARP_GROUP:
        return "warp group"
    if stem in _DOUBLE:
        return "double"
    return "special" if stem in _SPECIAL else stem


def _unit_of(stem: str, modifiers: Sequence[str], *, single: bool) -> str:
    """The class of an operation; with `single` each uniform one stands for itself."""
    if stem in {"HMMA", "IMMA", "BMMA"}:
        shape = [m for m in modifiers if m.isdigit() or m in {"F16", "F32", "TF32", "AND", "XOR"}]
        others = {"BF16", "SAT", "S8", "U8", "S4", "U4", "ROW", "COL"}
        return ".".join((stem, *(m for m in modifiers if m in shape or m not in others)))
    if stem == "IMAD" and ("WIDE" in modifiers or "HI" in modifiers):
        return "wide product"
    if stem in _LONG and stem.startswith(_MEMORY) and stem not in {"LDC", "LEPC"}:
        return "memory"
    unit = _UNIT_OF.get(stem, stem)
    return stem if single and unit == "uniform" else unit


def _read_classes(instruction: SassInstruction, unit: str) -> Iterator[str]:
    if instruction.guard is not None:
        yield f"{unit} guard"
    matrix = unit.startswith(("HMMA", "IMMA", "BMMA"))
    for reference in instruction.uses:
        slot = f" {'abc'[reference.operand - 1]}" if matrix and 1 <= reference.operand <= 3 else ""
        for _ in range(reference.count):
            yield unit + slot


def _read_files(instruction: SassInstruction) -> Iterator[str]:
    if instruction.guard is not None:
        yield instruction.guard.file
    for reference in instruction.uses:
        for _ in range(reference.count):
            yield reference.file


def _write_classes(instruction: SassInstruction, unit: str) -> Iterator[str]:
    for reference in instruction.definitions:
        for offset in range(reference.count):
            if unit.startswith(("HMMA", "IMMA", "BMMA")):
                yield f"{unit} d{offset // 2}"
            else:
                yield f"{unit} {offset}" if unit == "wide product" else unit
