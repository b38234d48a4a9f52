"""The teacher, made-up streams, and the windows that are learnt."""

from __future__ import annotations

import random
from collections import Counter
from itertools import islice

import pytest

from tests.generated import random_function
from verilocc_bench.allocators import answer_from_assignment
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import load_rows
from verilocc_bench.edits.findings import FindingKind
from verilocc_bench.errors import InputError
from verilocc_bench.ir import parse_function
from verilocc_bench.model.notes.teacher import OutOfRegisters
from verilocc_bench.model.prompts.notes.episode import noted_assignment
from verilocc_bench.model.prompts.notes.words import vocabulary
from verilocc_bench.training.notes.lessons import Lesson, function_lessons, made_up_lessons
from verilocc_bench.verification import Verifier

pytest.importorskip("torch")

from verilocc_bench.training.notes.pools import pool_batches
from verilocc_bench.training.notes.recipe import NotesRecipe


def in_words(lesson: Lesson) -> str:
    words = vocabulary()
    return " ".join(words[token] for token in lesson.tokens)


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "sm_80"])
def test_the_teacher_is_right_but_for_ties(target: str) -> None:
    """What it cannot know from a text that no compiler wrote: ties, and values of guarded loops."""
    kinds: Counter[FindingKind | str] = Counter()
    for seed in range(150):
        function = random_function(seed, registers=12, blocks=6, target=target)
        problem = AllocationProblem(function)
        lessons, ledger = function_lessons(function, seed)
        try:
            list(lessons)
            answer = answer_from_assignment(problem, noted_assignment(ledger))
            verdict = Verifier(problem).verify(answer)
        except (OutOfRegisters, InputError):
            continue
        kinds[verdict.findings[0].kind if verdict.findings else "valid"] += 1
    assert kinds["valid"] > 30
    assert kinds.keys() <= {"valid", FindingKind.TIED_MISMATCH}


def test_every_register_class_of_the_kernels_has_words() -> None:
    seen: set[str] = set()
    for row in sorted(load_rows("mini").rows, key=lambda row: row.n_instructions):
        lines = row.normalized.splitlines()
        classes = {f"{row.arch} {line}" for line in lines if line.startswith("class ")}
        if classes - seen:
            lessons, _ = function_lessons(parse_function(row.normalized, row.id), 0)
            assert next(lessons).tokens
            seen |= classes
    assert len(seen) > 20


def test_lessons_follow_from_their_seed() -> None:
    first = list(islice(made_up_lessons(random.Random("a")), 5))
    assert list(islice(made_up_lessons(random.Random("a")), 5)) == first
    assert list(islice(made_up_lessons(random.Random("b")), 5)) != first
    recipe = NotesRecipe("r", "", 1, pool_windows=64)
    function = random_function(3, target="gfx942")
    assert pool_batches(recipe, [function], 2) == pool_batches(recipe, [function], 2)
    assert pool_batches(recipe, [function], 2) != pool_batches(recipe, [function], 3)


def test_names_differ_between_readings_and_nothing_else() -> None:
    row = min(load_rows("mini").rows, key=lambda row: row.n_instructions)
    function = parse_function(row.normalized, row.id)
    readings = []
    for seed in (1, 2):
        lessons, ledger = function_lessons(function, seed)
        readings.append(([in_words(lesson) for lesson in lessons], ledger.given))
    assert readings[0][1] == readings[1][1]
    assert readings[0][0] != readings[1][0]


def test_made_up_windows_come_to_every_kind_of_word() -> None:
    seen: Counter[str] = Counter()
    words = vocabulary()
    for lesson in islice(made_up_lessons(random.Random(0)), 600):
        said = (words[t] for t, mine in zip(lesson.tokens, lesson.said, strict=True) if mine)
        seen.update(word.rstrip("0123456789") for word in said)
    assert seen.keys() == {"k", "n", "x", "v", "a", "s", "R", "UR", "P", "UP"}


def test_the_answers_of_made_up_windows_follow_from_them() -> None:
    """A name with a line has its register; one without, the last place of the list before it."""
    for lesson in islice(made_up_lessons(random.Random(1)), 300):
        words = in_words(lesson).split()
        if words[0] != "W":
            continue
        start = words.index("SAY")
        lines = dict(zip(words[1:start:2], words[2:start:2], strict=True))
        for place, mine in enumerate(lesson.said):
            if not mine:
                continue
            role, name, said = words[place - 2 : place + 1]
            assert said == lines.get(name, words[place - 3])
            lines[name] = said
            if role.startswith("X"):
                del lines[name]


def test_a_pool_without_functions_is_made_up() -> None:
    recipe = NotesRecipe("r", "", 1, pool_windows=32, batch_windows=8)
    batches = pool_batches(recipe, [], 0)
    assert [len(batch) for batch in batches] == [8] * 4
    assert all(any(lesson.said) for batch in batches for lesson in batch)
