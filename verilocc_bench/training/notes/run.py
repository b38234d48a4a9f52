"""A training run of a model that keeps notes: pools, checkpoints, the model, its measurements.

While it goes on, its folder holds `run.json` (what decides the weights), `log.jsonl` and
`checkpoint.pt`. At the end it holds the model's own files, `log.jsonl`, `training.json` and a card.
An interrupted run goes on from its last checkpoint and gives the same weights as an
uninterrupted one. A finished run is left unchanged.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from verilocc_bench.dataset import Row, load_rows
from verilocc_bench.errors import InputError
from verilocc_bench.files import opened_to_write, write_atomically
from verilocc_bench.ir import Function, parse_function
from verilocc_bench.model.notes.notes_files import load_network, notes_folder, save_network
from verilocc_bench.model.notes.notes_network import NotesNetwork
from verilocc_bench.model.notes.notes_words import vocabulary
from verilocc_bench.training.notes.card import write_notes_card
from verilocc_bench.training.notes.lessons import Lesson
from verilocc_bench.training.notes.pools import pool_batches
from verilocc_bench.training.notes.recipe import NotesRecipe
from verilocc_bench.training.notes.validation import validate
from verilocc_bench.training.run_folder import claim_folder, data_source, versions

FINISHED, CHECKPOINT, LOG = "training.json", "checkpoint.pt", "log.jsonl"


def train_notes(
    recipe: NotesRecipe,
    dataset: str,
    output: Path,
    *,
    revision: str | None = None,
    base: str | None = None,
) -> Path:
    """Trains a network by a recipe on a dataset; returns the folder with it.

    `base`: a model that keeps notes, by its folder or the name of one that comes with the
    package, whose weights it begins with. Raises InputError if the folder holds another run, or
    the base is of another size than the recipe.
    """
    network, begun = _begun_with(recipe, base)
    rows = load_rows(dataset, split=recipe.split, revision=revision).rows
    chosen = _chosen(rows, recipe.functions)
    told = {
        "recipe": recipe.as_json(),
        "dataset": data_source(dataset, revision, chosen),
        "versions": versions(),
        **begun,
    }
    claim_folder(output, told)
    if (output / FINISHED).exists():
        return output
    held_out: Sequence[Row] = ()
    if recipe.validation_functions:
        held_out = load_rows(dataset, split=recipe.validation_split, revision=revision).rows
    functions = [parse_function(row.normalized, row.id) for row in chosen]
    run = NotesRun(recipe, functions, output, network)
    measured = run.whole()
    measured["validation"] = validate(
        run.network, _chosen(held_out, recipe.validation_functions, smallest=True)
    )
    save_network(run.network, output)
    document = {**told, "measured": measured}
    write_atomically(output / FINISHED, json.dumps(document, indent=2) + "\n")
    write_notes_card(output)
    (output / CHECKPOINT).unlink(missing_ok=True)
    return output


def _begun_with(recipe: NotesRecipe, base: str | None) -> tuple[NotesNetwork, dict[str, Any]]:
    """The network before the first step, and what is told of its base."""
    if base is None and recipe.base_share:
        raise InputError(f"the recipe {recipe.name} goes on from a model: expected --base")
    if base is None:
        return NotesNetwork(recipe.network, recipe.seed), {}
    folder = notes_folder(base)
    if folder is None:
        raise InputError("expected the folder of a model that keeps notes", source=base)
    network, revision = load_network(folder)
    if network.configuration != recipe.network:
        raise InputError("the base is of another size than the recipe", source=base)
    network.train()
    return network, {"base": {"name": folder.name, "revision": revision}}


def _chosen(rows: Sequence[Row], most: int | None, *, smallest: bool = False) -> list[Row]:
    """Rows of the assign track, spread over architectures and families by turns."""
    cells: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.track == "assign":
            cells.setdefault((row.arch, row.family), []).append(row)
    for cell in cells.values():
        cell.sort(key=lambda row: (row.n_instructions if smallest else 0, row.id))
    turns = max(map(len, cells.values()), default=0)
    ordered = [cell[turn] for turn in range(turns) for cell in cells.values() if turn < len(cell)]
    return ordered if most is None else ordered[:most]


class NotesRun:
    """A run's network and optimizer, and how many pools they have learnt."""

    def __init__(
        self,
        recipe: NotesRecipe,
        functions: Sequence[Function],
        output: Path,
        network: NotesNetwork | None = None,
    ) -> None:
        torch.set_num_threads(recipe.threads)
        torch.use_deterministic_algorithms(True)
        self.recipe, self.functions, self.output = recipe, functions, output
        self.network = _begun_with(recipe, None)[0] if network is None else network
        self.optimizer = _optimizer(self.network, recipe)
        self.log: list[str] = []
        self.pool = 0

    def whole(self) -> dict[str, Any]:
        """Learns all pools that the last checkpoint lacks; returns the measurements."""
        begun = {name: tensor.clone() for name, tensor in self.network.state_dict().items()}
        resumed = self._resume()
        started = time.perf_counter()
        while self.pool < self.recipe.pools:
            self._learn_pool()
            if self.pool % self.recipe.save_pools == 0 or self.pool == self.recipe.pools:
                self._save()
        self._mix_with(begun)
        lines = [json.loads(line) for line in self.log]
        return {
            "seconds": round(time.perf_counter() - started, 1),
            "resumed": resumed,
            "parameters": sum(p.numel() for p in self.network.parameters()),
            "windows": self.pool * self.recipe.pool_windows,
            "tokens": sum(line["tokens"] for line in lines),
            "last_loss": lines[-1]["loss"],
            "last_wrong": lines[-1]["wrong"],
        }

    def _mix_with(self, begun: Mapping[str, Tensor]) -> None:
        """The weights become a mean of those that the run began with and its own."""
        share = self.recipe.base_share
        mixed = {
            name: begun[name].lerp(tensor, 1 - share) if share else tensor
            for name, tensor in self.network.state_dict().items()
        }
        self.network.load_state_dict(mixed)

    def _resume(self) -> bool:
        path = self.output / CHECKPOINT
        if not path.exists():
            return False
        state = torch.load(path, weights_only=True)
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.pool, self.log = state["pool"], state["log"]
        return True

    def _save(self) -> None:
        state = {
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "pool": self.pool,
            "log": self.log,
        }
        with opened_to_write(self.output / CHECKPOINT) as file:
            torch.save(state, file)
        write_atomically(self.output / LOG, self.log)

    def _learn_pool(self) -> None:
        recipe = self.recipe
        step = self.pool * recipe.steps_a_pool
        counts: Counter[str] = Counter()
        wrong_words: Counter[str] = Counter()
        total = 0.0
        words = vocabulary()
        for batch in pool_batches(recipe, self.functions, self.pool):
            for group in self.optimizer.param_groups:
                group["lr"] = recipe.rate(step)
            losses, right, targets = lesson_losses(self.network, batch)
            if not torch.isfinite(losses).all():
                message = "training: the losses are not numbers any more: try a smaller rate"
                raise InputError(message, source=str(self.output))
            self.optimizer.zero_grad(set_to_none=True)
            losses.mean().backward()
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), recipe.gradient_norm)
            self.optimizer.step()
            step += 1
            total += float(losses.detach().sum())
            counts["words"] += len(losses)
            counts["tokens"] += sum(len(lesson.tokens) for lesson in batch)
            for word in targets[~right].tolist():
                wrong_words[_kind(words[word])] += 1
        self.pool += 1
        line = {
            "step": step,
            "loss": total / counts["words"],
            "wrong": wrong_words.total() / counts["words"],
            "wrong_by_kind": dict(sorted(wrong_words.items())),
            "tokens": counts["tokens"],
        }
        self.log.append(json.dumps(line) + "\n")


def _kind(word: str) -> str:
    """A word without its number: the file of a register, the role of others."""
    return word.rstrip("0123456789") or word


def _optimizer(network: NotesNetwork, recipe: NotesRecipe) -> torch.optim.AdamW:
    matrices = [p for p in network.parameters() if p.ndim > 1]
    others = [p for p in network.parameters() if p.ndim <= 1]
    groups = [
        {"params": matrices, "weight_decay": recipe.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=(0.9, recipe.adam_beta2))


def _tensors(lessons: Sequence[Lesson]) -> tuple[Tensor, Tensor]:
    longest = max(len(lesson.tokens) for lesson in lessons)
    tokens = torch.zeros(len(lessons), longest, dtype=torch.long)
    said = torch.zeros(len(lessons), longest, dtype=torch.bool)
    for row, lesson in enumerate(lessons):
        tokens[row, : len(lesson.tokens)] = torch.tensor(lesson.tokens)
        said[row, : len(lesson.said)] = torch.tensor(lesson.said)
    return tokens, said


def lesson_losses(
    network: NotesNetwork, lessons: Sequence[Lesson]
) -> tuple[Tensor, Tensor, Tensor]:
    """(loss, whether it was right, the word) of every word that is the model's to say."""
    tokens, said = _tensors(lessons)
    states = network(tokens[:, :-1])
    targets = tokens[:, 1:][said[:, 1:]]
    scores = network.scores(states[said[:, 1:]], network.vectors())
    losses = functional.cross_entropy(scores, targets, reduction="none")
    return losses, scores.argmax(-1) == targets, targets
