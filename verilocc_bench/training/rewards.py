"""What a whole allocation is worth, as the verifier and the metrics of an answer say."""

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
from verilocc_bench.evaluate.metrics import geometric_mean, shares
from verilocc_bench.training.reinforcement_recipe import RewardWeights
from verilocc_bench.training.rollouts import Rollout
from verilocc_bench.verify import FastVerifier
from verilocc_bench.views.rows import problem_of

__all__ = ["Judge", "Outcome", "advantages", "summarize"]

ALIKE = 1e-9
"""Rewards that deviate by less are the same but for rounding."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a rollout; where it is not `valid`, `dead_ends` alone means something.

    `registers` are vector registers used, `conflicts` bank conflicts weighted
    by loop depth, `copies` the copies that become identities.
    """

    valid: bool
    dead_ends: int
    registers: int = 0
    conflicts: int = 0
    copies: int = 0


class Judge:
    """Judges rollouts of one row that has a label.

    `label_registers` and `label_conflicts` are what its label uses and has,
    `bound` the known lower bound on vector registers, or what the best known
    answer uses where none is.
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

    def outcome(self, rollout: Rollout) -> Outcome:
        """The verdict on a rollout, and the metrics of its answer."""
        if rollout.answer is None:
            return Outcome(False, rollout.dead_ends)
        verdict = self._verifier.verify(rollout.answer)
        if not verdict.valid or verdict.registers_used is None:
            return Outcome(False, rollout.dead_ends)
        return Outcome(
            True,
            rollout.dead_ends,
            verdict.registers_used[VECTOR],
            count_bank_conflicts(self.problem, rollout.answer).any,
            count_identity_copies(self.problem, rollout.answer),
        )

    def reward(self, outcome: Outcome, weights: RewardWeights) -> float:
        """The reward: more is better, and 0 could hardly be better."""
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
    """By how many of its deviations each reward is above the mean of its group; all 0 if alike."""
    mean, deviation = fmean(rewards), pstdev(rewards)
    if deviation < ALIKE:
        return [0.0] * len(rewards)
    return [(reward - mean) / deviation for reward in rewards]


def summarize(judged: Sequence[tuple[Judge, Outcome]]) -> dict[str, Any]:
    """How outcomes compare with the labels, over all functions, and each for itself.

    `registers_ratio` and `conflicts_ratio` (of conflicts + 1) are geometric
    means over the functions with a valid answer, and so are the shares that
    use fewer, as many and more registers than the label.
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
