"""Answers whole windows in one go of a network, word for word as it would say them one by one.

The rule drafts the words of a window: it knows no more than the window shows and the words before.
The network then reads the window and the draft at once, and has its own next word at each place.
Up to the first place where that is another, it has heard its own words alone, so each is what it
would have said. A window with another word is drafted again, with the network's own words up to
that place. So an answer has the network's words alone; it is only there sooner.

Where words are drawn, each place has its number drawn beforehand, in the order of the words, and
the word is the network's for that number.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from verilocc_bench.model.notes.notes_ledger import Contradiction
from verilocc_bench.model.notes.notes_network import NotesNetwork
from verilocc_bench.model.notes.notes_reading import Mark
from verilocc_bench.model.notes.notes_words import PAD, token_numbers, vocabulary
from verilocc_bench.model.notes.talk import Asked, WrongWord, answered

READ_AT_ONCE = 512
"""Words that a network reads at once, about. More do not fit into a core's own memory."""


@dataclass(slots=True)
class Draft:
    """A window with the words that the rule says after those that are `known` to be the network's.

    `mark` is where its reading stood. `places` says where the network's own words
    stand among all `tokens`; `said` are these words. `chances` has a number for each where they are
    drawn. `error` says how the last of them contradicts the notes. `own` are the network's words,
    up to the first that differs from what is said; `agreed` if all are equal.
    """

    mark: Mark
    known: int = 0
    tokens: list[int] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    chances: list[float] = field(default_factory=list)
    error: Contradiction | WrongWord | None = None
    own: list[str] = field(default_factory=list)
    log_probability: float = 0.0

    @property
    def agreed(self) -> bool:
        """True if the network says the same."""
        return self.own == self.said

    @property
    def read(self) -> int:
        """The words that are not the network's."""
        return len(self.tokens) - len(self.said)


def draft_window(
    mark: Mark, known: Sequence[str], draw: random.Random, temperature: float
) -> Draft:
    """Answers a window as the rule does after some words that are known, and so fills the notes."""
    numbers, prompt = token_numbers(), mark.window.prompt()
    draft = Draft(mark, len(known), [numbers[word] for word in prompt])

    def say(asked: Asked) -> str:
        if temperature > 0:
            draft.chances.append(draw.random())
        place = len(draft.said)
        return known[place] if place < len(known) else asked.right

    try:
        for fed, word in answered(mark.window, say):
            draft.tokens += [numbers[each] for each in fed]
            draft.places.append(len(draft.tokens))
            draft.tokens.append(numbers[word])
            draft.said.append(word)
    except (Contradiction, WrongWord) as error:
        draft.error = error
    if not draft.said:  # nothing is asked, or what the text does contradicts the notes
        draft.tokens = []
    return draft


def judge_drafts(network: NotesNetwork, drafts: Sequence[Draft], temperature: float) -> None:
    """Finds what the network says of each draft."""
    asked = [draft for draft in drafts if draft.said]
    with torch.inference_mode():
        vectors = network.vectors()
        for part in _parts(sorted(asked, key=lambda draft: len(draft.tokens))):
            _judge(network, part, vectors, temperature)


def _parts(drafts: Sequence[Draft]) -> Iterator[list[Draft]]:
    """Drafts that are read at once, which are of about the same length."""
    part: list[Draft] = []
    for draft in drafts:
        longest = len(draft.tokens)
        if part and (
            longest * (len(part) + 1) > READ_AT_ONCE or 4 * longest > 5 * len(part[0].tokens) + 32
        ):
            yield part
            part = []
        part.append(draft)
    if part:
        yield part


def _judge(
    network: NotesNetwork, drafts: Sequence[Draft], vectors: Tensor, temperature: float
) -> None:
    longest = max(len(draft.tokens) for draft in drafts)
    pad, words = token_numbers()[PAD], vocabulary()
    tokens = torch.tensor(
        [draft.tokens + [pad] * (longest - len(draft.tokens)) for draft in drafts]
    )
    rows = torch.tensor([row for row, draft in enumerate(drafts) for _ in draft.places])
    places = torch.tensor([place for draft in drafts for place in draft.places])
    scores = network.scores_after(tokens, rows, places - 1, vectors)
    if temperature > 0:
        chances = [chance for draft in drafts for chance in draft.chances]
        picked = drawn_words(scores, temperature, chances)
    else:
        picked = scores.argmax(-1)
    own: list[int] = picked.tolist()
    said = tokens[rows, places]
    logarithms: list[float] = scores.log_softmax(-1).gather(1, said[:, None])[:, 0].tolist()
    first = 0
    for draft in drafts:
        end = first + len(draft.said)
        draft.own = draft.said[: draft.known]
        for number, word in zip(
            own[first + draft.known : end], draft.said[draft.known :], strict=True
        ):
            draft.own.append(words[number])
            if words[number] != word:
                break
        draft.log_probability = sum(logarithms[first:end])
        first = end


def drawn_words(scores: Tensor, temperature: float, chances: Sequence[float]) -> Tensor:
    """A word for each row of scores, by a number from 0 up to 1 for each."""
    sums = (scores / temperature).softmax(-1).double().cumsum(-1)
    wanted = torch.tensor(chances, dtype=torch.double)[:, None] * sums[:, -1:]
    return torch.searchsorted(sums, wanted, right=True)[:, 0].clamp(max=scores.shape[-1] - 1)
