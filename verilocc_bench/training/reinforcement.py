"""Reinforcement from the verifier: a trained model draws answers and learns from the better ones.

Each step draws whole allocations of some functions from the model itself
(`training.rollouts`), judges them (`training.rewards`) and makes one step of
the group-relative policy gradient (`training.policy_gradient`).

While a run goes on, its folder holds `run.json` (what decides the weights),
`log.jsonl` and `checkpoint.pt`. At the end it holds the model's own files and
`training.json`, with the model's results on the validation split before and
after. An interrupted run goes on from its last checkpoint and gives the same
weights as an uninterrupted one. Each draw has its own seed, so that a
checkpoint needs no state of a generator.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import torch
from tqdm import tqdm

from verilocc_bench.dataset import Row, load_rows
from verilocc_bench.files import opened_to_write, write_atomically
from verilocc_bench.model.transformers_model.loading import load_parts
from verilocc_bench.model.transformers_model.model_files import find_model_folder
from verilocc_bench.training.network import device_name, write_model
from verilocc_bench.training.policy_gradient import LearntDecision, PolicyGradient
from verilocc_bench.training.reinforcement_recipe import (
    ReinforcementRecipe,
    training_rows,
    validation_rows,
)
from verilocc_bench.training.rewards import RolloutJudge, RolloutOutcome, advantages, summarize
from verilocc_bench.training.rollouts import Encoder, Rollout, Start, roll_out
from verilocc_bench.training.run_folder import claim_folder, data_source, versions

CHECKPOINT = "checkpoint.pt"
SIDE_BY_SIDE = 32
"""Functions of the validation split that are allocated at once."""


def reinforce(
    recipe: ReinforcementRecipe,
    base_folder: str | Path,
    dataset: str,
    output: Path,
    *,
    revision: str | None = None,
) -> Path:
    """Trains the model of `base_folder` further by a recipe; returns the new model's folder.

    `revision` is the dataset's. Raises InputError if the output folder holds
    another run, or if the model or dataset cannot be used.
    """
    base = str(base_folder)
    rows = load_rows(dataset, split=recipe.split, revision=revision).rows
    told = {
        "recipe": recipe.as_json(),
        "base": {"revision": find_model_folder(base, None, with_code=False)[1]},
        "dataset": data_source(dataset, revision, rows),
        "versions": versions(),
    }
    ordered = training_rows(recipe, rows)
    held_out: Sequence[Row] = ()
    if recipe.validation_functions:
        split = recipe.validation_split
        held_out = load_rows(dataset, split=split, revision=revision).rows
    claim_folder(output, told)
    if (output / "training.json").exists():  # done already
        return output
    torch.set_num_threads(recipe.threads)
    network, tokenizer = load_parts(base)
    validation = validation_rows(recipe, held_out)
    encoder = Encoder(tokenizer)
    policy = PolicyGradient(
        network.to("cuda" if torch.cuda.is_available() else "cpu"),
        encoder.padding,
        learning_rate=recipe.learning_rate,
        gradient_norm=recipe.gradient_norm,
        divergence=recipe.divergence,
        batch_tokens=recipe.batch_tokens,
    )
    run = _ReinforcementRun(recipe, policy, encoder, ordered, validation, output)
    measured = run.whole()
    write_model(network, tokenizer, output, "candidates")
    document = {**told, "measured": measured}
    write_atomically(output / "training.json", json.dumps(document, indent=2) + "\n")
    (output / CHECKPOINT).unlink()
    return output


@dataclass
class _ReinforcementRun:
    """A reinforcement run: what its steps share, and its progress.

    `done`: the number of finished steps. `before`: the results on the
    validation split before the first step, as JSON. `log`: the lines of
    log.jsonl.
    """

    recipe: ReinforcementRecipe
    policy: PolicyGradient
    encoder: Encoder
    rows: Sequence[Row]
    validation: Sequence[Row]
    output: Path
    done: int = 0
    before: str = ""
    log: list[str] = field(default_factory=list)

    def whole(self) -> dict[str, Any]:
        """Makes all steps that the last checkpoint lacks; returns the measurements."""
        resumed = self._resume()
        if not resumed:
            self.before = json.dumps(self._validate())
            self._save()
        for step in tqdm(range(self.done, self.recipe.steps), desc="steps"):
            self.log.append(json.dumps(self._step(step)))
            self._write_log()
            self.done = step + 1
            if self.done % self.recipe.save_steps == 0 or self.done == self.recipe.steps:
                self._save()
        seconds = [json.loads(line)["seconds"] for line in self.log]
        return {
            "seconds": round(sum(seconds), 1),
            "resumed": resumed,
            "device": device_name(self.policy.network.device),
            "parameters": self.policy.network.num_parameters(),
            "before": json.loads(self.before),
            "after": self._validate(),
        }

    def _step(self, step: int) -> dict[str, Any]:
        """Draws answers, judges them and learns; returns the entry for the log."""
        started, recipe = time.perf_counter(), self.recipe
        first = step * recipe.functions
        judges = [
            RolloutJudge(self.rows[place % len(self.rows)])
            for place in range(first, first + recipe.functions)
        ]
        drawn = [judge for judge in judges for _ in range(recipe.group)]
        generators = [Random(f"{recipe.seed} {step} {n}") for n in range(len(drawn))]  # noqa: S311
        starts = [Start(j.problem, g) for j, g in zip(drawn, generators, strict=True)]
        network = self.policy.network
        rollouts = roll_out(network, self.encoder, starts, recipe.most_dead_ends)
        outcomes = [judge.outcome(r) for judge, r in zip(drawn, rollouts, strict=True)]
        rewards = [j.reward(o, recipe.rewards) for j, o in zip(drawn, outcomes, strict=True)]
        groups = range(0, len(drawn), recipe.group)
        found = [a for start in groups for a in advantages(rewards[start : start + recipe.group])]
        learnt = self._learnt(rollouts, found, generators)
        update = self.policy.step(learnt)
        return {
            "step": step + 1,
            "reward": fmean(rewards),
            **_means(list(zip(drawn, outcomes, strict=True))),
            **dataclasses.asdict(update),
            "decisions": len(learnt),
            "seconds": round(time.perf_counter() - started, 2),
        }

    def _learnt(
        self,
        rollouts: Sequence[Rollout],
        found: Sequence[float],
        generators: Sequence[Random],
    ) -> list[LearntDecision]:
        """A sample of the decisions of each answer. All answers weigh the same at any length."""
        learnt = []
        for rollout, advantage, generator in zip(rollouts, found, generators, strict=True):
            count = min(len(rollout.decisions), self.recipe.learnt_decisions)
            for decision in generator.sample(rollout.decisions, count):
                share = 1 / (count * len(rollouts))
                learnt.append(LearntDecision(decision, advantage, share))
        return learnt

    def _validate(self) -> dict[str, Any]:
        """The results of greedy allocation on the functions of the validation split."""
        judged: list[tuple[RolloutJudge, RolloutOutcome]] = []
        starts = range(0, len(self.validation), SIDE_BY_SIDE)
        for start in tqdm(starts, desc="validation"):
            judges = [RolloutJudge(row) for row in self.validation[start : start + SIDE_BY_SIDE]]
            rollouts = roll_out(
                self.policy.network,
                self.encoder,
                [Start(judge.problem) for judge in judges],
                self.recipe.most_dead_ends,
            )
            judged += [(j, j.outcome(r)) for j, r in zip(judges, rollouts, strict=True)]
        return summarize(judged)

    def _write_log(self) -> None:
        write_atomically(self.output / "log.jsonl", "".join(line + "\n" for line in self.log))

    def _save(self) -> None:
        """Writes the checkpoint, whole or not at all."""
        state = {**self.policy.state(), "done": self.done, "log": self.log, "before": self.before}
        with opened_to_write(self.output / CHECKPOINT) as file:
            torch.save(state, file)

    def _resume(self) -> bool:
        """Returns to the last checkpoint. True if there is one."""
        path = self.output / CHECKPOINT
        if path.exists():
            # `weights_only` reads tensors and plain values alone: a checkpoint cannot run code.
            state = torch.load(path, map_location=self.policy.network.device, weights_only=True)
            self.policy.restore(state)
            self.done, self.log, self.before = state["done"], state["log"], state["before"]
        self._write_log()
        return path.exists()


def _means(judged: Sequence[tuple[RolloutJudge, RolloutOutcome]]) -> dict[str, Any]:
    """The means over a step's answers, for a line of the log."""
    valid = [(judge, outcome) for judge, outcome in judged if outcome.valid]
    told: dict[str, Any] = {
        "valid": len(valid),
        "dead_ends": fmean(outcome.dead_ends for _, outcome in judged),
    }
    if valid:
        told["registers_ratio"] = fmean(o.registers / max(j.label_registers, 1) for j, o in valid)
        told["conflicts_ratio"] = fmean(o.conflicts / max(j.label_conflicts, 1) for j, o in valid)
    return told
