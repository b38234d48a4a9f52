"""`verilocc-bench failures`: the samples of a run without a valid answer, and why."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict

from verilocc_bench.api.results import Failure, load_results
from verilocc_bench.errors import InputError
from verilocc_bench.model.transcripts import tokens_told

EXCERPT = 60
"""How many characters of a completion are shown before and after the place."""

STOPPED = "⟦reading stopped here⟧"


def run(options: argparse.Namespace) -> int:
    """Prints a line for each failure, and the frames of each traceback once.

    Of a language model also the words where reading stopped; with --id all that it was
    asked and said.
    """
    failures: list[Failure] = list(load_results(options.folder).failures())
    if options.id is not None:
        failures = [failure for failure in failures if failure.id == options.id]
        if not failures:
            raise InputError(f"no failure of {options.id!r}", source=options.folder)
    if options.json:
        for failure in failures:
            print(json.dumps(asdict(failure)))
    else:
        lines = _lines(failures, whole=options.id is not None)
        print("\n".join(lines) or "no failures")
    return 0


def _lines(failures: list[Failure], *, whole: bool) -> Iterator[str]:
    told = set[str]()
    for each in failures:
        where = f"{each.model} on {each.id} ({each.task}), sample {each.sample}"
        yield f"{where}: {each.kind}: {each.message}"
        frames = (each.traceback or "").rpartition("\n")[0]  # the last line has the message
        if frames and frames not in told:
            told.add(frames)
            yield from (f"    {line}" for line in frames.splitlines())
        if each.exchanges:
            yield from _transcript(each) if whole else [f"    {_excerpt(each)}"]


def _excerpt(failure: Failure) -> str:
    """The model's last words, around the place where reading stopped."""
    said = failure.exchanges[-1].completion
    place = len(said) if failure.stopped_at is None else failure.stopped_at
    first, end = max(0, place - EXCERPT), place + EXCERPT
    text = (
        f"{said[first:place]}{STOPPED if failure.stopped_at is not None else ''}{said[place:end]}"
    )
    shown = " ".join(text.split()) or "no words"
    return f"{'…' if first else ''}{shown}{'…' if end < len(said) else ''}"


def _transcript(failure: Failure) -> Iterator[str]:
    """All that the model was asked and said."""
    for number, each in enumerate(failure.exchanges, 1):
        of = f"{number} of {len(failure.exchanges)}"
        yield f"--- prompt {of}, {tokens_told(each.tokens_in)}"
        yield each.prompt_text
        if each.reasoning:
            yield f"--- reasoning {of}"
            yield each.reasoning
        said = tokens_told(each.tokens_out)
        yield f"--- completion {of}, {said}, {each.seconds:g} s, {each.finish}"
        place = failure.stopped_at if number == len(failure.exchanges) else None
        said = each.completion
        yield said if place is None else f"{said[:place]}{STOPPED}{said[place:]}"
