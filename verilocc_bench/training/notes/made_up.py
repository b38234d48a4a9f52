"""Made-up windows: states of the notes that kernels come to seldom, or never.

Names, lines, lists and the order of mentions are drawn at random, so that each register is met
in each place. Nothing more is true of such a window than what an answer follows from: a name
with a line has the register of its line, and one without takes the last place of its list.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from verilocc_bench.model.prompts.notes.reading import Mention, Role
from verilocc_bench.model.prompts.notes.window import (
    DRY_MENTIONS,
    MENTIONS,
    SHOWN,
    DryWindow,
)
from verilocc_bench.model.prompts.notes.words import (
    FILES_OF_KIND,
    NAMES,
    REGISTERS,
    SAY,
    SHAPES,
    WINDOW,
    register_word,
)

KINDS = ((("v", 8), ("s", 4), ("a", 2), ("av", 3)), (("R", 8), ("UR", 2), ("P", 3), ("UP", 1)))
"""How often the kinds of shapes of AMD and of NVIDIA are drawn."""

WIDTHS = {1: 50, 2: 25, 4: 14, 8: 4, 16: 4}
"""How often a width is drawn; 1 for all others."""

STEPS = (1, 1, 2, 4)
"""Distances between places of a list."""

Shape = tuple[str, int]


@dataclass(slots=True)
class MadeUpWindow:
    """Words, and which of them are the model's to say."""

    words: list[str]
    said: list[bool] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.said = [False] * len(self.words)

    def add(self, words: list[str], *, said: bool) -> None:
        """Some words of the same kind."""
        self.words += words
        self.said += [said] * len(words)


def made_up_window(draw: random.Random) -> MadeUpWindow:
    """A window with registers, answered."""
    names = draw.sample(NAMES, MENTIONS)
    shapes = [_shape(draw) for _ in range(draw.choice((1, 2, 2, 3, 4)))]
    lines: dict[str, tuple[Shape, str]] = {}
    for name in names[: draw.randint(0, MENTIONS)]:
        shape = draw.choice(shapes)
        lines[name] = shape, _places(draw, shape, 1)[0]
    written = MadeUpWindow([WINDOW])
    for name in draw.sample(list(lines), len(lines)):
        written.add([name, lines[name][1]], said=False)
    written.add([SAY], said=False)
    unknown = [name for name in names if name not in lines]
    lists = {shape: _places(draw, shape, SHOWN) for shape in shapes}
    new_share = draw.choice((0.1, 0.4, 0.7))
    for _ in range(draw.choice((MENTIONS, draw.randint(1, MENTIONS)))):
        known = bool(lines) and not (unknown and draw.random() < new_share)
        name = draw.choice(list(lines)) if known else unknown.pop()
        shape = lines[name][0] if known else draw.choice(shapes)
        written.add([f"L_{_spelled(shape)}", *reversed(lists[shape])], said=False)
        begins = draw.random() < 0.25
        word = lines[name][1] if known else lists[shape][0]
        written.add([f"{'X' if begins else 'C'}_{_spelled(shape)}", name], said=False)
        written.add([word], said=True)
        lines[name] = shape, word
        if begins:
            del lines[name]
            if draw.random() < 0.6:
                lists[shape] = [word, *lists[shape]][:SHOWN]
        if not known:
            _move_on(draw, lists, shape, word)
        if not lines and not unknown:
            break
    return written


def _move_on(draw: random.Random, lists: dict[Shape, list[str]], shape: Shape, taken: str) -> None:
    """After a place was taken: it stands in no list any more, and others have changed, too."""
    for other, places in lists.items():
        if taken in places or (other == shape and draw.random() < 0.2) or draw.random() < 0.2:
            left = [place for place in places if place != taken]
            further = [p for p in _places(draw, other, SHOWN) if p not in left and p != taken]
            lists[other] = (left + further)[:SHOWN] or _places(draw, other, 1)


def _shape(draw: random.Random) -> Shape:
    kinds = draw.choice(KINDS)
    kind = draw.choices([k for k, _ in kinds], [often for _, often in kinds])[0]
    widths = SHAPES[kind]
    return kind, draw.choices(widths, [WIDTHS.get(width, 1) for width in widths])[0]


def _spelled(shape: Shape) -> str:
    return f"{shape[0]}{shape[1]}"


def _places(draw: random.Random, shape: Shape, most: int) -> list[str]:
    """Some registers in a row, as a list has them."""
    kind, width = shape
    files = FILES_OF_KIND.get(kind, (kind,))
    file = draw.choice(files)
    count = REGISTERS[file] - width + 1
    number = draw.randrange(draw.choice((count, count, min(count, 64))))
    found: list[str] = []
    while number < count and len(found) < most:
        found.append(register_word(file, number))
        step = draw.choice((*STEPS, draw.randint(1, 24)))
        number += step
    if len(files) > 1 and len(found) > 1 and file == files[0]:
        found[-1] = register_word(files[1], draw.randrange(REGISTERS[files[1]] - width + 1))
    return found


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
