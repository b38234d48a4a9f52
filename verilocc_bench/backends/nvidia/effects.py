"""The definitions and uses of an instruction, from the table of operations.

Raises RejectedKernel for an opcode or a list of operands that no row covers;
nothing is guessed. Both steps are cached, since a kernel repeats few forms many
times.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

from verilocc_bench.backends.nvidia.operands import SassOperand, parse_operand
from verilocc_bench.backends.nvidia.operations import OPERATION_FORMS, REFUSED, OperationForm
from verilocc_bench.backends.nvidia.records import RegisterReference
from verilocc_bench.errors import RejectedKernel
from verilocc_bench.ir import FixedUnits
from verilocc_bench.targets.nvidia_calls import DESTROYED, READ, RETURNED

_SLOT = re.compile(
    r"(?:(?P<name>D|UD|S|US|R|A|UA)(?P<count>\d+)(?:@(?P<alignment>\d+))?"
    r"|(?P<other>PD|UPD|P|UP|MD|MU|J|UJ|I|C|G|SR|B|SB|L))(?P<optional>\??)"
)
_HIDDEN = re.compile(r"H(32|64)")
# The kinds of operands that each slot takes.
_KINDS = {
    "D": "R", "UD": "U", "S": "RrUuIC", "US": "UuIC", "R": "Rr", "A": "A", "UA": "A",
    "PD": "P", "UPD": "Q", "P": "PpQq", "UP": "Qq", "MD": "M", "MU": "M",
    "J": "J", "UJ": "V", "I": "I", "C": "C", "G": "G", "SR": "S", "B": "B", "SB": "K", "L": "L",
}  # fmt: skip
_DEFINED = {"D", "UD", "PD", "UPD"}
_UNIFORM_PAIR_BIT = 0x800
_NO_UNIFORM = 63


@dataclass(frozen=True, slots=True)
class DecodedEffects:
    """The definitions and uses of one instruction, by its text.

    `hidden_bit` is the bit of the encoding where the uniform pair that addresses
    memory stands, or None. `destroys` is as in SassInstruction.
    """

    definitions: tuple[RegisterReference, ...]
    uses: tuple[RegisterReference, ...]
    hidden_bit: int | None
    destroys: tuple[RegisterReference, ...] = ()


@dataclass(frozen=True, slots=True)
class _Slot:
    name: str
    count: int
    optional: bool
    alignment: int


@dataclass(frozen=True, slots=True)
class _Pattern:
    slots: tuple[_Slot, ...]
    kinds: re.Pattern[str]
    hidden_bit: int | None


@dataclass(frozen=True, slots=True)
class _Plan:
    """The slot of each printed operand."""

    slots: tuple[_Slot, ...]
    hidden_bit: int | None


def _pattern(text: str) -> _Pattern:
    slots: list[_Slot] = []
    hidden: int | None = None
    for word in text.split():
        if (bit := _HIDDEN.fullmatch(word)) is not None:
            hidden = int(bit[1])
            continue
        match = _SLOT.fullmatch(word)
        assert match is not None, word
        name = match["name"] or match["other"]
        count, alignment = int(match["count"] or 1), int(match["alignment"] or 0)
        slots.append(_Slot(name, count, bool(match["optional"]), alignment))
    groups = (f"([{_KINDS[slot.name]}]{'?' if slot.optional else ''})" for slot in slots)
    return _Pattern(tuple(slots), re.compile("".join(groups)), hidden)


@cache
def _forms_by_stem() -> dict[str, list[tuple[re.Pattern[str], OperationForm]]]:
    forms: dict[str, list[tuple[re.Pattern[str], OperationForm]]] = defaultdict(list)
    for form in OPERATION_FORMS:
        prefix = re.compile(form.opcode.replace(".", r"\.") + r"((?:\.\w+)*)")
        forms[form.opcode.partition(".")[0]].append((prefix, form))
    return dict(forms)


def _accepts(form: OperationForm, modifiers: str) -> bool:
    left = set(modifiers.split(".")) - {""}
    for group in form.requires.split():
        present = left & set(group.split("|"))
        if not present:
            return False
        left -= present
    return left <= set(form.allows.split())


def matching_forms(opcode: str) -> Iterator[OperationForm]:
    """The rows that cover an opcode with its modifiers, with any operands."""
    for prefix, form in _forms_by_stem().get(opcode.partition(".")[0], ()):
        match = prefix.fullmatch(opcode)
        if match is not None and _accepts(form, match[match.re.groups]):
            yield form


@lru_cache(maxsize=1 << 12)
def _patterns(opcode: str) -> tuple[_Pattern, ...]:
    """The patterns of an opcode's row. Raises RejectedKernel without a row."""
    forms = tuple(matching_forms(opcode))
    if not forms:
        reason = REFUSED.get(opcode.partition(".")[0], "is not in the table of operations")
        raise RejectedKernel("unknown-opcode", f"opcode {opcode} {reason}")
    assert len(forms) == 1, (opcode, forms)
    alternatives = forms[0].operands.split("|")
    # A row with a hidden pair has one alternative, and the pair is its last slot.
    return tuple(_pattern(text) for text in alternatives)


@lru_cache(maxsize=1 << 14)
def _plan(opcode: str, kinds: str) -> _Plan | None:
    for pattern in _patterns(opcode):
        match = pattern.kinds.fullmatch(kinds)
        if match is not None:
            present = (s for s, text in zip(pattern.slots, match.groups(), strict=True) if text)
            return _Plan(tuple(present), pattern.hidden_bit)
    return None


def effects_of(opcode: str, operands: tuple[str, ...]) -> DecodedEffects:
    """The definitions and uses of `opcode` with these printed operands.

    Raises RejectedKernel for an opcode or operands that the table does not cover,
    and InputError for an operand of unknown form.
    """
    _patterns(opcode)  # an unknown opcode is reported first, whatever its operands are
    parsed = [parse_operand(text) for text in operands]
    plan = _plan(opcode, "".join([operand.kind for operand in parsed]))
    if plan is None:
        raise _uncovered(opcode, operands)
    definitions: list[RegisterReference] = []
    uses: list[RegisterReference] = []
    for place, (slot, operand) in enumerate(zip(plan.slots, parsed, strict=True)):
        if slot.name in {"MD", "MU"}:
            target = definitions if slot.name == "MD" else uses
            target.extend(_masked(parsed, place))
        elif operand.address:
            uses.extend(_address(slot, operand, place, opcode, operands))
        elif operand.index is not None:
            count = 2 if slot.name in {"J", "UJ"} else slot.count
            reference = RegisterReference(
                operand.file, operand.index, count, place, alignment=slot.alignment
            )
            if operand.index % reference.step:
                raise _uncovered(opcode, operands)
            (definitions if slot.name in _DEFINED else uses).append(reference)
    if opcode.startswith("CALL.") and uses:  # the callee is not known: the ABI says the rest
        return DecodedEffects(_fixed(RETURNED), (*uses, *_fixed(READ)), None, _fixed(DESTROYED))
    hidden = any(text.startswith("[") and ".64" in text for text in operands)
    return DecodedEffects(tuple(definitions), tuple(uses), plan.hidden_bit if hidden else None)


def _fixed(listed: Iterable[FixedUnits]) -> tuple[RegisterReference, ...]:
    return tuple(RegisterReference(u.file, u.first, u.count, -1, fixed=True) for u in listed)


def _uncovered(opcode: str, operands: tuple[str, ...]) -> RejectedKernel:
    text = ", ".join(operands) or "no operands"
    return RejectedKernel("unknown-operands", f"opcode {opcode} is not known with {text}")


def _masked(operands: list[SassOperand], place: int) -> Iterator[RegisterReference]:
    """The predicates in the mask at the end; without a mask, all seven."""
    mask = operands[-1].value if operands[-1].kind == "I" else 0x7F
    for index in range(7):
        if mask is None or mask >> index & 1:
            yield RegisterReference("P", index, 1, place, fixed=True)


def _address(
    slot: _Slot, operand: SassOperand, place: int, opcode: str, operands: tuple[str, ...]
) -> Iterator[RegisterReference]:
    """The registers of an address: 32 bits each, or 64 if the operation or `.64` says so.

    Raises RejectedKernel for a 64-bit base with a uniform or a 32-bit register: no
    known code has it. Of uniform addresses the operation alone says how many registers they have.
    """
    if slot.name == "UA":
        (register, *more) = operand.address
        step = 1 << (slot.count - 1).bit_length()
        if more or register.file != "UR" or register.index % step:
            raise _uncovered(opcode, operands)
        yield RegisterReference("UR", register.index, slot.count, place, alignment=step)
        return
    wide = slot.name == "A" and slot.count == 2
    for register in operand.address:
        count = register.count or (2 if wide else 1)
        unclear = wide and (count == 1 or (register.count is None and len(operand.address) > 1))
        if unclear or register.index % count:
            raise _uncovered(opcode, operands)
        yield RegisterReference(register.file, register.index, count, place)


def hidden_pair(encoding: int, bit: int) -> RegisterReference | None:
    """The uniform pair at `bit` of the encoding, or None without a pair."""
    if not encoding & _UNIFORM_PAIR_BIT:
        return None
    first = encoding >> bit & 0x3F
    return None if first == _NO_UNIFORM else RegisterReference("UR", first, 2, -1)
