"""Weights, and how they are kept."""

from __future__ import annotations

import math
import sys
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from benchmarks.reading_model.conversation import INDEX
from benchmarks.reading_model.network import SHAPES, VOCABULARY


def _widened(words: np.ndarray) -> np.ndarray:
    """Embeddings of all words, from an older vocabulary: the new ones are mixed of its names'."""
    old = words[: INDEX["u0"]]  # the rows above filled it up
    names = old[INDEX["n0"] : INDEX["n1023"]]
    mean = names.mean(0)
    pairs = np.random.default_rng(0).integers(len(names), size=(2, VOCABULARY - len(old)))
    mixed = mean + (names[pairs] - mean).sum(0) / math.sqrt(2)
    return np.concatenate((old, mixed), dtype=np.float32)


STEP = 0.55
"""Of the whole numbers that stand for weights in start.safetensors, in standard deviations."""


def squeeze(state: Mapping[str, Tensor], path: Path) -> None:
    """Writes a state as whole numbers a row, entropy-coded: about 3 bits a weight."""
    parts: dict[str, Tensor] = {}
    for name, value in state.items():
        if name == "words" or value.dim() < 2:
            parts[name] = value.to(torch.bfloat16)
        else:
            scale = (value.float().std(1, keepdim=True) * STEP).half()
            whole = (value.float() / scale.float()).round().clamp(-127, 127).to(torch.int8)
            coder = zlib.compressobj(9, zlib.DEFLATED, 15, 9, zlib.Z_HUFFMAN_ONLY)
            coded = coder.compress(whole.numpy().tobytes()) + coder.flush()
            parts[name + ":coded"] = torch.frombuffer(bytearray(coded), dtype=torch.uint8)
            parts[name + ":scale"] = scale
    save_file(parts, path)


def squeezed(path: Path) -> dict[str, Tensor]:
    """The state that `squeeze` has written; an older vocabulary is widened to that of now."""
    parts = load_file(path)
    state: dict[str, Tensor] = {}
    for name, value in parts.items():
        if name.endswith(":coded"):
            plain = name.removesuffix(":coded")
            scale = parts[plain + ":scale"].float()
            whole = np.frombuffer(zlib.decompress(value.numpy().tobytes()), np.int8)
            state[plain] = torch.from_numpy(whole.astype(np.float32)).view(len(scale), -1) * scale
        elif not name.endswith(":scale"):
            state[name] = value.float()
    if len(state["words"]) < VOCABULARY:
        state["words"] = torch.from_numpy(_widened(state["words"].numpy()))
    return state


GROUP = 64


def to_4_bits(change: Tensor) -> tuple[Tensor, Tensor]:
    """Groups of 64 numbers as whole ones from -7 to 7, two a byte, with a scale each."""
    groups = change.float().reshape(-1, GROUP)
    most = groups.abs().amax(1, keepdim=True).clamp_min(1e-8)
    best = torch.full_like(most, math.inf)
    scale = most / 7
    for factor in (1.0, 0.9, 0.8, 0.7, 0.6, 0.5):
        trial = (most * factor / 7).half().float().clamp_min(1e-7)
        error = (
            (groups - (groups / trial).round().clamp(-7, 7) * trial).square().sum(1, keepdim=True)
        )
        scale = torch.where(error < best, trial, scale)
        best = torch.minimum(error, best)
    scale = scale.half()
    whole = (groups / scale.float().clamp_min(1e-7)).round().clamp(-7, 7).to(torch.int8) + 8
    whole = whole.to(torch.uint8)
    return whole[:, ::2] | whole[:, 1::2] << 4, scale.squeeze(1)


def from_4_bits(packed: Tensor, scale: Tensor, shape: Sequence[int]) -> Tensor:
    """The numbers that `to_4_bits` has kept."""
    whole = torch.stack((packed & 15, packed >> 4), dim=2).reshape(len(packed), GROUP)
    return ((whole.float() - 8) * scale.float()[:, None]).reshape(*shape)


def keep(
    model: str, state: Mapping[str, Tensor], base: Mapping[str, Tensor] | None, out: Path
) -> None:
    """Writes kept_0 to kept_3: the weights in bfloat16, or their change from the base in 4 bits."""
    parts: list[dict[str, Tensor]] = [{} for _ in range(4)]
    for name, value in state.items():
        layer = int(name.split(".")[1]) if name.startswith("layers.") else -1
        part = parts[layer * 4 // SHAPES[model].layers if layer >= 0 else 1]
        if name == "words":  # in halves, so that no file is too large
            for half, which in zip(value.to(torch.bfloat16).cpu().chunk(2), (1, 3), strict=True):
                parts[which][f"words:{which}"] = half.contiguous()
        elif base is None or value.dim() < 2:
            part[name] = value.to(torch.bfloat16).cpu().contiguous()
        else:
            packed, scale = to_4_bits(value.float() - base[name].to(value.device).float())
            part[name + ":packed"], part[name + ":scale"] = packed.cpu(), scale.cpu()
    for index, part in enumerate(parts):
        save_file(part, out / f"kept_{index}.safetensors", metadata={"model": model})


def kept(folder: Path, base: Mapping[str, Tensor] | None) -> dict[str, Tensor]:
    """The state that `keep` has written."""
    state: dict[str, Tensor] = {}
    halves: dict[str, Tensor] = {}
    for index in range(4):
        part = load_file(folder / f"kept_{index}.safetensors")
        for name, value in part.items():
            if name.endswith(":packed"):
                assert base is not None
                plain = name.removesuffix(":packed")
                change = from_4_bits(value, part[plain + ":scale"], base[plain].shape)
                state[plain] = base[plain] + change
            elif name.startswith("words"):
                halves[name] = value.float()
            elif not name.endswith(":scale"):
                state[name] = value.float()
    state["words"] = torch.cat([halves[name] for name in sorted(halves)])
    return state


if __name__ == "__main__":  # the next run's start.safetensors, of this one's and what came of it
    begin, folder, out = map(Path, sys.argv[1:])
    squeeze(kept(folder, squeezed(begin)), out)
