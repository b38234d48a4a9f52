"""Windows of the prompt format `text-notes`: what is shown, fed, and said.

    W N0 v4  H_v1 v1 v7 - H_v2 - H_v4 v8 v12 + …  SAY
    C_v2 N0 => v4                                       its line
    C_v1 N1 => v1  U_v1 => v7                           no line: the head; the list's new head
    C_v2 N2 => -  P_v4 => v8  N2 v8  U_v4 => v12        nothing of two: the next wider list
        +2 v8 F_v2 => v10 -                             what is left of the block: its list's head
    X_v2 N0 => v4  F_v2 => v4 v10                       N0 begins: v4 is the head, then v10

The lists are what the model's words have left free, sorted and joined to aligned blocks by
the program at the head of the window. Within it the model keeps them, and so does the program,
which finds a wrong word about them. The model is asked for what a later name of the window may
need, and for nothing else.

The *rule* knows no more than a window shows. A name that has a line has the register of its line.
One that has none takes the first block of the shortest list that has one.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from verilocc_bench.ir import RegisterClass
from verilocc_bench.model.notes.free_blocks import aligned_blocks, shown_units
from verilocc_bench.model.notes.mentions import Deed, Mention, Role
from verilocc_bench.model.notes.notes_ledger import (
    NOT_TAKEN,
    Contradiction,
    NotedPlace,
    NotesLedger,
)
from verilocc_bench.model.notes.notes_words import (
    END,
    MORE,
    NAMES,
    REGISTERS,
    SAY,
    SIZES,
    WINDOW,
    lists_of,
    register_word,
    shape_of,
)
from verilocc_bench.model.notes.talk import Asked, Conversation, WrongWord

ITEMS = 8
"""The most items of a window."""

SHOWN = 6
"""The most blocks that a list shows."""

Sizes = Mapping[str, tuple[int, ...]]
"""The sizes of blocks that a pass has lists of, by file."""

_NO_PLACE = "it finds no place for %"


class NoBlockLeft(Contradiction):
    """No list has a block for a virtual register, as the words say."""

    def __init__(self, register: int) -> None:
        super().__init__(f"{_NO_PLACE}{register}")
        self.register = register


def without_place(message: str) -> int | None:
    """The virtual register of a NoBlockLeft, from what is told of it."""
    _, found, number = message.rpartition(_NO_PLACE)
    return int(number) if found and number.isdecimal() else None


@dataclass(frozen=True, slots=True)
class Item:
    """A mention; or, with `gives`, a place where a virtual register gives some lanes back.

    `before`: what the text alone does before: lanes return, or the function's own registers are
    lent.
    """

    mention: Mention
    before: tuple[Deed, ...] = ()
    gives: Deed | None = None

    @property
    def register(self) -> int:
        """The virtual register."""
        return self.mention.register


def items_of(mentions: Sequence[Mention]) -> list[Item]:
    """Mentions, and before each the places where lanes are given back."""
    items: list[Item] = []
    before: list[Deed] = []
    for mention in mentions:
        for deed in mention.before:
            if deed.returns or deed.register < 0:
                before.append(deed)
            else:
                items.append(Item(Mention(deed.register), tuple(before), deed))
                before = []
        items.append(Item(mention, tuple(before)))
        before = []
    return items


class NotesWindow:
    """A stretch of the text in which virtual registers get registers.

    After the conversation `answered` items are done; it may end before the last where a list does
    not show enough, or has run dry: a new window shows the lists again. `sizes` are the sizes
    of its lists.
    """

    def __init__(
        self,
        items: Sequence[Item],
        classes: Mapping[int, RegisterClass],
        ledger: NotesLedger,
        naming: random.Random,
        sizes: Sizes = SIZES,
    ) -> None:
        self.items = tuple(items)
        self.classes, self.ledger, self.sizes = classes, ledger, sizes
        registers = list(dict.fromkeys(item.register for item in items))
        drawn = naming.sample(NAMES, len(registers))
        self.names = dict(zip(registers, drawn, strict=True))
        self.shapes = {register: shape_of(classes[register]) for register in registers}
        self.answered = 0
        self._blocks: dict[str, list[str]] = {}
        self._line: list[str] = []
        self._spans: dict[str, tuple[int, int]] = {}
        for item in items:
            if self._is_new(item):
                begins, place = item.mention.begins, item.mention.place
                for file in classes[item.register].files:
                    first, last = self._spans.get(file, (begins, place))
                    self._spans[file] = min(first, begins), max(last, place)

    def _is_new(self, item: Item) -> bool:
        return item.gives is None and item.register not in self.ledger.live

    def prompt(self) -> list[str]:
        """The lines that the window may need, and the lists that it may take from."""
        words = [WINDOW]
        for register, name in self.names.items():
            place = self.ledger.live.get(register)
            if place is not None:
                words += [name, register_word(place.file, place.number)]
        for of_list, blocks in self._shown_lists.items():
            words += [f"H_{of_list}", *blocks]
        return [*words, SAY]

    @cached_property
    def _shown_lists(self) -> dict[str, list[str]]:
        """The lists as the window shows them at its head, with the word that ends each."""
        found = {}
        for file in self._files_wanted(0):
            for size, blocks in self.lists(file).items():
                words = [register_word(file, number) for number in blocks[:SHOWN]]
                found[f"{file}{size}"] = [*words, MORE if len(blocks) > SHOWN else END]
        return found

    def lists(self, file: str) -> dict[int, list[int]]:
        """The free blocks of a file by size.

        First those that the reading before has soonest above the window's names, which so stay
        idle for the shortest time; of equals the lowest.
        """
        units = shown_units(self._open(file), self.ledger.highest.get(file, 0), file)
        blocks = aligned_blocks(units, self.sizes[file])
        above = self.ledger.kept_above(file, self._spans.get(file, (0, 0))[0], units)
        for size, numbers in blocks.items():
            numbers.sort(key=lambda n: -max(above.get(n + k, NOT_TAKEN) for k in range(size)))
        return blocks

    def _lists_of(self, register: int) -> list[tuple[str, int]]:
        """(file, size) of the lists where a virtual register may take a block."""
        lists = lists_of(self.shapes[register])
        return [(file, size) for file, size in lists if size in self.sizes[file]]

    def _open(self, file: str) -> int:
        """What is free for every name of the window that has no line."""
        return self.ledger.open_units(file, *self._spans.get(file, (0, 0)))

    def _files_wanted(self, place: int) -> list[str]:
        """The files from which names that come from a place on, and have no line, may take."""
        wanted = {
            file
            for item in self.items[place:]
            if self._is_new(item)
            for file, _ in self._lists_of(item.register)
            if file in self.ledger.free
        }
        return [file for file in REGISTERS if file in wanted]

    def conversation(self) -> Conversation:
        """See Conversation."""
        self._blocks = {name: list(blocks) for name, blocks in self._shown_lists.items()}
        self._line, self.answered = [], 0
        for place, item in enumerate(self.items):
            for deed in item.before:
                self._do(deed)
            if item.gives is None:
                goes_on = yield from self._mention(place, item.mention)
                if not goes_on:
                    if len(self.items) == 1:
                        raise NoBlockLeft(item.register)
                    return
            elif item.register in self.ledger.live:
                yield from self._give(place, item.register, [item.gives])
            self.answered += 1

    def _do(self, deed: Deed) -> None:
        ledger = self.ledger
        if not ledger.has(deed.register):
            return
        ledger.now = deed.place
        if deed.returns:
            ledger.give_back(deed.register, deed.lanes)
        elif deed.until is not None:
            ledger.lend(deed.register, deed.lanes, deed.until)
        else:
            ledger.leave(deed.register, deed.lanes)

    def _mention(self, place: int, mention: Mention) -> Generator[Asked, str, bool]:
        """A mention; False where the lists of the window have no block for it."""
        register = mention.register
        fed = self._fed(f"{mention.role.value}_{self.shapes[register]}", self.names[register])
        if register in self.ledger.live:
            yield from self._known(register, fed)
        elif not (yield from self._take(place, mention, fed)):
            return False
        if mention.role is Role.BEGINS:
            held, open_before = self._held(register)
            self.ledger.now = mention.begins
            self.ledger.cross_out(register, self.classes[register].width)
            yield from self._put_back(place, held, open_before)
        return True

    def _known(self, register: int, fed: Sequence[str]) -> Conversation:
        """A virtual register that has a line, which is what is said of it."""
        known = self.ledger.live[register]
        right = register_word(known.file, known.number)
        word = yield Asked(fed, right)
        if self._place_of(word) != known:
            raise Contradiction(f"%{register} is in {right}, not in {word}")

    def _take(
        self, place: int, mention: Mention, fed: Sequence[str]
    ) -> Generator[Asked, str, bool]:
        register, kind = mention.register, self.classes[mention.register]
        lists = [each for each in self._lists_of(register) if each[0] in self.ledger.free]
        for asked, (file, size) in enumerate(lists):
            blocks = self._blocks.get(f"{file}{size}", [END])
            word = yield Asked([f"P_{file}{size}"] if asked else fed, blocks[0])
            if word != END:
                break
        if word in (END, MORE):
            return False
        taken = self._place_of(word)
        if taken.file != file:
            raise WrongWord(f"{word} is not a block of {file}")
        self.ledger.now = mention.place
        self.ledger.take(register, kind, taken, mention.begins)
        if word in blocks:
            blocks.remove(word)
        self._line = [self.names[register], word] if asked else []
        if file in self._files_wanted(place + 1):
            fed = self._fed(f"U_{file}{size}")
            yield from self._of_list(f"{file}{size}", Asked(fed, blocks[0], of_list=True))
            left = (1 << size) - (1 << kind.width)
            yield from self._put(taken, left, apart=True)
        if mention.later:
            yield from self._give(place, register, mention.lent_at_once())
        return True

    def _fed(self, *words: str) -> list[str]:
        """Words that are fed next, after the line of a name that took from a list of the next size.

        Elsewhere a register follows its name, and so makes its line.
        """
        line, self._line = self._line, []
        return [*line, *words]

    def _give(self, place: int, register: int, deeds: Sequence[Deed]) -> Conversation:
        """Lanes are lent until a place, or for good."""
        fed = self._fed(f"Y_{self.shapes[register]}", self.names[register])
        yield from self._known(register, fed)
        held, open_before = self._held(register)
        for deed in deeds:
            self._do(deed)
        yield from self._put_back(place, held, open_before)

    def _held(self, register: int) -> tuple[NotedPlace, int]:
        """What a virtual register has, and what of that file is free all the same."""
        held = self.ledger.live[register]
        return held, self._open(held.file)

    def _put_back(self, place: int, held: NotedPlace, open_before: int) -> Conversation:
        """What has become free goes on the lists, if the window may need it."""
        if held.file in self._files_wanted(place + 1):
            freed = self._open(held.file) & ~open_before
            yield from self._put(held, freed >> held.number, apart=False)

    def _put(self, held: NotedPlace, lanes: int, *, apart: bool) -> Conversation:
        """Blocks of some lanes of a place; `apart` from the model's last word, or just after it."""
        base = register_word(held.file, held.number)
        for size, distances in aligned_blocks(lanes, self.sizes[held.file]).items():
            name = f"{held.file}{size}"
            blocks = self._blocks.setdefault(name, [END])
            for distance in distances:
                fed = [f"+{distance}"] if distance else []
                if distance or apart:
                    fed.append(base)
                block = register_word(held.file, held.number + distance)
                yield from self._of_list(name, Asked([*fed, f"F_{name}"], block, of_list=True))
                yield from self._of_list(name, Asked([], blocks[0], of_list=True))
                blocks.insert(0, block)
                apart = True

    @staticmethod
    def _of_list(name: str, asked: Asked) -> Conversation:
        """A word about a list. Raises WrongWord where it is not what the list has."""
        word = yield asked
        if word != asked.right:
            raise WrongWord(f"{word} instead of {asked.right} in the list {name}")

    @staticmethod
    def _place_of(word: str) -> NotedPlace:
        kind = word.rstrip("0123456789")
        if kind not in REGISTERS or kind == word:
            raise WrongWord(f"{word} names no register")
        return NotedPlace(kind, int(word[len(kind) :]))
