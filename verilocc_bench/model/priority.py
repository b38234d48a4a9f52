"""Priority sampling: unique samples of one function, in the order of the model's confidence.

Grubisic, Cummins, Seeker and Leather, "Priority Sampling of Large
Language Models for Compilers", EuroMLSys 2024 (arXiv 2402.18734).
The first sample is greedy. Wherever the model spoke freely, each token that it
did not take is a *branch*: the tokens before it and the token. A branch's
priority is the probability of all its tokens, the last included: the product
of the model's probabilities of each given those before it, over what might be
said there. Each further sample takes the open branch of the highest priority,
and goes on greedily from its end; the tokens it passes by are branches of
their own. So no two samples have the same tokens, and there is no temperature.

Here a sample is a whole episode, which may ask many times; its tokens are the
tokens of all its completions, one after the other. The completions before a
branch are replayed, not asked for again.

Cost: one episode a sample, less what is replayed. Limits: at most
ALTERNATIVES branches are seen at one place, and OPEN_BRANCHES are kept, the
likeliest; a search of no more than that many samples loses nothing by the
latter. Unique are the tokens: where a tokenizer can say one text in two ways,
a text may come again in free decoding.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from verilocc_bench.allocators import FailureKind, Response
from verilocc_bench.model.conversation import Conversation, Question, converse
from verilocc_bench.model.language_model import Ask, Completion, Episode, TokenSampling

ALTERNATIVES = 32
OPEN_BRANCHES = 1024


@dataclass(frozen=True, slots=True)
class _Branch:
    """Where a sample may leave another's path.

    The completions of `before` are replayed; the next one starts with the
    tokens `forced`, and must say at least these. `log_probability` counts
    all tokens up to here.
    """

    log_probability: float
    before: tuple[Completion, ...] = ()
    forced: tuple[int, ...] = ()


class PrioritySearch:
    """The samples of one function, each found when it is first asked for.

    `episode` begins an episode from its start; it must ask the same after
    the same completions. `keep` is told each completion, with the rank of its sample.
    """

    def __init__(
        self,
        episode: Callable[[], Episode],
        keep: Callable[[int, int, Ask, TokenSampling, Completion], object] | None = None,
    ) -> None:
        self._episode = episode
        self._keep = keep or (lambda _rank, _number, _ask, _how, _said: None)
        self._responses: list[Response] = []
        self._open: list[tuple[float, int, _Branch]] = [(0.0, 0, _Branch(0.0))]
        self._count = 1

    def sample(self, rank: int) -> Conversation:
        """The response of that rank, from 0; those before it are found first.

        Where there are no more, a response that says so. Closing the
        conversation before its end loses that sample's work and nothing else.
        """
        while len(self._responses) <= rank:
            if not self._open:
                return Response(None, FailureKind.NO_ANSWER, "no further unique sample")
            yield from self._expand()
        return self._responses[rank]

    def _expand(self) -> Generator[Question, Completion, None]:
        """Finds the next sample. Only at the end does the search change."""
        entry = self._open[0]
        completions: list[Completion] = []
        reply = partial(_reply, entry[2])
        keep = partial(self._keep, len(self._responses))
        response = yield from converse(self._episode(), reply, completions, keep)
        total = sum(sum(completion.log_probabilities) for completion in completions)
        details = {**response.details, "log_probability": round(total, 6)}
        assert heapq.heappop(self._open) is entry
        self._add_branches(entry[2], completions)
        self._responses.append(replace(response, details=details))

    def _add_branches(self, taken: _Branch, completions: Sequence[Completion]) -> None:
        """The branches off a sample's path, behind the end of its own branch."""
        kept = tuple(replace(completion, alternatives=()) for completion in completions)
        total = sum(sum(completion.log_probabilities) for completion in taken.before)
        for number in range(len(taken.before), len(completions)):
            completion = completions[number]
            first = len(taken.forced) if number == len(taken.before) else 0
            total += sum(completion.log_probabilities[:first])
            for place in range(first, len(completion.tokens)):
                for other in completion.alternatives[place]:
                    forced = (*completion.tokens[:place], other.token)
                    branch = _Branch(total + other.log_probability, kept[:number], forced)
                    heapq.heappush(self._open, (-branch.log_probability, self._count, branch))
                    self._count += 1
                total += completion.log_probabilities[place]
        if len(self._open) > 2 * OPEN_BRANCHES:
            self._open = heapq.nsmallest(OPEN_BRANCHES, self._open)


def _reply(branch: _Branch, number: int, _ask: Ask) -> TokenSampling | Completion:
    """Along a branch, and on from its end greedily."""
    if number < len(branch.before):
        return branch.before[number]
    forced = branch.forced if number == len(branch.before) else ()
    return TokenSampling(0, temperature=0.0, forced=forced, alternatives=ALTERNATIVES)
