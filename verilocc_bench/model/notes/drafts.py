"""Answers whole windows in one go of a network, word for word as it would say them one by one.

The teacher's rule drafts the words of a window: it knows no more than the window shows and the
words before. The network then reads the window and the draft at once, and has its own next word
at each place. Up to the first place where that is another, it has heard its own words alone, so
each is what it would have said. A window with another word is not taken, and is answered word
by word (model.notes.decoding). So nothing of an answer is the draft's, but that it is there sooner.

Where words are drawn, each place has its number drawn beforehand, in the order of the words, and
the word is the network's for that number.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from verilocc_bench.model.notes.conversation import conversation_of, has_mentions
from verilocc_bench.model.notes.network import NotesNetwork
from verilocc_bench.model.notes.picking import drawn_words
from verilocc_bench.model.notes.teacher import OutOfRegisters, teacher_of
from verilocc_bench.model.notes.text_notes_format import AnyWindow, token_numbers
from verilocc_bench.model.prompts.notes.ledger import Contradiction
from verilocc_bench.model.prompts.notes.window import WrongWord
from verilocc_bench.model.prompts.notes.words import PAD

READ_AT_ONCE = 512
"""Words that a network reads at once, about. More do not fit into a core's own memory."""


@dataclass(slots=True)
class Draft:
    """A window with the teacher's words.

    `places` are those of the words that are the network's to say, among all `tokens`; `said`
    are these words. `chances` has a number for each where they are drawn. `error` says how the
    last of them contradicts the notes. `agreed`: the network says the same; never of a draft that
    is not `whole`, for the teacher has no word.
    """

    tokens: list[int]
    said: list[str]
    places: list[int]
    chances: list[float]
    error: Contradiction | WrongWord | None = None
    whole: bool = True
    agreed: bool = False
    log_probability: float = 0.0

    @property
    def read(self) -> int:
        """The words that are not the network's."""
        return len(self.tokens) - len(self.said)


def draft_window(window: AnyWindow, draw: random.Random, temperature: float) -> Draft:
    """Answers a window as the teacher does, and so fills the notes."""
    draft = Draft([], [], [], [])
    if not has_mentions(window):
        draft.agreed = True  # there is nothing to say
        return draft
    numbers = token_numbers()
    prompt = window.prompt()
    draft.tokens += [numbers[word] for word in prompt]
    say, talk = teacher_of(window, prompt), conversation_of(window)
    try:
        fed = next(talk)
        while True:
            draft.tokens += [numbers[each] for each in fed]
            word = say(fed)
            draft.places.append(len(draft.tokens))
            draft.tokens.append(numbers[word])
            draft.said.append(word)
            if temperature > 0:
                draft.chances.append(draw.random())
            fed = talk.send(word)
    except StopIteration:
        pass
    except (Contradiction, WrongWord) as error:
        draft.error = error
    except OutOfRegisters:
        draft.whole = False
    if draft.whole and not draft.said:  # what is fed contradicts the notes
        draft.tokens, draft.agreed = [], True
    return draft


def judge_drafts(network: NotesNetwork, drafts: Sequence[Draft], temperature: float) -> None:
    """Finds out of each draft whether the network says the same."""
    asked = [draft for draft in drafts if draft.whole and draft.said]
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
    network: NotesNetwork, drafts: Sequence[Draft], vectors: torch.Tensor, temperature: float
) -> None:
    longest = max(len(draft.tokens) for draft in drafts)
    pad = token_numbers()[PAD]
    tokens = torch.tensor(
        [draft.tokens + [pad] * (longest - len(draft.tokens)) for draft in drafts]
    )
    rows = torch.tensor([row for row, draft in enumerate(drafts) for _ in draft.places])
    places = torch.tensor([place for draft in drafts for place in draft.places])
    scores = network.scores_after(tokens, rows, places - 1, vectors)
    if temperature > 0:
        chances = [chance for draft in drafts for chance in draft.chances]
        own = drawn_words(scores, temperature, chances)
    else:
        own = scores.argmax(-1)
    said = tokens[rows, places]
    agreed: list[bool] = (own == said).tolist()
    logarithms: list[float] = scores.log_softmax(-1).gather(1, said[:, None])[:, 0].tolist()
    first = 0
    for draft in drafts:
        end = first + len(draft.said)
        draft.agreed = all(agreed[first:end])
        draft.log_probability = sum(logarithms[first:end])
        first = end
