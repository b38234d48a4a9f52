"""The reward of a whole allocation, from the verifier and the metrics of its answer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, pstdev
from typing import Any

from verilocc_bench.analysis import VECTOR
from verilocc_bench.analysis.bank_conflicts import count_bank_conflicts, count_identity_copies
from verilocc_bench.dataset import Row
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.metrics import geometric_mean, shares
from verilocc_bench.training.reinforcement_recipe import RewardWeights
from verilocc_bench.training.rollouts import Rollout
from verilocc_bench.verification import FastVerifier
from verilocc_bench.views.rows import problem_of

ALIKE = 1e-9
"""Rewards whose deviation is smaller are equal except for rounding."""


@dataclass(frozen=True, slots=True)
class RolloutOutcome:
    """The result of a rollout. If it is not `valid`, only `dead_ends` has a meaning.

    `registers`: the vector registers used. `conflicts`: the bank conflicts,
    weighted by loop depth. `copies`: the copies that become identities.
    """

    valid: bool
    dead_ends: int
    registers: int = 0
    conflicts: int = 0
    copies: int = 0


class RolloutJudge:
    """Judges rollouts of one row that has a label.

    `label_registers`, `label_conflicts`: the vector registers and the bank
    conflicts of the label. `bound`: the known lower bound on vector registers;
    without one the registers of the best known answer, or of the label.
    """

    def __init__(self, row: Row) -> None:
        self.id = row.id
        self.problem = problem_of(row)
        self._verifier = FastVerifier(self.problem)
        label = row.label or {}
        used = self._verifier.verify(label).registers_used
        if used is None:
            raise InputError(f"row {row.id}: its label is no answer")
        self.label_registers = used[VECTOR]
        self.label_conflicts = count_bank_conflicts(self.problem, label).any
        self.bound = row.best_lower_bound or row.best_registers_used or self.label_registers
        opcodes = self.problem.target.copy_opcodes
        self.copies = sum(
            instruction.opcode in opcodes
            for _, _, instruction in self.problem.function.instructions()
        )

    def outcome(self, rollout: Rollout) -> RolloutOutcome:
        """The verdict on a rollout, and the metrics of its answer."""
        if rollout.answer is None:
            return RolloutOutcome(False, rollout.dead_ends)
        verdict = self._verifier.verify(rollout.answer)
        if not verdict.valid or verdict.registers_used is None:
            return RolloutOutcome(False, rollout.dead_ends)
        return RolloutOutcome(
            True,
            rollout.dead_ends,
            verdict.registers_used[VECTOR],
            count_bank_conflicts(self.problem, rollout.answer).any,
            count_identity_copies(self.problem, rollout.answer),
        )

    def reward(self, outcome: RolloutOutcome, weights: RewardWeights) -> float:
        """The reward; more is better.

        An answer at the bound without conflicts and dead ends gets -1, plus up
        to the weight of copies.
        """
        if not outcome.valid:
            return weights.invalid
        found = (
            -outcome.registers / max(self.bound, 1)
            - weights.conflicts * math.log1p(outcome.conflicts / max(self.label_conflicts, 1))
            - weights.dead_ends * math.log1p(outcome.dead_ends)
            + weights.copies * outcome.copies / max(self.copies, 1)
        )
        return max(found, weights.invalid)


def advantages(rewards: Sequence[float]) -> list[float]:
    """The distance of each reward from the group's mean, in deviations; all 0 if all are equal."""
    mean, deviation = fmean(rewards), pstdev(rewards)
    if deviation < ALIKE:
        return [0.0] * len(rewards)
    return [(reward - mean) / deviation for reward in rewards]


def summarize(judged: Sequence[tuple[RolloutJudge, RolloutOutcome]]) -> dict[str, Any]:
    """Compares outcomes with the labels, over all functions and for each one.

    `registers_ratio` and `conflicts_ratio` (of conflicts + 1) are geometric
    means over the functions with a valid answer. The shares of functions with
    fewer, as many and more registers than the label are of the same functions.
    """
    valid = [(judge, outcome) for judge, outcome in judged if outcome.valid]
    registers: Mapping[str, tuple[int, int]] = {
        judge.id: (outcome.registers, judge.label_registers) for judge, outcome in valid
    }
    conflicts = [(o.conflicts + 1) / (judge.label_conflicts + 1) for judge, o in valid]
    return {
        "functions": len(judged),
        "valid": len(valid),
        "registers_ratio": geometric_mean(
            [max(own, 1) / max(label, 1) for own, label in registers.values()]
        ),
        **shares(registers),
        "conflicts": sum(outcome.conflicts for _, outcome in valid),
        "label_conflicts": sum(judge.label_conflicts for judge, _ in valid),
        "conflicts_ratio": geometric_mean(conflicts),
        "dead_ends": sum(outcome.dead_ends for _, outcome in judged),
        "rows": [
            {
                "id": judge.id,
                **asdict(outcome),
                "label_registers": judge.label_registers,
                "label_conflicts": judge.label_conflicts,
            }
            for judge, outcome in judged
        ],
    }
