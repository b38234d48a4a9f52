"""Pools of windows, in the order in which they are learnt.

A pool is made from the recipe's seed and its number alone. Its windows are sorted by length
and cut into batches, so that little is padding, and the batches are shuffled.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from contextlib import suppress

from verilocc_bench.ir import Function
from verilocc_bench.model.notes.notes_ledger import Contradiction
from verilocc_bench.training.notes.lessons import Lesson, function_lessons, made_up_lessons
from verilocc_bench.training.notes.recipe import NotesRecipe

WINDOWS_A_FUNCTION = 160
"""The most windows of one function at a time: they differ little from each other."""

WITHHELD = 0.8
"""This share of the readings of functions lacks some registers."""

TRIES = 1000
"""Functions that are tried in vain, in a row, before made-up windows take their place."""


def pool_batches(
    recipe: NotesRecipe, functions: Sequence[Function], number: int
) -> list[list[Lesson]]:
    """The batches of a pool."""
    draw = random.Random(f"{recipe.seed} pool {number}")  # noqa: S311
    count = recipe.pool_windows
    of_functions = round(count * recipe.function_share) if functions else 0
    lessons = list(itertools.islice(_of_functions(functions, draw), of_functions))
    lessons += itertools.islice(made_up_lessons(draw), count - len(lessons))
    draw.shuffle(lessons)
    lessons.sort(key=lambda lesson: len(lesson.tokens))
    size = recipe.batch_windows
    batches = [lessons[first : first + size] for first in range(0, count, size)]
    draw.shuffle(batches)
    return batches


def _of_functions(functions: Sequence[Function], draw: random.Random) -> Iterator[Lesson]:
    """Windows of functions; where the rule ends early, those up to there."""
    in_vain = 0
    while in_vain < TRIES:
        withheld = draw.random() < WITHHELD
        function = draw.choice(functions)
        lessons = function_lessons(function, draw.getrandbits(64), withheld=withheld)
        found: list[Lesson] = []
        with suppress(Contradiction):
            found.extend(lesson for lesson in lessons if any(lesson.said))
        in_vain = 0 if found else in_vain + 1
        yield from draw.sample(found, min(WINDOWS_A_FUNCTION, len(found)))
