"""What learns to keep notes, and how size counts: python -m benchmarks.notes_architectures DATASET

Networks of one size or another learn the windows of `text-notes` by the recipe of
`reference-text-notes`, with fewer steps: those of the package (`own-HIDDEN`), and ready-made
architectures of transformers: `lfm2` (short convolutions and attention by turns) and `llama`, each
as large as `own-128`. All read the same windows in the same order. Then each is asked about the
same windows of functions of the validation split, word by word after the right words, and the share
of its words that are wrong is counted. The learning rate of a ready-made one is a part of its name:
`lfm2@1e-3`.

Results are lines of JSON in a file; what is there is not measured again.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from verilocc_bench.dataset import load_rows
from verilocc_bench.errors import InputError
from verilocc_bench.files import write_atomically
from verilocc_bench.ir import Function, parse_function
from verilocc_bench.model.notes.formats import TEXT_NOTES_FORMAT
from verilocc_bench.model.notes.network import NotesConfiguration, NotesNetwork
from verilocc_bench.model.notes.teacher import OutOfRegisters
from verilocc_bench.training.notes.lessons import Lesson
from verilocc_bench.training.notes.pools import pool_batches
from verilocc_bench.training.notes.recipe import NotesRecipe
from verilocc_bench.training.notes.run import lesson_losses
from verilocc_bench.training.notes.text_lessons import text_function_lessons

NAMES = (
    "own-64",
    "own-96",
    "own-128",
    "own-192",
    "lfm2@1e-3",
    "lfm2@2e-3",
    "lfm2@4e-3",
    "llama@2e-3",
)
"""What is measured unless names are given."""

WINDOWS = 2000
"""Windows of validation functions that each is asked about."""

EVENLY = 4
"""Functions are taken from every architecture and family by turns; of validation so many each."""


class ReadyMade(nn.Module):  # type: ignore[misc]  # torch is not followed
    """A decoder of transformers with the methods that training asks of a network."""

    prompt_format = TEXT_NOTES_FORMAT

    def __init__(self, kind: str, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.decoder = _decoder(kind, len(TEXT_NOTES_FORMAT.vocabulary()))

    def vectors(self) -> Tensor:
        """The vector of each word: one for entry and exit."""
        return self.decoder.get_input_embeddings().weight

    def forward(self, tokens: Tensor) -> Tensor:
        """The state after each word, [rows, words, hidden]."""
        return self.decoder(input_ids=tokens, use_cache=False).last_hidden_state

    def scores(self, states: Tensor, vectors: Tensor) -> Tensor:
        """Scores of all words after some states."""
        return states @ vectors.T


def _decoder(kind: str, words: int) -> nn.Module:
    """About as many parameters as `own-128`: 1.03 million."""
    from transformers import AutoModel, Lfm2Config, LlamaConfig

    sizes: dict[str, Any] = {
        "vocab_size": words,
        "hidden_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "max_position_embeddings": 2048,
        "tie_word_embeddings": True,
    }
    if kind == "lfm2":
        configuration = Lfm2Config(
            **sizes,
            num_hidden_layers=6,
            layer_types=["conv", "full_attention"] * 3,
            conv_L_cache=4,
            block_auto_adjust_ff_dim=False,
            intermediate_size=192,
            block_ff_dim=192,
        )
    else:
        configuration = LlamaConfig(**sizes, num_hidden_layers=4, intermediate_size=384)
    return AutoModel.from_config(configuration, attn_implementation="sdpa")


def network_named(name: str, seed: int) -> NotesNetwork | ReadyMade:
    """A network before its first step."""
    kind = name.partition("@")[0]
    family, _, hidden = kind.partition("-")
    if family == "own" and hidden.isdigit():
        size = int(hidden)
        configuration = NotesConfiguration(hidden=size, feed_forward=3 * size)
        return NotesNetwork(configuration, seed, TEXT_NOTES_FORMAT)
    if kind in ("lfm2", "llama"):
        return ReadyMade(kind, seed)
    raise InputError(f"expected own-HIDDEN, lfm2 or llama, not {name!r}")


def recipe_of(name: str, steps: int) -> NotesRecipe:
    """The recipe of `reference-text-notes`, shorter; rates fall over the last 4 of 7 steps."""
    rate = name.partition("@")[2]
    return NotesRecipe(
        name=name,
        description="a shorter training",
        steps=steps,
        prompt_format=TEXT_NOTES_FORMAT.name,
        pool_windows=1024,
        batch_windows=32,
        function_share=0.5,
        learning_rate=float(rate) if rate else 2e-3,
        warmup_steps=100,
        decay_steps=steps * 4 // 7,
        seed=0,
    )


def functions_of(dataset: str, split: str, most: int | None) -> list[Function]:
    """Functions of the assign track, so many of each architecture and family, by their ids."""
    taken: Counter[tuple[str, str]] = Counter()
    found = []
    for row in sorted(load_rows(dataset, split=split).rows, key=lambda row: row.id):
        cell = row.arch, row.family
        if row.track == "assign" and (most is None or taken[cell] < most):
            taken[cell] += 1
            found.append(parse_function(row.normalized, row.id))
    return found


def held_out_lessons(functions: Sequence[Function]) -> list[Lesson]:
    """Windows of whole functions, drawn from all; of a dead end of the rule those before it."""
    lessons: list[Lesson] = []
    for number, function in enumerate(functions):
        with suppress(OutOfRegisters):
            lessons.extend(text_function_lessons(function, number)[0])
    draw = random.Random("held out")
    return draw.sample(lessons, min(WINDOWS, len(lessons)))


def train(
    network: NotesNetwork | ReadyMade, recipe: NotesRecipe, functions: Sequence[Function]
) -> int:
    """Learns all pools; returns how many tokens were read."""
    matrices = [p for p in network.parameters() if p.ndim > 1]
    others = [p for p in network.parameters() if p.ndim <= 1]
    groups = [
        {"params": matrices, "weight_decay": recipe.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=(0.9, recipe.adam_beta2))
    step = tokens = 0
    for pool in range(recipe.pools):
        for batch in pool_batches(recipe, functions, pool):
            for group in optimizer.param_groups:
                group["lr"] = recipe.rate(step)
            losses = lesson_losses(network, batch)[0]
            optimizer.zero_grad(set_to_none=True)
            losses.mean().backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), recipe.gradient_norm)
            optimizer.step()
            step += 1
            tokens += sum(len(lesson.tokens) for lesson in batch)
    return tokens


def measure(
    name: str, steps: int, functions: Sequence[Function], held_out: Sequence[Lesson]
) -> dict[str, Any]:
    """Trains a network and counts its wrong words."""
    recipe = recipe_of(name, steps)
    network = network_named(name, recipe.seed)
    started = time.process_time()
    tokens = train(network, recipe, functions)
    seconds = time.process_time() - started
    network.eval()
    words = TEXT_NOTES_FORMAT.vocabulary()
    asked = wrong = 0
    loss = 0.0
    by_kind: Counter[str] = Counter()
    ordered = sorted(held_out, key=lambda lesson: len(lesson.tokens))
    with torch.no_grad():
        for first in range(0, len(ordered), 64):
            losses, right, targets = lesson_losses(network, ordered[first : first + 64])
            asked += len(right)
            wrong += int((~right).sum())
            loss += float(losses.sum())
            by_kind.update(words[word].rstrip("0123456789") for word in targets[~right].tolist())
    return {
        "name": name,
        "parameters": sum(p.numel() for p in network.parameters()),
        "steps": steps,
        "tokens": tokens,
        "words": asked,
        "wrong": wrong / asked,
        "loss": loss / asked,
        "wrong_by_kind": dict(sorted(by_kind.items())),
        "cpu_seconds": round(seconds, 1),
    }


def table(lines: Sequence[dict[str, Any]]) -> str:
    """The measurements as a table in Markdown."""
    rows = [
        "| network | parameters | steps | tokens | wrong words | loss | CPU-seconds |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    rows += [
        f"| `{line['name']}` | {line['parameters']:,} | {line['steps']:,} |"
        f" {line['tokens'] / 1e6:.2f} M | {line['wrong']:.2%} | {line['loss']:.4f} |"
        f" {line['cpu_seconds']:.0f} |"
        for line in lines
    ]
    return "\n".join(rows)


def exponent(lines: Sequence[dict[str, Any]]) -> float | None:
    """The slope of the logarithm of wrong words over that of parameters, by least squares."""
    points = [
        (math.log(line["parameters"]), math.log(line["wrong"]))
        for line in lines
        if line["name"].startswith("own-") and line["wrong"]
    ]
    if len(points) < 3:
        return None
    x = sum(x for x, _ in points) / len(points)
    y = sum(y for _, y in points) / len(points)
    return sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.notes_architectures",
        description=(__doc__ or "").splitlines()[0],
    )
    parser.add_argument("dataset", help="has the splits train and validation")
    parser.add_argument("names", nargs="*", default=list(NAMES), metavar="NAME")
    parser.add_argument("--steps", type=int, default=640)
    parser.add_argument("--functions", type=int, help="most of train, of each kind (default: all)")
    parser.add_argument("--measured", type=Path, required=True, metavar="FILE")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    text = options.measured.read_text() if options.measured.exists() else ""
    lines = [json.loads(line) for line in text.splitlines()]
    done = {(line["name"], line["steps"]) for line in lines}
    pending = [name for name in options.names if (name, options.steps) not in done]
    if pending:
        functions = functions_of(options.dataset, "train", options.functions)
        held_out = held_out_lessons(functions_of(options.dataset, "validation", EVENLY))
        for name in pending:
            lines.append(measure(name, options.steps, functions, held_out))
            write_atomically(options.measured, "".join(json.dumps(x) + "\n" for x in lines))
    print(table(lines))
    slope = exponent([line for line in lines if line["steps"] == options.steps])
    if slope is not None:
        print(f"\nwrong words of the own networks: parameters to the power {slope:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
