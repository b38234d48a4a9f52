"""Two allocators that answer the windows of `text-notes` beside the model: the rule, and a copier.

The *rule* is a linear scan over text intervals. It is what the model learnt, and drafts its words.
The *copier* keeps no list. It says of a name that it has seen what stood after it, and of a new one
the first block shown that it has not said yet. The program says the words about lists in its place.
They show how much of an answer the windows give away.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from verilocc_bench.allocators import (
    Answer,
    Assistance,
    LabelUse,
    Request,
    SingleAllocator,
    answer_from_assignment,
)
from verilocc_bench.errors import AllocationFailed, InputError
from verilocc_bench.model.notes.mentions import refuse_unspeakable
from verilocc_bench.model.notes.notes_format import FORMAT
from verilocc_bench.model.notes.notes_ledger import Contradiction, noted_assignment
from verilocc_bench.model.notes.notes_reading import Reading
from verilocc_bench.model.notes.notes_words import CROSSED, DRY, END, KNOWN, MORE, NEW, lists_of
from verilocc_bench.model.notes.talk import Asked, Say, WrongWord, answered, words_of_rule
from verilocc_bench.settings.allocator import AllocatorSettings


@dataclass(frozen=True)
class WindowAllocator(SingleAllocator):
    """Answers the windows of a function by the words of one that `answering` gives for a prompt."""

    name: str
    description: str
    answering: Callable[[list[str]], Say]
    settings: AllocatorSettings = field(default_factory=AllocatorSettings)

    revision: ClassVar[None] = None
    assistance: ClassVar[Assistance] = FORMAT.assistance
    deterministic: ClassVar[bool] = True
    label_use: ClassVar[LabelUse] = LabelUse.NONE
    tracks: ClassVar[tuple[str, ...]] = ("assign",)

    def allocate(self, request: Request) -> Answer:
        """The answer that fills the notes. Raises AllocationFailed where the words contradict."""
        function = request.problem.function
        try:
            refuse_unspeakable(function)
            reading = Reading(function, random.Random(request.seed))  # noqa: S311
            for window in reading:
                for _ in answered(window, self.answering(window.prompt())):
                    pass
        except (Contradiction, WrongWord, InputError) as error:
            raise AllocationFailed(str(error)) from None
        assignment = noted_assignment(reading.ledger)
        return Answer(answer_from_assignment(request.problem, assignment))


def copier(prompt: list[str]) -> Say:
    """One who says what stands in the words of a window, and keeps nothing else."""
    words, taken = list(prompt), set[str]()

    def say(asked: Asked) -> str:
        words.extend(asked.fed)
        word = asked.right if asked.of_list else _copied(words, taken)
        words.append(word)
        return word

    return say


def _copied(words: list[str], taken: set[str]) -> str:
    """A word after some others; adds a block to those that are taken."""
    *before, role, name = words
    before.append(role)
    if words[0] == DRY:
        return CROSSED if role == "X" else KNOWN if name in before else NEW
    of_list = name.removeprefix("P_")
    if of_list == name:
        if name in before:
            return before[len(before) - before[::-1].index(name)]
        of_list = "{}{}".format(*lists_of(role.partition("_")[2])[0])
    shown = words[words.index(f"H_{of_list}") + 1 :]
    word = next(each for each in shown if each not in taken)
    if word not in (END, MORE):
        taken.add(word)
    return word


BESIDE = {
    allocator.name: allocator
    for allocator in (
        WindowAllocator(
            "reference-rule",
            "the rule that the model copies: linear scan over text intervals",
            lambda _: words_of_rule,
        ),
        WindowAllocator(
            "reference-copier",
            "copies what stands in the model's windows, and keeps no list",
            copier,
        ),
    )
}
"""The allocators beside the model, by name."""
