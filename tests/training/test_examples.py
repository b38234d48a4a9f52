"""Examples: what the harness would feed, made in pieces that can be interrupted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import PreTrainedTokenizerFast

from tests.model.scripted import ScriptedModel, run_episode
from tests.model.tiny_models import byte_level_tokenizer, word_tokenizer
from tests.training.small import generated, recipe, smallest
from verilocc_bench.allocators import Request
from verilocc_bench.dataset import Row, load_rows
from verilocc_bench.edits import Answer
from verilocc_bench.errors import InputError
from verilocc_bench.model.prompts import get_prompt_format
from verilocc_bench.model.transformers_model.token_codec import TokenCodec
from verilocc_bench.settings.language_model import LanguageModelSettings
from verilocc_bench.training import examples
from verilocc_bench.training.examples import (
    IGNORED,
    Examples,
    chosen_rows,
    make_examples,
    read_shards,
)
from verilocc_bench.training.recipe import ExampleSource, Recipe
from verilocc_bench.views import problem_of

LABELLED = [{"format": "window", "label": "compiler"}]


@cache
def letters() -> Any:
    """A tokenizer that loses nothing."""
    return PreTrainedTokenizerFast(tokenizer_object=byte_level_tokenizer(), eos_token="</s>")


def made(folder: Path, rows: Sequence[Row], wanted: Recipe | None = None, **more: Any) -> Examples:
    """The examples of rows, of the small recipe where no other is wanted."""
    return make_examples(wanted or recipe(folder.parent), letters(), rows, folder, **more)


def same(one: Examples, other: Examples) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def pairs(found: Examples) -> list[tuple[list[int], list[int]]]:
    """Prompts and completions."""
    result = []
    for number in range(len(found)):
        own, labels = found.one(number)
        learnt = int((labels != IGNORED).sum())
        assert np.array_equal(labels[-learnt:], own[-learnt:])
        result.append((own[:-learnt].tolist(), own[-learnt:].tolist()))
    return result


def test_interrupted_and_resumed_it_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = recipe(tmp_path)
    rows = generated(12)
    whole = make_examples(wanted, letters(), rows, tmp_path / "whole")
    assert len(list((tmp_path / "whole").iterdir())) == 4
    folder = tmp_path / "resumed"
    made = []

    def interrupted(row: Row) -> Any:
        made.append(row.id)
        if len(made) == 14:
            raise KeyboardInterrupt
        return problem_of(row)

    with monkeypatch.context() as patch:
        patch.setattr(examples, "problem_of", interrupted)
        with pytest.raises(KeyboardInterrupt):
            make_examples(wanted, letters(), rows, folder)
    # The file in the making is not there; those before it are not made again.
    assert sorted(path.name for path in folder.iterdir()) == [
        "source-0-000000.npz",
        "source-0-000008.npz",
    ]
    times = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert same(make_examples(wanted, letters(), rows, folder), whole)
    assert {path: path.stat().st_mtime_ns for path in times} == times


def test_a_file_that_is_gone_is_made_again(tmp_path: Path) -> None:
    rows, here = generated(9), tmp_path / "here"
    whole = made(here, rows)
    before = {path.name: path.read_bytes() for path in here.iterdir()}
    for name in list(before)[::2]:
        (here / name).unlink()
    (here / "source-0-000000.part").write_bytes(b"cut short")
    assert same(made(here, rows), whole)
    assert {path.name: path.read_bytes() for path in here.glob("*.npz")} == before


def test_the_seed_decides_and_not_the_order_of_rows_or_the_processes(tmp_path: Path) -> None:
    wanted, rows = recipe(tmp_path), generated(12)
    one = made(tmp_path / "one", rows, wanted)
    assert same(made(tmp_path / "two", rows, wanted, jobs=2), one)
    assert same(made(tmp_path / "other", rows[::-1], wanted), one)
    assert not same(made(tmp_path / "seed", rows, replace(wanted, seed=1)), one)


def test_they_go_through_a_file(tmp_path: Path) -> None:
    found = made(tmp_path / "here", generated(2))
    found.save(tmp_path / "all.npz")
    assert same(Examples.load(tmp_path / "all.npz"), found)
    shards = read_shards(tmp_path, 4096, 320)
    assert same(shards, found)
    fewer = read_shards(tmp_path, int(np.diff(found.starts).min()), 320)
    assert len(fewer) + int(fewer.left_out) == len(found)
    for most, words, said in ((4096, 9, "tokens from 0 to 8"), (1, 320, "at most 1 tokens")):
        with pytest.raises(InputError, match=said):
            read_shards(tmp_path, most, words)
    (tmp_path / "other.npz").write_bytes(b"PK")
    with pytest.raises(InputError, match=r"other\.npz: expected arrays"):
        read_shards(tmp_path, 4096, 320)


def test_joined_they_stay_apart(tmp_path: Path) -> None:
    parts = [made(tmp_path / row.id, [row]) for row in generated(3)]
    assert pairs(Examples.join(parts)) == [pair for part in parts for pair in pairs(part)]


@pytest.mark.parametrize("style", ["whole", "window"])
def test_they_are_what_the_harness_feeds(style: str, tmp_path: Path) -> None:
    # A model that says the label's registers is asked the examples' prompts.
    row = generated(1)[0]
    label = row.label
    assert label is not None
    wanted = recipe(
        tmp_path,
        sources=[{"format": style, "label": "compiler"}],
        training={"steps": 1, "maximum_tokens": 100_000},
    )
    found = make_examples(wanted, letters(), [row], tmp_path / "here")
    codec = TokenCodec(letters(), frozenset({letters().eos_token_id}), None, "here")
    asked = []
    said = {tuple(prompt): completion for prompt, completion in pairs(found)}

    def say(ask: Any) -> str:
        prompt = codec.prompt(ask.messages)
        asked.append(prompt)
        return codec.decode(said[tuple(prompt)])

    request = Request(problem_of(row))
    response = run_episode(
        get_prompt_format(style), request, LanguageModelSettings(), ScriptedModel(say=say)
    )
    assert response.answer == Answer(label)
    assert asked == [prompt for prompt, _ in pairs(found)]
    assert {completion[-1] for _, completion in pairs(found)} == {letters().eos_token_id}


def test_long_ones_are_left_out(tmp_path: Path) -> None:
    rows = generated(3)
    long = recipe(tmp_path)
    every = make_examples(long, letters(), rows, tmp_path / "every")
    lengths = np.diff(every.starts)
    limit = int(np.median(lengths))
    short = replace(long, training=replace(long.training, maximum_tokens=limit))
    some = make_examples(short, letters(), rows, tmp_path / "some")
    assert np.array_equal(np.diff(some.starts), lengths[lengths <= limit])
    assert 0 < len(some) < len(every)
    assert int(some.left_out) == len(every) - len(some)


def test_what_cannot_be_made(tmp_path: Path) -> None:
    rows = [replace(row, assignment=None) for row in generated(2)]
    with pytest.raises(InputError, match="nothing to learn"):
        made(tmp_path / "here", rows, recipe(tmp_path, sources=LABELLED))
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="file: expected a folder that can be written"):
        made(tmp_path / "file", generated(2))
    wanted = recipe(tmp_path, sources=[{"format": "whole", "label": "compiler"}])
    words = PreTrainedTokenizerFast(
        tokenizer_object=word_tokenizer(["v1"]), unk_token="<unk>", eos_token="</s>"
    )
    with pytest.raises(InputError, match="cannot say"):
        make_examples(wanted, words, generated(1), tmp_path / "words")


# Which rows


def of(rows: Sequence[Row]) -> Counter[tuple[str, str]]:
    return Counter((row.arch, row.family) for row in rows)


def source(**options: Any) -> ExampleSource:
    return ExampleSource("window", "compiler", **options)


@cache
def mini() -> tuple[Row, ...]:
    return tuple(load_rows("mini").rows)


@pytest.mark.parametrize("count", [1, 6, 17, 30, 47])
def test_rows_are_spread_evenly(count: int) -> None:
    chosen = chosen_rows(source(functions=count), mini(), 0)
    assert len(chosen) == len({row.id for row in chosen}) == count
    shares, sizes = of(chosen), of(mini())
    # A group has as many as any other, but for one; or all that it has.
    most = max(shares.values())
    assert all(shares[key] >= min(most - 1, sizes[key]) for key in sizes)


def test_small_groups_leave_their_share_to_others() -> None:
    rows = [row for row in mini() if (row.arch, row.family) != ("gfx90a", "mha")]
    rows += [row for row in mini() if (row.arch, row.family) == ("gfx90a", "mha")][:1]
    shares = of(chosen_rows(source(functions=21), rows, 0))
    assert shares[("gfx90a", "mha")] == 1
    assert {count for key, count in shares.items() if key != ("gfx90a", "mha")} == {4}


def test_which_rows_are_chosen() -> None:
    for every in (source(), source(functions=1000)):
        assert of(chosen_rows(every, mini(), 0)) == of(mini())
    chosen = chosen_rows(source(archs=("sm_80", "gfx942"), families=("mha",)), mini(), 0)
    assert set(of(chosen)) == {("sm_80", "mha"), ("gfx942", "mha")}
    assert chosen_rows(source(families=("fft",)), mini(), 0) == []
    one = chosen_rows(source(functions=12), mini(), 0)
    assert chosen_rows(source(functions=12), mini()[::-1], 0) == one
    assert chosen_rows(source(functions=12), mini(), 1) != one


def test_windows_of_other_widths(tmp_path: Path) -> None:
    def answers(widths: list[int]) -> list[list[str]]:
        """The registers of each window, of all rows."""
        source = {"format": "window", "label": "compiler", "new_registers": widths}
        training = {"steps": 1, "maximum_tokens": 100_000}
        wanted = recipe(tmp_path, sources=[source], training=training)
        folder = tmp_path / "-".join(map(str, ["of", *widths]))
        codec = TokenCodec(letters(), frozenset({letters().eos_token_id}), None, "here")
        found = pairs(make_examples(wanted, letters(), rows, folder))
        return [list(json.loads(codec.decode(completion[:-1]))) for _, completion in found]

    rows = smallest(2)
    usual, single = answers([]), answers([1])
    assert usual == answers([16])
    assert max(map(len, usual)) == 16
    # Each register once, of one instruction more than one only where it defines more.
    assert list(chain(*single)) == list(chain(*usual))
    assert Counter(map(len, single)).most_common(1)[0][0] == 1
    mixed = answers([1, 3, 5, 7])
    assert {1, 3} <= set(map(len, mixed))
    assert max(map(len, mixed)) <= 7
    assert list(chain(*mixed)) == list(chain(*usual))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"format": "whole"}, "for formats with windows"),
        ({"new_registers": [0, 4]}, "at least 1"),
        ({"new_registers": ["many"]}, "new_registers"),
        ({"new_registers": 4}, "new_registers"),
    ],
)
def test_widths_that_no_window_has(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    source = {"format": "window", "label": "compiler", "new_registers": [4], **changes}
    with pytest.raises(InputError, match=said):
        recipe(tmp_path, sources=[source])
