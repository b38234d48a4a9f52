"""The network of models that keep notes: attention with short convolutions.

A decoder of the usual kind (root mean square norms, residual attention and feed-forward
blocks, word vectors shared between entry and exit), with four things of its own, for what
it does is to find a word again and say what stands beside it:

- queries, keys and values go through a causal depthwise convolution of four words (as in
  So et al., "Primer", arXiv 2109.08668), so that a key can tell of the word before;
- queries and keys begin as the same map, keys one word back: heads begin as copying heads;
- instead of positions, each head's scores fall with the logarithm of the distance, by a
  slope that it learns;
- a register's vector has parts for its file, its number's low and high four bits, and one
  of its own.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from verilocc_bench.model.notes.notes_words import REGISTERS, vocabulary

TAPS = 4


@dataclass(frozen=True, slots=True)
class NotesConfiguration:
    """The sizes of a network."""

    hidden: int = 128
    layers: int = 3
    heads: int = 4
    head_width: int = 64
    feed_forward: int = 384

    def as_json(self) -> dict[str, Any]:
        """What config.json holds."""
        return asdict(self)


def _norm(x: Tensor, weight: Tensor) -> Tensor:
    return functional.rms_norm(x, (x.shape[-1],), weight, 1e-6)


class _Layer(nn.Module):  # type: ignore[misc]  # torch is not followed
    def __init__(self, c: NotesConfiguration) -> None:
        super().__init__()
        self.heads, self.head_width = c.heads, c.head_width
        inner = c.heads * c.head_width
        self.inner = inner
        self.before_attention = nn.Parameter(torch.ones(c.hidden))
        self.before_feed_forward = nn.Parameter(torch.ones(c.hidden))
        self.project = nn.Linear(c.hidden, 3 * inner, bias=False)
        self.mix = nn.Parameter(torch.zeros(3 * inner, TAPS))
        self.slope = nn.Parameter(torch.full((c.heads,), 0.5))
        self.out = nn.Linear(inner, c.hidden, bias=False)
        self.up = nn.Linear(c.hidden, 2 * c.feed_forward, bias=False)
        self.down = nn.Linear(c.feed_forward, c.hidden, bias=False)
        with torch.no_grad():
            same = torch.randn(inner, c.hidden) / math.sqrt(c.hidden)
            value = torch.randn(inner, c.hidden) / math.sqrt(c.hidden)
            self.project.weight.copy_(torch.cat((same, same, value)))
            self.mix[:, -1] = 1.0  # the word itself
            self.mix[inner : 2 * inner, -1] = 0.3
            self.mix[inner : 2 * inner, -2] = 1.0  # keys: the word before
            self.mix += 0.02 * torch.randn(3 * inner, TAPS)
            for linear, gain in ((self.out, 0.5), (self.up, 1.0), (self.down, 0.5)):
                linear.weight.normal_(0, gain / math.sqrt(linear.in_features))

    def _convolved(self, projected: Tensor) -> Tensor:
        """Each channel's sum over the last four words."""
        before = projected.new_zeros(projected.shape[0], TAPS - 1, projected.shape[-1])
        padded = torch.cat((before, projected), 1)
        length = projected.shape[1]
        taps = self.mix.t().contiguous()
        total = padded[:, :length] * taps[0]
        for tap in range(1, TAPS):
            total = torch.addcmul(total, padded[:, tap : tap + length], taps[tap])
        return total

    def attend(self, x: Tensor, distance: Tensor, mask: Tensor) -> Tensor:
        """Attention over whole sequences, the heads side by side."""
        mixed = self._convolved(self.project(_norm(x, self.before_attention)))
        rows, length, _ = mixed.shape
        parts = mixed.view(rows, length, 3, self.heads, self.head_width).permute(2, 0, 3, 1, 4)
        bias = mask - self.slope.view(-1, 1, 1) * distance
        attended = functional.scaled_dot_product_attention(
            parts[0], parts[1], parts[2], attn_mask=bias[None]
        )
        return attended.transpose(1, 2).flatten(2)

    def finish(self, x: Tensor, attended: Tensor) -> Tensor:
        """What comes after attention, for some words."""
        x = x + self.out(attended)
        gate, value = self.up(_norm(x, self.before_feed_forward)).chunk(2, -1)
        return x + self.down(functional.silu(gate) * value)

    def forward(self, x: Tensor, distance: Tensor, mask: Tensor) -> Tensor:
        """The layer over whole sequences."""
        return self.finish(x, self.attend(x, distance, mask))


class NotesNetwork(nn.Module):  # type: ignore[misc]  # torch is not followed
    """Scores of the next word after each of some words."""

    def __init__(self, configuration: NotesConfiguration, seed: int = 0) -> None:
        super().__init__()
        self.configuration = configuration
        words = vocabulary()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            hidden = configuration.hidden
            low, high, file = _features(words)
            self.own = nn.Parameter(torch.randn(len(words), hidden) / math.sqrt(hidden))
            self.register_buffer("low", low, persistent=False)
            self.register_buffer("high", high, persistent=False)
            self.register_buffer("file", file, persistent=False)
            self.parts = nn.ParameterList(
                nn.Parameter(0.5 * torch.randn(int(f.max()) + 1, hidden) / math.sqrt(hidden))
                for f in (low, high, file)
            )
            self.layers = nn.ModuleList(_Layer(configuration) for _ in range(configuration.layers))
            self.last_norm = nn.Parameter(torch.ones(hidden))
            self.scale = nn.Parameter(torch.tensor(1.0))

    def vectors(self) -> Tensor:
        """The vector of each word."""
        lows, highs, files = self.parts
        is_register = (self.file > 0).unsqueeze(-1)
        shared = lows[self.low] + highs[self.high] + files[self.file]
        return self.own + torch.where(is_register, shared, torch.zeros_like(shared))

    def forward(self, tokens: Tensor) -> Tensor:
        """The hidden state after each word, [rows, words, hidden]."""
        x = math.sqrt(self.configuration.hidden) * self.vectors()[tokens]
        distance, mask = _back(tokens.shape[1])
        for layer in self.layers:
            x = layer(x, distance, mask)
        return _norm(x, self.last_norm)

    def scores_after(self, tokens: Tensor, rows: Tensor, places: Tensor, vectors: Tensor) -> Tensor:
        """Scores of the word after some places of whole sequences, [places, vocabulary].

        `rows` has the row of each. No more is worked out than these need.
        """
        x = math.sqrt(self.configuration.hidden) * vectors[tokens]
        distance, mask = _back(tokens.shape[1])
        for layer in self.layers[:-1]:
            x = layer(x, distance, mask)
        last = self.layers[-1]
        attended = last.attend(x, distance, mask)
        x = last.finish(x[rows, places], attended[rows, places])
        return self.scores(_norm(x, self.last_norm), vectors)

    def scores(self, states: Tensor, vectors: Tensor) -> Tensor:
        """Scores of all words after some states."""
        return self.scale * (states @ vectors.T)


def _back(count: int) -> tuple[Tensor, Tensor]:
    """The logarithm of how far back each word is for each, and what hides the later ones."""
    place = torch.arange(count)
    back = (place[:, None] - place[None, :]).clamp(min=0)
    mask = torch.zeros(count, count).masked_fill(place[None, :] > place[:, None], -1e9)
    return torch.log1p(back.float()), mask


def _features(words: tuple[str, ...]) -> tuple[Tensor, Tensor, Tensor]:
    """The low and high four bits and the file of each register, 0 for other words."""
    low, high, file = [], [], []
    for word in words:
        kind = word.rstrip("0123456789")
        is_register = kind in REGISTERS and kind != word
        register = int(word[len(kind) :]) if is_register else 0
        low.append(register % 16)
        high.append(register // 16)
        file.append(list(REGISTERS).index(kind) + 1 if is_register else 0)
    return torch.tensor(low), torch.tensor(high), torch.tensor(file)
