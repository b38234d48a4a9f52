"""What models of the format `text-notes` learn: lessons of functions, and made-up ones."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import Path

from tests.generated import random_function
from verilocc_bench.dataset import load_rows
from verilocc_bench.evaluation.models import resolve_model
from verilocc_bench.ir import parse_function
from verilocc_bench.model.notes.notes_words import vocabulary
from verilocc_bench.training.notes import run
from verilocc_bench.training.notes.lessons import Lesson, function_lessons, made_up_lessons
from verilocc_bench.training.notes.pools import pool_batches
from verilocc_bench.training.notes.recipe import NotesRecipe
from verilocc_bench.training.recipe_files import find_recipe_file, read_document


def in_words(lesson: Lesson) -> list[str]:
    words = vocabulary()
    return [words[token] for token in lesson.tokens]


def made_up(seed: int, count: int) -> list[Lesson]:
    return list(islice(made_up_lessons(random.Random(seed)), count))


def test_lessons_follow_from_their_seed() -> None:
    assert made_up(1, 20) == made_up(1, 20)
    assert made_up(1, 20) != made_up(2, 20)
    recipe = NotesRecipe("r", "", 1, pool_windows=64)
    function = random_function(3, target="gfx942")
    assert pool_batches(recipe, [function], 2) == pool_batches(recipe, [function], 2)
    assert pool_batches(recipe, [function], 2) != pool_batches(recipe, [function], 3)


def test_made_up_windows_come_to_every_kind_of_word() -> None:
    asked: Counter[str] = Counter()
    said: Counter[str] = Counter()
    for lesson in made_up(0, 1500):
        words = in_words(lesson)
        for place, mine in enumerate(lesson.said):
            if mine:
                asked[words[place - 1].split("_")[0].rstrip("0123456789")] += 1
                said[words[place].rstrip("0123456789")] += 1
    assert said.keys() - {"+"} == {"k", "n", "x", "v", "a", "s", "R", "UR", "P", "UP", "-"}
    assert min(asked[role] for role in "NUPF") > 150


def test_a_name_keeps_its_register_and_a_new_one_takes_what_stands_on_a_list() -> None:
    """Followed here by the words alone, without the teacher's lists."""
    known = new = 0
    for lesson in made_up(3, 400):
        words = in_words(lesson)
        if words[0] != "W":
            continue
        start = words.index("SAY")
        head = next((n for n, word in enumerate(words) if word.startswith("H_")), start)
        lines = dict(zip(words[1:head:2], words[2:head:2], strict=True))
        listed = set(words[head:start])
        asked = ""
        for place in range(start + 1, len(words)):
            word, before = words[place], words[place - 1]
            if word.startswith("N") and before[:2] in ("C_", "X_", "Y_"):
                asked = word
            elif before.startswith(("F_", "U_")):
                listed.add(word)
            elif asked and lesson.said[place] and word[0].isalpha():
                known += asked in lines
                new += asked not in lines
                assert word == lines.get(asked, word)
                assert asked in lines or word in listed
                lines[asked] = word
                asked = ""
    assert known > 300
    assert new > 300


def test_lessons_of_a_function_are_its_windows() -> None:
    row = min(load_rows("mini").rows, key=lambda row: row.n_instructions)
    function = parse_function(row.normalized, row.id)
    assert len(list(function_lessons(function, 0))) > 3
    readings = [
        in_words(next(function_lessons(function, 0, withheld=withheld)))
        for withheld in (False, True)
    ]
    assert readings[0] != readings[1]  # some of the registers are not there


def test_a_model_of_the_format_is_trained_and_answers(tmp_path: Path) -> None:
    recipe = read_document(NotesRecipe, find_recipe_file("tiny-notes", folder="notes"))
    tiny = replace(recipe, validation_functions=0)
    for name in ("once", "twice"):
        run.train_notes(tiny, "mini", tmp_path / name)
    for name in ("model.safetensors", "config.json", "log.jsonl", "README.md"):
        once, twice = (tmp_path / each / name for each in ("once", "twice"))
        assert once.read_bytes() == twice.read_bytes(), name
    allocator = resolve_model(str(tmp_path / "once"))
    assert allocator.assistance == "intervals"
    assert allocator.prompt is not None
    assert allocator.prompt.format == "text-notes"
    assert "text-notes" in (tmp_path / "once" / "README.md").read_text()


def test_a_pool_without_functions_is_made_up() -> None:
    recipe = NotesRecipe("r", "", 1, pool_windows=32, batch_windows=8)
    batches = pool_batches(recipe, [], 0)
    assert [len(batch) for batch in batches] == [8] * 4
    assert all(any(lesson.said) for batch in batches for lesson in batch)
