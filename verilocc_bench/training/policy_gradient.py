"""Group-relative policy gradient: answers that beat the mean of their group become likelier.

The model itself draws several answers to one problem, a group. The advantage
of an answer is its reward minus the group's mean, divided by the group's
deviation (Shao et al., "DeepSeekMath", arXiv 2402.03300, section 4.1: group
relative policy optimization). Each draw is used for one step, so the ratio of
old and new policy is 1 and needs no clipping. This is REINFORCE (Williams,
"Simple statistical gradient-following algorithms for connectionist
reinforcement learning", 1992) with the group as baseline. The divergence from
the model at the start is exact over the offered names.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from verilocc_bench.errors import InputError
from verilocc_bench.training.rollouts import Decision, offered_scores


class LearntDecision(NamedTuple):
    """A decision, the advantage of its answer, and its weight in the loss."""

    decision: Decision
    advantage: float
    share: float


@dataclass(frozen=True, slots=True)
class Update:
    """Weighted means over the decisions before a step, in nats, and the gradient's norm."""

    entropy: float
    divergence: float
    gradient_norm: float


class PolicyGradient:
    """Steps of AdamW on a network, with a penalty for leaving its initial state.

    `divergence`: the weight of the Kullback-Leibler divergence from the initial
    network. `batch_tokens`: the tokens of a mini-batch, with padding; a step
    sums the gradients of all its mini-batches.
    """

    def __init__(
        self,
        network: Any,
        padding: int,
        *,
        learning_rate: float,
        gradient_norm: float,
        divergence: float,
        batch_tokens: int,
    ) -> None:
        self.network = network.eval()  # no dropout: the draws are of this very policy
        self.optimizer = torch.optim.AdamW(network.parameters(), lr=learning_rate, weight_decay=0.0)
        self._start = deepcopy(network).requires_grad_(False)
        self._padding, self._batch_tokens = padding, batch_tokens
        self._gradient_norm, self._divergence = gradient_norm, divergence

    def step(self, learnt: Sequence[LearntDecision]) -> Update:
        """One step that lowers the sum of share x (divergence - advantage x log-probability).

        Changes no weight if all advantages are 0: the optimizer would scale the
        divergence alone up to a whole step. Raises InputError if the gradient
        is not finite.
        """
        self.optimizer.zero_grad()
        entropy = divergence = norm = 0.0
        for batch in self._batches(learnt):
            loss, one, other = self._loss(batch)
            loss.backward()
            entropy, divergence = entropy + one, divergence + other
        if any(each.advantage for each in learnt):
            parameters = self.network.parameters()
            norm = float(torch.nn.utils.clip_grad_norm_(parameters, self._gradient_norm))
            if not math.isfinite(norm):
                raise InputError("the gradient is not finite: try a smaller learning_rate")
            self.optimizer.step()
        return Update(entropy, divergence, norm)

    def state(self) -> dict[str, Any]:
        """The weights and the optimizer's state."""
        return {"network": self.network.state_dict(), "optimizer": self.optimizer.state_dict()}

    def restore(self, state: dict[str, Any]) -> None:
        """Returns to a state of `state`; the initial network stays the same."""
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])

    def _loss(self, batch: Sequence[LearntDecision]) -> tuple[Any, float, float]:
        """The loss of a mini-batch, and its terms of the mean entropy and divergence."""
        decisions = [each.decision for each in batch]
        scores = offered_scores(self.network, decisions, self._padding)
        with torch.no_grad():
            start = offered_scores(self._start, decisions, self._padding)
        taken = torch.tensor([[each.taken] for each in decisions], device=scores.device)
        advantage = scores.new_tensor([each.advantage for each in batch])
        share = scores.new_tensor([each.share for each in batch])
        chances = scores.exp()
        divergence = (chances * (scores - start)).sum(dim=1)
        gain = advantage * scores.gather(1, taken).squeeze(1)
        loss = (share * (self._divergence * divergence - gain)).sum()
        entropy = -(share * (chances * scores).sum(dim=1)).sum()
        return loss, float(entropy.detach()), float((share * divergence).sum().detach())

    def _batches(self, learnt: Sequence[LearntDecision]) -> Iterator[list[LearntDecision]]:
        """Mini-batches of prompts of similar length, the shortest first."""
        batch: list[LearntDecision] = []
        for each in sorted(learnt, key=lambda each: len(each.decision.prompt)):
            if batch and (len(batch) + 1) * len(each.decision.prompt) > self._batch_tokens:
                yield batch
                batch = []
            batch.append(each)
        if batch:
            yield batch
