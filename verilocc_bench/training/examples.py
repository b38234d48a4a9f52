"""The examples of a recipe. They are kept in files, so that an interrupted run can go on."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from verilocc_bench.dataset import Row
from verilocc_bench.errors import InputError
from verilocc_bench.files import opened_to_write
from verilocc_bench.model.prompts import PromptFormat, get_prompt_format
from verilocc_bench.model.transformers_model.token_codec import TokenCodec
from verilocc_bench.processes import process_pool
from verilocc_bench.training.ordering import Reordered, reordered
from verilocc_bench.training.recipe import ExampleSource, Recipe, Reward
from verilocc_bench.training.renaming import renamed
from verilocc_bench.views import parse_label
from verilocc_bench.views.training_turns import TrainingTurn, training_turns
from verilocc_bench.views.view_rows import problem_of

ROWS_PER_FILE = 8

IGNORED = -100
"""The label of a token that is not learnt."""

Integers = NDArray[np.int32]


class Examples(NamedTuple):
    """Tokens of many examples: example n is `input_ids[starts[n]:starts[n + 1]]`.

    `labels` are the tokens that are learnt, and IGNORED elsewhere. `left_out`
    counts pairs with too many tokens. Shapes: `input_ids` and `labels` (tokens,),
    `starts` (examples + 1,), `left_out` ().
    """

    input_ids: Integers
    labels: Integers
    starts: NDArray[np.int64]
    left_out: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def take(self, numbers: NDArray[np.int64]) -> Examples:
        """The examples with these numbers, in this order."""
        return _examples([self.one(number) for number in numbers], int(self.left_out))

    def one(self, number: int) -> tuple[Integers, Integers]:
        """The tokens and labels of an example."""
        place = slice(self.starts[number], self.starts[number + 1])
        return self.input_ids[place], self.labels[place]

    def save(self, path: Path) -> None:
        """Writes the examples to a file, whole or not at all."""
        with opened_to_write(path) as file:
            np.savez_compressed(file, **self._asdict())

    @classmethod
    def load(cls, path: Path) -> Examples:
        """Reads a file that `save` wrote; `left_out` may be missing."""
        try:
            with np.load(path, allow_pickle=False) as file:
                names = [name for name in cls._fields if name in file or name != "left_out"]
                parts = [np.asarray(file[name]) for name in names]
        except (OSError, ValueError, KeyError, BadZipFile) as error:
            expected = "expected arrays input_ids, labels and starts"
            raise InputError(f"{expected}: {error}", source=path) from None
        for name, part in zip(names[:3], parts, strict=False):
            if part.ndim != 1 or part.dtype.kind not in "iu":
                raise InputError(f"{name}: expected whole numbers in one row", source=path)
        left_out = parts[3] if len(parts) == 4 else np.array(0, np.int64)
        found = cls(parts[0], parts[1], parts[2], left_out)
        tokens, starts = len(found.input_ids), found.starts
        if len(found.labels) != tokens or not len(starts) or starts[0] or starts[-1] != tokens:
            raise InputError("starts and labels do not fit input_ids", source=path)
        if (np.diff(starts.astype(np.int64)) < 0).any():
            raise InputError("starts: expected places in order", source=path)
        return found

    @classmethod
    def join(cls, parts: Sequence[Examples]) -> Examples:
        """The examples of all parts, in this order."""
        pairs = [part.one(number) for part in parts for number in range(len(part))]
        return _examples(pairs, sum(int(part.left_out) for part in parts))


def _examples(pairs: Sequence[tuple[Integers, Integers]], left_out: int) -> Examples:
    none = np.zeros(0, np.int32)
    lengths = [len(tokens) for tokens, _ in pairs]
    return Examples(
        np.concatenate([none, *(tokens for tokens, _ in pairs)]),
        np.concatenate([none, *(labels for _, labels in pairs)]),
        np.cumsum([0, *lengths], dtype=np.int64),
        np.array(left_out, np.int64),
    )


def read_shards(folder: Path, maximum_tokens: int, words: int) -> Examples:
    """The examples of all `*.npz` of a folder that have at most `maximum_tokens`.

    Raises InputError if there is no example, or a token beyond the model's `words`.
    """
    found = Examples.join([Examples.load(path) for path in sorted(folder.glob("*.npz"))])
    lengths = np.diff(found.starts)
    fitting = np.flatnonzero(lengths <= maximum_tokens)
    if not len(fitting):
        message = f"expected files *.npz with examples of at most {maximum_tokens} tokens"
        raise InputError(message, source=folder)
    for name, array, least in (
        ("input_ids", found.input_ids, 0),
        ("labels", found.labels, IGNORED),
    ):
        if array.min() < least or array.max() >= words:
            raise InputError(f"{name}: expected tokens from 0 to {words - 1}", source=folder)
    learnt = found.labels != IGNORED
    if not learnt.any() or found.labels[learnt].min() < 0:
        raise InputError(f"labels: expected tokens to learn, and {IGNORED}", source=folder)
    # Not _replace: `len` is the number of examples.
    left_out = found.left_out + (len(found) - len(fitting))
    return Examples(*found.take(fitting)[:3], left_out)


@dataclass(frozen=True, slots=True)
class _Job:
    """Rows of one source, and the file for the result."""

    source: int
    rows: tuple[Row, ...]
    path: Path


def make_examples(
    recipe: Recipe, tokenizer: Any, rows: Sequence[Row], folder: Path, jobs: int = 1
) -> Examples:
    """The examples of a recipe over rows, made by `jobs` processes.

    Files that are in `folder` already are used; they must be of the same recipe
    and rows. Raises InputError if there is no example.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or error
        message = f"expected a folder that can be written: {reason}"
        raise InputError(message, source=str(folder)) from None
    work = list(_jobs(recipe, rows, folder))
    if not work:
        there = ", ".join(sorted({f"{row.arch}/{row.family}" for row in rows}))
        raise InputError(
            f"no kernel is of a source's architectures and families; there are {there}"
        )
    missing = [job for job in work if not job.path.exists()]
    run = partial(_run, recipe, tokenizer)
    with tqdm(total=len(work), initial=len(work) - len(missing), desc="examples") as bar:
        if jobs == 1:
            for job in missing:
                run(job)
                bar.update()
        elif missing:
            try:
                with process_pool(jobs) as pool:
                    for future in as_completed([pool.submit(run, job) for job in missing]):
                        future.result()
                        bar.update()
            except BrokenProcessPool:
                raise InputError(
                    "a process that makes examples was killed, by the system's memory limit "
                    "perhaps: the same command goes on, with fewer --jobs"
                ) from None
    found = Examples.join([Examples.load(job.path) for job in work])
    if not len(found):
        raise InputError(
            "the recipe's sources find nothing to learn in this dataset that has at most "
            f"{recipe.training.maximum_tokens} tokens ('maximum_tokens')"
        )
    return found


def chosen_rows(source: ExampleSource | Reward, rows: Sequence[Row], seed: int) -> list[Row]:
    """The rows of a source, spread evenly over its architectures and families."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in sorted(rows, key=lambda row: row.id):
        if (not source.archs or row.arch in source.archs) and (
            not source.families or row.family in source.families
        ):
            groups.setdefault((row.arch, row.family), []).append(row)
    left = sum(map(len, groups.values()))
    if source.functions is not None:
        left = min(left, source.functions)
    found: list[Row] = []
    # The smallest groups come first: the others take what these cannot fill.
    for done, (key, group) in enumerate(sorted(groups.items(), key=lambda item: len(item[1]))):
        share = min(len(group), -(-left // (len(groups) - done)))
        generator = random.Random(f"{seed} {key}")  # noqa: S311  no secret depends on it
        found += generator.sample(group, share)
        left -= share
    return found


def _jobs(recipe: Recipe, rows: Sequence[Row], folder: Path) -> Iterator[_Job]:
    for number, source in enumerate(recipe.sources):
        chosen = chosen_rows(source, rows, recipe.seed)
        for start in range(0, len(chosen), ROWS_PER_FILE):
            path = folder / f"source-{number}-{start:06}.npz"
            yield _Job(number, tuple(chosen[start : start + ROWS_PER_FILE]), path)


def _run(recipe: Recipe, tokenizer: Any, job: _Job) -> None:
    codec = _codec(tokenizer)
    found, left_out = [], 0
    for turn in _turns_of(job, recipe):
        if not codec.end_tokens:
            raise InputError("the tokenizer has no end token, with which an answer would end")
        completion = [token for piece in turn.pieces for token in codec.piece(piece)]
        completion.append(min(codec.end_tokens))
        prompt = codec.prompt(turn.messages)
        if len(prompt) + len(completion) > recipe.training.maximum_tokens:
            left_out += 1
            continue
        tokens = np.array([*prompt, *completion], np.int32)
        labels = tokens.copy()
        labels[: len(prompt)] = IGNORED
        found.append((tokens, labels))
    _examples(found, left_out).save(job.path)


@lru_cache(maxsize=1)
def _codec(tokenizer: Any) -> TokenCodec:
    end = tokenizer.eos_token_id
    return TokenCodec(tokenizer, frozenset(() if end is None else (end,)), None, "the tokenizer")


def _turns_of(job: _Job, recipe: Recipe) -> Iterator[TrainingTurn]:
    source = recipe.sources[job.source]
    style = get_prompt_format(source.format)
    for row in job.rows:
        problem, seed = problem_of(row), int(row.id[:8], 16) + recipe.seed
        answer = parse_label(source.label).answer(row)
        if answer is not None:
            for version in reordered(problem, answer, source.orderings, seed):
                yield from _labelled(source, style, version)


def _labelled(
    source: ExampleSource, style: PromptFormat, version: Reordered
) -> Iterator[TrainingTurn]:
    """The turns of a label, for one order of the function's blocks."""
    problem, answer, seed = version
    generator = random.Random(seed)  # noqa: S311  no secret depends on it
    for each in renamed(problem, answer, source.renamings, seed):
        width = generator.choice(source.new_registers) if source.new_registers else None
        yield from training_turns(style, problem, each, width)
