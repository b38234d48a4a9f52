"""Group-relative policy gradient: what did better than its like becomes likelier.

Several answers to one problem are drawn from the model itself; each one's
advantage is its reward less the mean of its group, over the group's deviation
(Shao et al., "DeepSeekMath", arXiv 2402.03300, section 4.1: group relative
policy optimization). One step is made with each draw, so that the ratio of
old and new policy, and its clipping, fall away: it is REINFORCE (Williams,
"Simple statistical gradient-following algorithms for connectionist
reinforcement learning", 1992) with the group for a baseline. The divergence
from the model at the start is exact over the offered names.
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

__all__ = ["LearntDecision", "PolicyGradient", "Update"]


class LearntDecision(NamedTuple):
    """A decision, the advantage of the answer that it is part of, and its share of the mean."""

    decision: Decision
    advantage: float
    share: float


@dataclass(frozen=True, slots=True)
class Update:
    """Means over the learnt decisions before a step, in nats, and the gradient's norm."""

    entropy: float
    divergence: float
    gradient_norm: float


class PolicyGradient:
    """Steps of AdamW on a network, held near to what it was at the beginning.

    `divergence`: what counts the Kullback-Leibler divergence of the network
    from its beginning. `batch_tokens`: of a mini-batch, with padding; a step
    sums the gradients of as many as it takes.
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
        """One step of descent of share x (divergence - advantage x log-probability), summed.

        None is made where no answer is better than another: the divergence
        alone would be scaled up to a whole step by the optimizer. Raises
        InputError where training has diverged.
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
        """Goes back to a state; the beginning stays what it is."""
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])

    def _loss(self, batch: Sequence[LearntDecision]) -> tuple[Any, float, float]:
        """The loss of a mini-batch, and its parts of mean entropy and divergence."""
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
        """All, the shortest prompts first, in mini-batches of like length."""
        batch: list[LearntDecision] = []
        for each in sorted(learnt, key=lambda each: len(each.decision.prompt)):
            if batch and (len(batch) + 1) * len(each.decision.prompt) > self._batch_tokens:
                yield batch
                batch = []
            batch.append(each)
        if batch:
            yield batch
