"""Lets a network answer the windows of many functions side by side.

All windows of a round are read together, then each goes on word by word: what the text feeds,
and in between what the network says, until all have ended. Keys and values are kept within a
window.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from verilocc_bench.model.notes.conversation import conversation_of, has_mentions
from verilocc_bench.model.notes.network import Cache, NotesNetwork
from verilocc_bench.model.notes.picking import drawn_words
from verilocc_bench.model.notes.text_notes_format import AnyWindow, token_numbers
from verilocc_bench.model.prompts.notes.ledger import Contradiction
from verilocc_bench.model.prompts.notes.window import WrongWord
from verilocc_bench.model.prompts.notes.words import PAD
from verilocc_bench.model.prompts.text_notes.words import text_vocabulary


@dataclass(slots=True)
class WindowAnswer:
    """A window that is being answered, and how it went.

    `error` is None where the whole window was heard. `picking` draws words with a
    `temperature` above 0; at 0 the likeliest is taken. `words` are all words in their order, each
    with whether the network said it.
    """

    window: AnyWindow
    picking: random.Random
    temperature: float = 0.0
    error: Contradiction | WrongWord | None = None
    said: int = 0
    read: int = 0
    log_probability: float = 0.0
    words: list[tuple[str, bool]] = field(default_factory=list)


class _AnsweredRow:
    """One window: the words to be fed before it speaks again."""

    def __init__(self, answer: WindowAnswer) -> None:
        self.answer = answer
        self.prompt = answer.window.prompt()  # before anything is done
        self.feeding: list[str] = []
        self._conversation = conversation_of(answer.window)
        self.goes_on = self._go_on(None)

    def _go_on(self, word: str | None) -> bool:
        """What is fed after a word; False where the window has ended, well or not."""
        try:
            fed = next(self._conversation) if word is None else self._conversation.send(word)
        except StopIteration:
            return False
        except (Contradiction, WrongWord) as error:
            self.answer.error = error
            return False
        self.answer.read += len(fed)
        self.answer.words += [(each, False) for each in fed]
        self.feeding += fed
        return True

    def hear(self, word: str) -> bool:
        """Takes the network's word; False where the window has ended."""
        self.answer.said += 1
        self.answer.words.append((word, True))
        self.feeding = [word]
        return self._go_on(word)


def answer_windows(network: NotesNetwork, answers: Sequence[WindowAnswer]) -> None:
    """Answers some windows to their ends, or to their first error."""
    answers = [answer for answer in answers if has_mentions(answer.window)]
    if answers:
        with torch.inference_mode():
            rows = [_AnsweredRow(answer) for answer in answers]
            _answer(network, [row for row in rows if row.goes_on])


def _answer(network: NotesNetwork, rows: list[_AnsweredRow]) -> None:
    if not rows:
        return
    numbers = token_numbers()
    words = text_vocabulary()
    prompts = [row.prompt for row in rows]
    lengths = torch.tensor([len(prompt) for prompt in prompts])
    tokens = torch.full((len(rows), int(lengths.max())), numbers[PAD])
    for place, (row, prompt) in enumerate(zip(rows, prompts, strict=True)):
        row.answer.read += len(prompt)
        row.answer.words[:0] = [(word, False) for word in prompt]
        tokens[place, : len(prompt)] = torch.tensor([numbers[word] for word in prompt])
    cache = Cache(network.configuration, len(rows), tokens.shape[1])
    network(tokens, cache, lengths)
    vectors = network.vectors()
    while rows:
        counts = [len(row.feeding) for row in rows]
        fed = torch.full((len(rows), max(counts)), numbers[PAD])
        for place, row in enumerate(rows):
            fed[place, : counts[place]] = torch.tensor([numbers[word] for word in row.feeding])
        scores = network.step(fed, torch.tensor(counts), cache, vectors)
        picked = _pick(scores, rows)
        kept = [n for n, row in enumerate(rows) if row.hear(words[picked[n]])]
        if len(kept) < len(rows):
            rows = [rows[place] for place in kept]
            cache.keep(kept)


def _pick(scores: Tensor, rows: Sequence[_AnsweredRow]) -> list[int]:
    """The word of each row: the likeliest, or one that is drawn."""
    likeliest: list[int] = scores.argmax(-1).tolist()
    logarithms = scores.log_softmax(-1)
    picked = []
    for place, row in enumerate(rows):
        answer, word = row.answer, likeliest[place]
        if answer.temperature > 0:
            chance = answer.picking.random()
            word = int(drawn_words(scores[place : place + 1], answer.temperature, [chance]))
        answer.log_probability += float(logarithms[place, word])
        picked.append(word)
    return picked
