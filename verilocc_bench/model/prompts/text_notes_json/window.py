"""Windows of the format `text-notes-json`: those of `text-notes`, answered by registers alone.

A window is asked about once. What stands in the answer for each mention is heard one by one; the
lists that the model writes down beside it are its own, and nobody reads them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import suppress

from verilocc_bench.model.prompts.notes.ledger import Contradiction, NotedPlace
from verilocc_bench.model.prompts.notes.reading import Deed, Mention, Role
from verilocc_bench.model.prompts.notes.words import register_word
from verilocc_bench.model.prompts.text_notes.window import Item, TextWindow
from verilocc_bench.model.prompts.text_notes_json.lists import FreeLists, Written

BEYOND = 1024
"""No file has so many registers."""


class JsonWindow(TextWindow):
    """A stretch of the text in which virtual registers get registers."""

    free: FreeLists | None = None
    """Where demonstrations have the lists kept."""

    @staticmethod
    def to_ask_again(items: Sequence[Item]) -> Sequence[Item]:
        """All items, for the model is told what was wrong with them."""
        return items

    def free_lists(self) -> FreeLists:
        """The lists at the head of the window, of the files that it may take from."""
        return FreeLists({file: self.lists(file) for file in self._files_wanted(0)})

    def notes(self) -> dict[str, str]:
        """The lines that the window may need."""
        live = self.ledger.live
        return {
            f"%{register}": register_word(live[register].file, live[register].number)
            for register in self.names
            if register in live
        }

    def asked(self) -> Iterator[tuple[int, Item]]:
        """(place, item) of those that the model is asked about.

        An item that gives lanes back is left out if the notes have no line for them.
        """
        live = set(self.ledger.live)
        for place, item in enumerate(self.items):
            if item.gives is None or item.register in live:
                yield place, item
            if item.gives is None:
                live.add(item.register)
                if item.mention.role is Role.BEGINS:
                    live.remove(item.register)

    def freed(self) -> dict[int, int]:
        """By the place of each item that is asked about: the lanes that are free after it.

        The text and the notes decide. A register that the window still has to place gets an
        imagined place beyond all others, so that the choice of the model plays no part.
        """
        found: dict[int, int] = {}
        naming = random.Random(0)  # noqa: S311
        shadow = JsonWindow(self.items, self.classes, self.ledger.saved(), naming, self.sizes)
        with suppress(Contradiction):  # lanes that are needed back, and another has them
            for place, item in self.asked():
                found[place] = shadow._free_at(place, item)
        return found

    def _free_at(self, place: int, item: Item) -> int:
        """The lanes that an item frees, wherever its virtual register is."""
        self._pass_over(place)
        for deed in item.before:
            self._do(deed)
        register, kind = item.register, self.classes[item.register]
        deeds = [] if item.gives is None else [item.gives]
        if register not in self.ledger.live:
            file = next(file for file in kind.files if file in self.ledger.free)
            self.ledger.imagine(register, NotedPlace(file, BEYOND + 32 * place), kind.width)
            deeds = item.mention.lent_at_once()
        held = self.ledger.live[register]
        before = self._open(held.file)
        for deed in deeds:
            self._do(deed)
        if item.gives is None and item.mention.role is Role.BEGINS:
            self.ledger.cross_out(register, kind.width)
        self.answered = place + 1
        return (self._open(held.file) & ~before) >> held.number

    def known(self, item: Item) -> NotedPlace | None:
        """The line of an item's virtual register."""
        return self.ledger.live.get(item.register)

    def hear(self, place: int, word: str | None) -> bool:
        """What the model says of the item of a place; None: it knows no block.

        False where the window ends there; a new one shows the lists again. Items in between
        that nobody is asked about are passed over. Raises WrongWord or Contradiction.
        """
        self._pass_over(place)
        item = self.items[place]
        for deed in item.before:
            self._do(deed)
        known = self.known(item)
        if word is None and known is None:
            if len(self.items) == 1:
                raise Contradiction(f"it finds no place for %{item.register}")
            return False
        said = self._place_of(word or "null")
        if known is not None and said != known:
            raise Contradiction(f"%{item.register} is in {known.file}{known.number}, not in {word}")
        if item.gives is not None:
            self._free_lanes(place, said, [item.gives])
        else:
            self._hear_mention(place, item.mention, said, is_new=known is None)
        self.answered = place + 1
        return True

    def end(self) -> None:
        """All that is asked about has been heard."""
        self._pass_over(len(self.items))
        self.answered = len(self.items)

    def _pass_over(self, place: int) -> None:
        for item in self.items[self.answered : place]:
            for deed in item.before:
                self._do(deed)
        self.answered = place

    def _hear_mention(
        self, place: int, mention: Mention, said: NotedPlace, *, is_new: bool
    ) -> None:
        register, kind = mention.register, self.classes[mention.register]
        if is_new:
            self.ledger.now = mention.place
            self.ledger.take(register, kind, said, mention.begins)
            if self._is_kept(place, said.file):
                self._lists().take(said, kind.width)
            self._free_lanes(place, said, mention.lent_at_once())
        if mention.role is Role.BEGINS:
            before = self._open(said.file)
            self.ledger.now = mention.begins
            self.ledger.cross_out(register, kind.width)
            self._put_on_lists(place, said.file, before)

    def _free_lanes(self, place: int, said: NotedPlace, deeds: list[Deed]) -> None:
        before = self._open(said.file)
        for deed in deeds:
            self._do(deed)
        self._put_on_lists(place, said.file, before)

    def _put_on_lists(self, place: int, file: str, before: int) -> None:
        if self._is_kept(place, file):
            self._lists().put(file, self._open(file) & ~before)

    def _is_kept(self, place: int, file: str) -> bool:
        """Whether a later name of the window may take from a file's lists."""
        return self.free is not None and file in self._files_wanted(place + 1)

    def _lists(self) -> FreeLists:
        assert self.free is not None
        return self.free

    def changes(self) -> Written:
        """What has become of the lists since the last time."""
        return self._lists().changes()
