"""Made-up windows of the format `text-notes`: notes that kernels come to seldom, or never.

What is free, who has what, and the order of mentions are drawn at random, so that each register
is met in each place. The window itself is the one that functions are read with.
"""

from __future__ import annotations

import random
from functools import cache

from verilocc_bench.ir import BaseRange, RegisterClass
from verilocc_bench.model.notes.dry_window import DRY_MENTIONS, DryWindow
from verilocc_bench.model.notes.mentions import Deed, Mention, Role
from verilocc_bench.model.notes.notes_ledger import (
    NOT_TAKEN,
    NotedPlace,
    NotesLedger,
    Owner,
    Stay,
)
from verilocc_bench.model.notes.notes_reading import sizes_for
from verilocc_bench.model.notes.notes_window import ITEMS, Item, NotesWindow
from verilocc_bench.model.notes.notes_words import FILES_OF_KIND, REGISTERS, SHAPES, lists_of

KINDS = ((("v", 8), ("s", 4), ("a", 2), ("av", 3)), (("R", 8), ("UR", 2), ("P", 3), ("UP", 1)))
"""How often the kinds of shapes of AMD and of NVIDIA are drawn."""

WIDTHS = {1: 50, 2: 25, 4: 14, 8: 4, 16: 4}
"""How often a width is drawn; 1 for all others."""

LENT = (-1, 1)
"""Until where lanes of made-up windows are lent; everyone begins at 0, between the two."""

SINGLE_SHARE = 0.6
"""This share of made-up windows is of the second reading, which has single registers."""


@cache
def made_up_class(kind: str, width: int) -> RegisterClass:
    """A class of all places that are multiples of the size of its blocks."""
    files = FILES_OF_KIND.get(kind, (kind,))
    step = lists_of(f"{kind}{width}")[0][1]
    ranges = tuple(BaseRange(file, 0, REGISTERS[file] - width, step) for file in files)
    return RegisterClass(f"{kind}{width}", width, ranges)


def made_up_window(draw: random.Random) -> NotesWindow:
    """A window that is ready to be answered."""
    kinds = draw.choice(KINDS)
    single = draw.random() < SINGLE_SHARE
    classes = [_class(draw, kinds, single=single) for _ in range(draw.choice((1, 2, 2, 3, 3, 4)))]
    files = {file for kind in classes for file in kind.files}
    ledger = NotesLedger(
        {file: _free_units(draw, REGISTERS[file]) for file in REGISTERS if file in files},
        {file: {} for file in files},
    )
    ledger.highest = {file: _highest(draw, units) for file, units in ledger.free.items()}
    registers = {number: draw.choice(classes) for number in range(ITEMS)}
    known = draw.sample(range(ITEMS), draw.choice((0, 1, 2, 3, 4, 5, 6, 8)))
    for register in known:
        _note(draw, ledger, register, registers[register])
    items = _items(draw, registers, set(ledger.live))
    if single:
        ledger.kept = {file: _kept(draw, units) for file, units in ledger.free.items()}
    return NotesWindow(items, registers, ledger, draw, sizes_for(classes))


def _class(
    draw: random.Random, kinds: tuple[tuple[str, int], ...], *, single: bool
) -> RegisterClass:
    shared = [(kind, often) for kind, often in kinds if single or max(SHAPES[kind]) > 1]
    kind = draw.choices([k for k, _ in shared], [often for _, often in shared])[0]
    widths = [width for width in SHAPES[kind] if (width == 1) is single]
    width = draw.choices(widths, [WIDTHS.get(width, 0.6) for width in widths])[0]
    return made_up_class(kind, width)


def _free_units(draw: random.Random, count: int) -> int:
    """What is free of a file: blocks of some sizes, from some number on."""
    units = 0
    for size in (1, 2, 4, 8, 16):
        share = draw.choice((0.0, 0.0, 0.0, 0.02, 0.05, 0.2))
        if share:
            whole = (1 << size) - 1
            for number in range(0, count, size):
                if draw.random() < share:
                    units |= whole << number
    low = draw.choice((0, draw.randrange(count)))
    return units >> low << low & ((1 << count) - 1)


def _kept(draw: random.Random, units: int) -> list[Stay]:
    """Some free registers are taken above, at places that differ; so lists are in another order."""
    share = draw.choice((0.0, 0.3, 0.9))
    stays = [
        (NOT_TAKEN, -draw.randint(1, 9), 1 << number)
        for number in range(units.bit_length())
        if units >> number & 1 and draw.random() < share
    ]
    return sorted(stays, key=lambda stay: -stay[1])


def _highest(draw: random.Random, units: int) -> int:
    """The end of what anybody has had: often nothing is free above."""
    return draw.choice((units.bit_length(), 512, draw.randrange(units.bit_length() + 1)))


def _note(draw: random.Random, ledger: NotesLedger, register: int, kind: RegisterClass) -> None:
    """A line for a register, at a place that nobody has; none if none is found."""
    for _ in range(4):
        each = draw.choice(kind.ranges)
        number = draw.choice(range(each.first, each.last + 1, each.step))
        units = range(number, number + kind.width)
        owners = ledger.owners[each.file]
        if any(unit in owners for unit in units):
            continue
        ledger.free[each.file] |= ((1 << kind.width) - 1) << number
        ledger.take(register, kind, NotedPlace(each.file, number), 0)
        if draw.random() < 0.1:
            ledger.lend(register, _lanes(draw, kind.width), draw.choice(LENT))
        if draw.random() < 0.05:
            lender = Owner(register + 100, draw.choice(LENT))
            for unit in units:
                owners[unit].insert(0, lender)
        return


def _lanes(draw: random.Random, width: int) -> int:
    """Some lanes: all, a half, or as it falls."""
    every = (1 << width) - 1
    half = (1 << width // 2) - 1
    return draw.choice((every, half, every & ~half, draw.randrange(1, every + 1))) or every


def _items(draw: random.Random, registers: dict[int, RegisterClass], live: set[int]) -> list[Item]:
    unknown = [register for register in registers if register not in live]
    known = list(live)
    new_share, end_share = draw.choice((0.2, 0.4, 0.6, 0.8)), draw.choice((0.1, 0.4, 0.7))
    give_share = draw.choice((0.0, 0.05, 0.2))
    items: list[Item] = []
    while len(items) < ITEMS and (known or unknown):
        is_new = bool(unknown) and (not known or draw.random() < new_share)
        register = unknown.pop() if is_new else draw.choice(known)
        width = registers[register].width
        if not is_new and draw.random() < give_share:
            until = draw.choice((None, None, *LENT))
            items.append(Item(Mention(register), gives=Deed(register, _lanes(draw, width), until)))
            continue
        ends = draw.random() < end_share
        later: tuple[tuple[int, int], ...] = ()
        if is_new and width > 1 and draw.random() < give_share:
            later = ((_lanes(draw, width), draw.choice(LENT)),)
        items.append(Item(Mention(register, Role.BEGINS if ends else Role.PLAIN, 0, later)))
        if is_new and not ends:
            known.append(register)
        elif ends and not is_new:
            known.remove(register)
    return items


def made_up_dry(draw: random.Random) -> DryWindow:
    """A dry window."""
    registers = list(range(draw.randint(2, DRY_MENTIONS)))
    mentions, gone = [], set[int]()
    for _ in range(draw.randint(2, DRY_MENTIONS)):
        register = draw.choice(registers)
        if register in gone:
            continue
        begins = draw.random() < 0.3
        if begins:
            gone.add(register)
        mentions.append(Mention(register, Role.BEGINS if begins else Role.PLAIN))
    noted = dict.fromkeys(r for r in registers if draw.random() < 0.4)
    return DryWindow(mentions, noted, draw)
