"""Made-up decisions of `state`: well formed, with the answer that the policy would give."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from verilocc_bench.errors import InputError
from verilocc_bench.training.recipe import ExampleSource
from verilocc_bench.training.synthetic import synthetic_turns
from verilocc_bench.training.tokenizers import decisions_tokenizer

TURNS = list(synthetic_turns(1500, "0"))


def file_and_number(name: str) -> tuple[str, int]:
    found = re.fullmatch(r"([A-Za-z]+)(\d+)", name)
    assert found is not None, name
    return found[1], int(found[2])


def bases(listed: str, files: list[str], steps: dict[str, int]) -> dict[tuple[int, int], int]:
    """(place of the file, number) of every base of a line, in its order: idle time or 0."""
    found = {}
    for run in listed.split():
        names, _, idle = run.partition("~")
        (file, first), (same, last) = map(file_and_number, names.split(".."))
        assert file == same
        for number in range(first, last + 1, steps[file]):
            found[files.index(file), number] = int(idle or 0)
    return found


def test_the_answer_is_the_lowest_base_of_all_lines_or_the_least_idle() -> None:
    seen: Counter[str] = Counter()
    for turn in TURNS:
        head, *lines = turn.prompt.strip("\n").splitlines()
        words = head.split()
        width = int(words[2])
        files = [word.partition("/")[0] for word in words[3 : words.index("lives")]]
        steps = {
            word.partition("/")[0]: int(word.partition("/")[2] or 1)
            for word in words[3 : words.index("lives")]
        }
        tied = [line for line in lines if line.startswith("tied: ")]
        shown = [bases(x.partition(": ")[2], files, steps) for x in lines if x not in tied]
        file, number = file_and_number(turn.completion)
        answer = (files.index(file), number)
        common = [base for base in shown[0] if all(base in other for other in shown)]
        if tied:
            assert tied == [f"tied: {turn.completion}"]
        else:
            assert answer in common
            idle = shown[0]
            assert answer == min(common, key=lambda base: (idle[base] if width == 1 else 0, base))
        seen[f"width {width}"] += 1
        seen[f"lines {len(shown)}"] += 1
        seen["tied"] += bool(tied)
        seen["not the first"] += answer != next(iter(shown[0]))
    assert len([name for name in seen if name.startswith("width")]) == 8
    assert min(seen[name] for name in ("lines 2", "lines 3", "tied", "not the first")) > 20


def test_their_words_are_tokens() -> None:
    tokenizer = decisions_tokenizer()
    for turn in TURNS[:200]:
        assert tokenizer.unk_token_id not in tokenizer(turn.prompt + turn.completion)["input_ids"]


def test_the_seed_decides() -> None:
    assert list(synthetic_turns(20, "0")) == TURNS[:20]
    assert list(synthetic_turns(20, "1")) != TURNS[:20]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"format": "candidates", "synthetic": 5}, "are for 'state'"),
        ({"format": "state", "synthetic": -1}, "synthetic must be at least 0"),
        ({"format": "state", "synthetic": 5, "label": "best"}, "one of 'label'"),
        ({"format": "state", "synthetic": 1, "functions": 3}, "functions means nothing"),
        ({"format": "state", "synthetic": 5, "shifted": 0.5}, "shifted means nothing"),
    ],
)
def test_what_a_recipe_may_not_say(keys: dict[str, object], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        ExampleSource(**keys)  # type: ignore[arg-type]
