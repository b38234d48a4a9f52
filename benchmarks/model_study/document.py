"""Writes the tables of a document between its markers, and keeps the rest."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from benchmarks.model_study.configurations import REFERENCE, REFERENCE_TEXT
from benchmarks.model_study.records import StudyRun, read_runs
from benchmarks.model_study.tables import TABLES
from benchmarks.model_study.training_tables import (
    scaling_words,
    training_words,
    variant_table,
)
from benchmarks.model_study.variants import OF_WHOLE
from verilocc_bench.errors import InputError
from verilocc_bench.files import read_text, write_atomically

_BEGIN = "<!-- begin "
_BLOCK = re.compile(r"(<!-- begin ([\w-]+) -->\n).*?(?=<!-- end -->)", re.DOTALL)

UNKNOWN = "Not measured."


def render(
    output: Path, document: Path, images: Path | None = None, *, only: Sequence[str] = ()
) -> None:
    """Writes a study's results into a document, and its pictures into `images`.

    A block is `<!-- begin NAME -->`, lines, `<!-- end -->`, with each marker on
    a line of its own. The default of `images` is the folder beside the document.
    `only` names the blocks to write, or all if it is empty: so a partial study
    does not touch the others. Raises InputError for a document with unknown
    names or unfinished blocks, and MissingExtraError without what draws a
    picture.
    """
    runs = read_runs(output)
    makers = {
        **{name: partial(_filled, table, runs) for name, table in TABLES.items()},
        "asked": partial(asked_words, runs),
        "training": partial(training_words, output, REFERENCE),
        "training-text": partial(training_words, output, REFERENCE_TEXT),
        "variants": partial(variant_table, output),
        "whole-training": partial(training_words, output, OF_WHOLE.name),
        "scaling": partial(scaling_words, output, images or document.parent / "images", document),
    }
    text = read_text(document)
    found = _BLOCK.findall(text)
    if not found or len(found) != text.count(_BEGIN) or len(found) != text.count("<!-- end -->"):
        message = "expected blocks, each '<!-- begin NAME -->', lines, '<!-- end -->'"
        raise InputError(message, source=document)
    for _, name in found:
        if name not in makers:
            known = ", ".join(makers)
            raise InputError(f"there is no block {name!r}; known: {known}", source=document)
    names = [name for _, name in found]
    for name in only:
        if name not in names:
            raise InputError(f"--only {name}: expected one of {', '.join(names)}", source=document)
    made = {name: makers[name]() or UNKNOWN for name in names if not only or name in only}

    def block(match: re.Match[str]) -> str:
        name = match[2]
        return f"{match[1]}\n{made[name]}\n\n" if name in made else match[0]

    write_atomically(document, _BLOCK.sub(block, text))


def _filled(table: Callable[[Sequence[StudyRun]], str], runs: Sequence[StudyRun]) -> str:
    """A table, or an empty text if it has no rows."""
    text = table(runs)
    return text if text.count("\n") > 1 else ""


def asked_words(runs: Sequence[StudyRun]) -> str:
    """Sentences about the dataset, the weights and the versions of the study."""
    first = runs[0]
    splits: dict[str, int] = {}
    for run in runs:
        split = run.configuration.split
        splits[split] = max(len(run.kernels), splits.get(split, 0))
    asked = ", ".join(f"`{split}` ({count:,} kernels)" for split, count in splits.items())
    sentences = [f"Splits: {asked}. Hash of `{first.configuration.split}`: `{first.dataset_hash}`."]
    models = [run for run in runs if run.prompt is not None]
    for folder in dict.fromkeys(run.configuration.folder for run in models):
        own = next(run for run in models if run.configuration.folder == folder)
        sentences.append(f"Weights of `{folder}`: `{own.revision}`.")
    prompts = {run.prompt["format"]: run.prompt for run in models if run.prompt is not None}
    for name, prompt in sorted(prompts.items()):
        sentences.append(f"Prompts of `{name}`: version {prompt['version']}, `{prompt['hash']}`.")
    if models:
        options = models[0].options
        batch = f"batches of {options['batch_size']}, {options['dtype']}"
        sentences.append(f"On {options['device'] or 'the first device there is'}, {batch}.")
        first = models[0]
    told = ", ".join(f"{name} {version}" for name, version in first.versions.items() if version)
    return " ".join([*sentences, f"Versions: {told}."])
