"""Picks the next token of each row from scores."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from verilocc_bench.errors import InfrastructureError
from verilocc_bench.model.language_model import Alternative
from verilocc_bench.model.transformers_model.utterance import Utterance


def say_next(utterances: Sequence[Utterance], scores: torch.Tensor) -> None:
    """Every utterance says its next token, by its row of scores (rows, vocabulary).

    Its log-probability and the alternatives' come from the softmax over what
    may be said, before temperature and top-p.
    """
    logs = _legal_log_probabilities(utterances, scores)
    tokens = _picked(utterances, logs)
    taken = logs.gather(1, tokens[:, None])[:, 0].tolist()
    for row, (utterance, token) in enumerate(zip(utterances, tokens.tolist(), strict=True)):
        wanted = utterance.alternatives_wanted
        others = _alternatives(logs[row], token, wanted) if wanted else ()
        utterance.say(token, taken[row], others)


def _legal_log_probabilities(utterances: Sequence[Utterance], scores: torch.Tensor) -> torch.Tensor:
    if bool(torch.isnan(scores).any()):
        raise InfrastructureError(
            "the model's scores are not numbers: if it computes in float16, try bfloat16 or float32"
        )
    illegal = torch.zeros_like(scores, dtype=torch.bool)
    for row, utterance in enumerate(utterances):
        legal = utterance.legal()
        if legal is not None:
            illegal[row] = True
            illegal[row, torch.tensor(legal, device=scores.device)] = False
    return torch.log_softmax(scores.masked_fill(illegal, -torch.inf), dim=-1)


def _picked(utterances: Sequence[Utterance], logs: torch.Tensor) -> torch.Tensor:
    # The likeliest token of each row; among equals, the one with the lowest number.
    size = logs.shape[1]
    numbers = torch.arange(size, device=logs.device).expand_as(logs)
    best = logs == logs.max(dim=1, keepdim=True).values
    tokens = torch.where(best, numbers, size).min(dim=1).values
    for row, utterance in enumerate(utterances):
        if utterance.forced is not None:
            tokens[row] = utterance.forced
        elif utterance.sampling.temperature > 0:
            tokens[row] = _drawn(utterance, logs[row])
    return tokens


def _drawn(utterance: Utterance, logs: torch.Tensor) -> int:
    """A token by the inverse of the cumulative distribution, in the order of token numbers.

    The order by number, unlike that by probability, does not change with the
    last digits of the scores.
    """
    sampling = utterance.sampling
    weights = torch.softmax(logs / sampling.temperature, dim=0)
    if sampling.top_p < 1:
        weights = _nucleus(weights, sampling.top_p)
    cumulative = weights.cumsum(dim=0)
    total = cumulative[-1]
    place = int(torch.searchsorted(cumulative, total * utterance.draw(), right=True))
    if place >= len(weights) or weights[place] == 0:  # rounding at the upper end
        place = int(weights.nonzero()[-1])
    return place


def _nucleus(weights: torch.Tensor, top_p: float) -> torch.Tensor:
    """The weights without the tail: the fewest tokens, likeliest first, that hold top-p."""
    ordered, numbers = weights.sort(descending=True, stable=True)
    before = ordered.cumsum(dim=0) - ordered
    kept = before < top_p
    kept[0] = True
    result = torch.zeros_like(weights)
    result[numbers[kept]] = ordered[kept]
    return result


def _alternatives(logs: torch.Tensor, token: int, wanted: int) -> tuple[Alternative, ...]:
    """The likeliest tokens that were not taken, of those that may be said."""
    ordered, numbers = logs.sort(descending=True, stable=True)
    found = zip(numbers[: wanted + 1].tolist(), ordered[: wanted + 1].tolist(), strict=True)
    others = [Alternative(n, value) for n, value in found if n != token and value > -torch.inf]
    return tuple(others[:wanted])
