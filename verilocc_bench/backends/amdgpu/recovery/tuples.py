"""Groups of webs: the tuples of registers that operands name, with their register classes.

Webs that one operand names together form a group, with the offset of each web in it,
as in the sm_80 back end. A group's class is the widest of LLVM's classes that every
operand takes. Where a class must begin at a certain alignment, the group is extended by
registers before and behind it that nothing uses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from verilocc_bench.backends.amdgpu.recovery.records import CodeBlock, file_of, index_of
from verilocc_bench.backends.amdgpu.recovery.webs import CodeWebs, WebOperand
from verilocc_bench.errors import RejectedKernel
from verilocc_bench.targets.amdgpu_classes import class_bases

_WIDTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 16, 32)
_LONGEST_EXTENSION = 3
# Classes of operands that no virtual register can have: what such a register may be there.
_OPERAND_CLASSES = {
    "vs_32": {"v": "vgpr_32", "s": "sreg_32"},
    "vs_64_align2": {"v": "vreg_64_align2", "s": "sreg_64"},
    "vregorlds_32": {"v": "vgpr_32"},
    "sreg_64_encodable": {"s": "sreg_64"},
    "sreg_128": {"s": "sgpr_128"},
    "sreg_128_xnull": {"s": "sgpr_128"},
    "sreg_256": {"s": "sgpr_256"},
    "sreg_512": {"s": "sgpr_512"},
}


@dataclass(frozen=True, slots=True)
class TupleOfWebs:
    """A virtual register: `class_name` is its class, `width` its units.

    `base` is the first unit that it has in the machine code.
    """

    class_name: str
    width: int
    base: int


@dataclass(frozen=True, slots=True)
class Tuples:
    """The virtual registers, and the place of each web: (register, lane)."""

    registers: tuple[TupleOfWebs, ...]
    places: dict[int, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class _NamedOperand:
    """An operand that is replaced, with the class that its instruction (`text`) asks for."""

    class_name: str | None
    text: str
    operand: WebOperand


@dataclass(slots=True)
class _Group:
    low: int
    high: int
    file: str
    first_unit: int  # the unit at offset 0
    uses: set[tuple[str, int]]  # (class, offset of the operand's first unit)


class _Forest:
    """Webs with their offsets from the leader of their group."""

    def __init__(self) -> None:
        self.above: dict[int, tuple[int, int]] = {}

    def locate(self, web: int) -> tuple[int, int]:
        """The leader of a web's group, and the offset of the web from it."""
        passed = []
        while web in self.above:
            passed.append(web)
            web = self.above[web][0]
        offset = 0
        for each in reversed(passed):  # so that the next way to the leader is one step
            offset += self.above[each][1]
            self.above[each] = web, offset
        return web, offset

    def tie(self, webs: Sequence[int]) -> bool:
        """Puts webs side by side. False if they stand elsewhere already."""
        first, first_offset = self.locate(webs[0])
        for distance, web in enumerate(webs[1:], 1):
            other, offset = self.locate(web)
            shift = first_offset + distance - offset
            if other == first and shift:
                return False
            if other != first:
                self.above[other] = first, shift
        return True


def group_webs(blocks: Sequence[CodeBlock], webs: CodeWebs) -> Tuples:
    """The virtual registers of a kernel, numbered by their first place in the code.

    Raises RejectedKernel, `tuple-groups`, if operands tie registers in a way that no
    class of LLVM's has.
    """
    forest = _Forest()
    operands = [
        _NamedOperand(instruction.operands[each.operand].class_name, instruction.text, each)
        for block, rows in zip(blocks, webs.operands, strict=True)
        for instruction, row in zip(block.instructions, rows, strict=True)
        for each in row
    ]
    for named in operands:
        if not forest.tie(named.operand.webs):
            reason = f"{named.text}: one register at two places of a tuple"
            raise RejectedKernel("tuple-groups", reason)
    groups: dict[int, _Group] = {}
    for named in operands:
        _add(groups, *forest.locate(named.operand.webs[0]), named)
    for unit, web in webs.live_ins:
        leader, offset = forest.locate(web)
        if leader not in groups:
            groups[leader] = _Group(offset, offset, file_of(unit), unit - offset, set())
    registers: list[TupleOfWebs] = []
    numbers: dict[int, tuple[int, int]] = {}
    for leader, group in groups.items():
        made, lane_of_leader = _register(group)
        numbers[leader] = len(registers), lane_of_leader
        registers.append(made)
    places = {}
    for web in {web for named in operands for web in named.operand.webs}.union(
        web for _, web in webs.live_ins
    ):
        leader, offset = forest.locate(web)
        number, lane = numbers[leader]
        places[web] = number, lane + offset
    return Tuples(tuple(registers), places)


def _add(groups: dict[int, _Group], leader: int, offset: int, named: _NamedOperand) -> None:
    operand = named.operand
    first = operand.units[0] - offset
    file = file_of(operand.units[0])
    last = offset + len(operand.units) - 1
    group = groups.setdefault(leader, _Group(offset, last, file, first, set()))
    if (group.file, group.first_unit) != (file, first):
        raise RejectedKernel("tuple-groups", f"{named.text}: a register in two places")
    group.low, group.high = min(group.low, offset), max(group.high, last)
    if named.class_name is not None:
        group.uses.add((named.class_name, offset))


def _register(group: _Group) -> tuple[TupleOfWebs, int]:
    """The virtual register of a group, and the lane of the offset 0 in it."""
    first = index_of(group.first_unit + group.low)
    for before in range(min(_LONGEST_EXTENSION, first) + 1):
        least = group.high - group.low + 1 + before
        for width in [w for w in _WIDTHS if w >= least]:
            shift = before - group.low
            for name in _candidates(group.file, width):
                known = class_bases(name)
                if known is None or not any(first - before in r for r in known[1][group.file]):
                    continue
                if all(_fits(name, used, offset + shift) for used, offset in group.uses):
                    base = group.first_unit + group.low - before
                    return TupleOfWebs(name, width, base), shift
    names = ", ".join(sorted(f"{name} at {offset - group.low}" for name, offset in group.uses))
    count = group.high - group.low + 1
    raise RejectedKernel(
        "tuple-groups",
        f"{count} registers from {group.file}{first} on are tied as no class has: {names}",
    )


def _candidates(file: str, width: int) -> Iterator[str]:
    """The classes of a width, the one with most registers first."""
    bits = 32 * width
    if file == "s":
        yield {1: "sreg_32_xm0_xexec", 2: "sreg_64_xexec_xnull"}.get(width, f"sgpr_{bits}")
        yield f"sgpr_{bits}"
    else:
        suffix = "" if width == 1 else "_align2"
        yield f"av_{bits}{suffix}"
        plain = (
            {"v": "vgpr_32", "a": "agpr_32"}
            if width == 1
            else {"v": f"vreg_{bits}", "a": f"areg_{bits}"}
        )
        yield plain[file] + suffix


@cache
def _fits(class_name: str, used: str, offset: int) -> bool:
    """True if lanes of a class from `offset` on are always registers of the class `used`."""
    whole = class_bases(class_name)
    assert whole is not None
    for file, ranges in whole[1].items():
        own = "s" if file == "vcc" else file
        part_name = _OPERAND_CLASSES.get(used, {}).get(own, used)
        part = class_bases(part_name)
        if part is None or file not in part[1]:
            return False
        allowed = {base for each in part[1][file] for base in each}
        if any(base + offset not in allowed for each in ranges for base in each):
            return False
    return True
