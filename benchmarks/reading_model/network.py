"""A decoder of the Llama kind: whole rows, and a few words after others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  its usual name
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from verilocc_bench.model.reading.conversation import WORDS

HERE = Path.cwd()
"""The folder of data and weights, and of what a run leaves for the next."""
VOCABULARY = -(-len(WORDS) // 64) * 64


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a network."""

    layers: int
    width: int
    heads: int
    pairs: int
    inner: int

    @property
    def head_width(self) -> int:
        """The width of one head."""
        return self.width // self.heads


SMOL = Shape(30, 576, 9, 3, 1536)
SHAPES: Mapping[str, Shape] = {
    "smol": SMOL,
    "tiny": Shape(3, 128, 4, 2, 256),
}
ROPE_BASE = 500_000.0
REPEATED = False
"""Whether attention gets keys and values once for each query: no kernel shares them here."""


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def layer_of_rows(  # noqa: PLR0917  tensors alone, as the compiled layer takes them
    shape: Shape,
    x: Tensor,
    cos: Tensor,
    sin: Tensor,
    norm1: Tensor,
    qkv: Tensor,
    o: Tensor,
    norm2: Tensor,
    gate_up: Tensor,
    down: Tensor,
) -> Tensor:
    """One layer over whole rows."""
    rows, length, width = x.shape
    h = F.rms_norm(x, (width,), norm1, 1e-5)
    size, pairs = shape.head_width, shape.pairs
    q, k, v = F.linear(h, qkv).split((width, pairs * size, pairs * size), dim=-1)
    q = _rotate(q.view(rows, length, shape.heads, size).transpose(1, 2), cos, sin)
    k = _rotate(k.view(rows, length, pairs, size).transpose(1, 2), cos, sin)
    v = v.view(rows, length, pairs, size).transpose(1, 2)
    if REPEATED:
        k, v = (part.repeat_interleave(shape.heads // pairs, dim=1) for part in (k, v))
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1])
    x = x + F.linear(y.transpose(1, 2).reshape(rows, length, width), o)
    gate, up = F.linear(F.rms_norm(x, (width,), norm2, 1e-5), gate_up).chunk(2, dim=-1)
    return x + F.linear(F.silu(gate) * up, down)


class Reader(nn.Module):  # type: ignore[misc]
    """A decoder of the Llama kind over the words of the conversation, its embeddings tied."""

    def __init__(self, shape: Shape, base: float = ROPE_BASE) -> None:
        super().__init__()
        self.shape = shape
        self.base = base
        w, kv = shape.width, shape.pairs * shape.head_width

        self.words = nn.Parameter(torch.zeros(VOCABULARY, w))
        self.norm = nn.Parameter(torch.ones(w))
        sizes = {"norm1": (w,), "qkv": (w + 2 * kv, w), "o": (w, w), "norm2": (w,)}
        sizes |= {"gate_up": (2 * shape.inner, w), "down": (w, shape.inner)}
        self.layers = nn.ModuleList(
            nn.ParameterDict(
                {name: nn.Parameter(torch.zeros(size)) for name, size in sizes.items()}
            )
            for _ in range(shape.layers)
        )
        self.run = partial(layer_of_rows, shape)
        self._angles: tuple[Tensor, Tensor] | None = None

    def angles(self, length: int) -> tuple[Tensor, Tensor]:
        """Cosines and sines of the positions."""
        have = self._angles
        if have is None or len(have[0]) < length or have[0].device != self.words.device:
            half = self.shape.head_width // 2
            with torch.inference_mode(False):  # the next to ask may be learning
                steps = self.base ** (-torch.arange(half, dtype=torch.float64) / half)
                turns = torch.arange(max(length, 8192), dtype=torch.float64)[:, None] * steps
                self._angles = have = (turns.cos().to(self.words), turns.sin().to(self.words))
        return have[0][:length], have[1][:length]

    def forward(self, words: Tensor) -> Tensor:
        """The scores of the next word at each position."""
        x = F.embedding(words, self.words)
        cos, sin = self.angles(words.shape[1])
        for layer in self.layers:
            x = self.run(
                x,
                cos,
                sin,
                layer["norm1"],
                layer["qkv"],
                layer["o"],
                layer["norm2"],
                layer["gate_up"],
                layer["down"],
            )
        return F.linear(F.rms_norm(x, (x.shape[-1],), self.norm, 1e-5), self.words)


class Memory:
    """What a reader remembers of the words before, for reading a few at a time."""

    def __init__(self, reader: Reader, length: int) -> None:
        shape, weight = reader.shape, reader.words
        self.reader = reader
        length = -(-length // 64) * 64
        self.keys = weight.new_zeros(shape.layers, shape.pairs, length, shape.head_width)
        self.values = torch.zeros_like(self.keys)
        self.places = torch.arange(length, device=weight.device)
        self.angles = reader.angles(length)

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def read(self, words: Tensor, place: int, temperature: float = 0.0) -> Tensor:
        """A next word after each of these, the first of which stands at `place`.

        The likeliest, or one drawn by chance. What was read there before is forgotten.
        """
        reader, shape = self.reader, self.reader.shape
        count, w, size, pairs = len(words), shape.width, shape.head_width, shape.pairs
        end = place + count
        until = -(-end // 64) * 64
        cos, sin = (angle[place:end] for angle in self.angles)
        later = self.places[:until] > self.places[place:end, None]
        hidden = cos.new_zeros(later.shape).masked_fill(later, -torch.inf)
        x = F.embedding(words, reader.words)
        for index, layer in enumerate(reader.layers):
            h = F.rms_norm(x, (w,), layer["norm1"], 1e-5)
            q, k, v = F.linear(h, layer["qkv"]).split((w, pairs * size, pairs * size), dim=-1)
            q = _rotate(q.view(count, -1, size).transpose(0, 1), cos, sin)
            k = _rotate(k.view(count, pairs, size).transpose(0, 1), cos, sin)
            self.keys[index, :, place:end] = k
            self.values[index, :, place:end] = v.view(count, pairs, size).transpose(0, 1)
            k, v = (
                kept[index, None, :, :until].repeat_interleave(shape.heads // pairs, dim=1)
                for kept in (self.keys, self.values)
            )
            with sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]):
                y = F.scaled_dot_product_attention(q[None], k, v, attn_mask=hidden)
            x = x + F.linear(y[0].transpose(0, 1).reshape(count, w), layer["o"])
            h = F.linear(F.rms_norm(x, (w,), layer["norm2"], 1e-5), layer["gate_up"])
            gate, up = h.chunk(2, dim=-1)
            x = x + F.linear(F.silu(gate) * up, layer["down"])
        scores = F.linear(F.rms_norm(x, (w,), reader.norm, 1e-5), reader.words).float()
        if temperature:
            scores -= temperature * torch.empty_like(scores).exponential_().log()
        return scores.argmax(-1)


def use_attention(kernel: str) -> None:
    """Turns to one attention kernel; `any` leaves the choice to the library."""
    global REPEATED  # noqa: PLW0603  the compiled layer reads it
    REPEATED = kernel == "any"
    torch.backends.cuda.enable_flash_sdp(kernel != "cudnn")
    torch.backends.cuda.enable_cudnn_sdp(kernel != "flash")
    torch.backends.cuda.enable_mem_efficient_sdp(kernel == "any")
    torch.backends.cuda.enable_math_sdp(kernel == "any")


def choose_attention(device: str) -> str:
    """Turns to the fastest kernel that runs here: cuDNN's, where there is a choice."""
    for kernel in ("cudnn", "flash") if device == "cuda" else ():
        use_attention(kernel)
        try:
            q, k = (torch.randn(1, n, 64, 64, device=device, dtype=torch.bfloat16) for n in (9, 3))
            q.requires_grad_()
            y = F.scaled_dot_product_attention(q, k, k, is_causal=True, enable_gqa=True)
            y.sum().backward()
        except RuntimeError:
            continue
        return kernel
    use_attention("any")
    return "any"


_COMPILED: list[Any] = []


def compiled_block() -> Any:
    """The layer, compiled once for all layers."""
    if not _COMPILED:
        torch._dynamo.config.recompile_limit = 64
        _COMPILED.append(torch.compile(layer_of_rows, dynamic=False))
    return _COMPILED[0]
