"""SmolLM2 with the change that the reference model has learnt, which reads words by their numbers.

The change is a file of safetensors: of each kind of matrix two factors of low rank, all layers in
one, and the words, as whole numbers with scales, entropy-coded; and the norms.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from transformers import AttentionInterface, Cache
from transformers.cache_utils import DynamicLayer

from verilocc_bench.errors import InputError
from verilocc_bench.model.reading.conversation import WORDS
from verilocc_bench.model.transformers_model.loading import device_of, load_module
from verilocc_bench.settings.language_model import LocalModelSettings

BASE = "smollm2"
ANGLES = 500_000.0
"""The base of the positions' angles."""
LONGEST = 40_960
"""Words of a conversation, on which it has learnt."""
LEAST_ROOM = LONGEST
"""Words for which a cache has room. All have one size, so that freed memory fits the next."""
MATRICES = {
    "qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "o": ("self_attn.o_proj",),
    "gate_up": ("mlp.gate_proj", "mlp.up_proj"),
    "down": ("mlp.down_proj",),
}

ATTENTION = "verilocc-bench-two-parts"


def attend(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    *_: Any,
    scaling: float,
    **__: Any,
) -> tuple[torch.Tensor, None]:
    """Attention of the last words to all before them, on a CPU.

    Words that were read before need no mask, and the last ones are causal among themselves. PyTorch
    is faster on these two parts than on the whole with a mask. `query` has the shape (1, heads,
    last words, numbers), `key` and `value` have (1, groups of heads, all words, numbers).
    """
    flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    count = query.shape[2]
    read, groups = key.shape[2] - count, module.num_key_value_groups
    last = [part[:, :, read:].repeat_interleave(groups, 1) for part in (key, value)]
    found, sums = flash(query, *last, 0.0, True, scale=scaling)
    if read:
        # The heads of a group share keys: their words stand one after another.
        together = query.reshape(1, key.shape[1], groups * count, -1)
        before, sums_before = flash(together, key[:, :, :read], value[:, :, :read], scale=scaling)
        share = torch.sigmoid(sums_before.reshape(sums.shape) - sums)[..., None]
        found = torch.lerp(found.float(), before.reshape(query.shape).float(), share)
    return found.transpose(1, 2).to(query.dtype).contiguous(), None


AttentionInterface.register(ATTENTION, attend)


class RoomyLayer(DynamicLayer):  # type: ignore[misc]
    """A layer's keys and values, with room for more: few words are added very many times.

    Transformers' own copies all that was read before whenever a word is added.
    """

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Adds what was read; all keys and values."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self.room = key_states.new_empty(2, *key_states.shape[:2], 0, key_states.shape[3])
        begin = self.get_seq_length()
        end = begin + key_states.shape[2]
        if end > self.room.shape[3]:
            size = list(self.room.shape)
            size[3] = max(LEAST_ROOM, 2 * end)
            larger = self.room.new_empty(size)
            larger[:, :, :, :begin] = self.room[:, :, :, :begin]
            self.room = larger
        self.room[0, :, :, begin:end] = key_states
        self.room[1, :, :, begin:end] = value_states
        self.keys, self.values = self.room[:, :, :, :end]
        return self.keys, self.values


class ReadingNetwork:
    """A causal language model of transformers over the words of the conversation."""

    def __init__(self, module: Any, device: torch.device) -> None:
        self._module, self._device = module, device
        if device.type == "cpu":
            module.set_attn_implementation(ATTENTION)
        self._cache = Cache(layer_class_to_replicate=RoomyLayer)

    @property
    def dtype(self) -> str:
        """The numbers it computes with, such as `bfloat16`."""
        return str(self._module.dtype).removeprefix("torch.")

    def begin(self) -> None:
        """Forgets all."""
        self._cache = Cache(layer_class_to_replicate=RoomyLayer)

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def read(
        self, words: Sequence[int], place: int, draw: Any = None, banned: Sequence[int] = ()
    ) -> list[int]:
        """A next word after each of these, the first of which stands at `place`.

        It is the likeliest that is not banned, or drawn by `draw`. What was read there before
        is forgotten.
        """
        if (more := self._cache.get_seq_length() - place) > 0:
            self._cache.crop(-more)
        tokens = torch.tensor([words], device=self._device)
        scores = self._module(tokens, past_key_values=self._cache, use_cache=True).logits[0].float()
        if draw is not None:
            scores = scores + draw(scores)
        scores[:, list(banned)] = -torch.inf
        numbers: list[int] = scores.argmax(-1).tolist()
        return numbers


def chance(temperature: float, seed: int) -> Any:
    """What makes the likeliest word one drawn by chance, at this temperature."""
    generator = torch.Generator().manual_seed(seed)

    def draw(scores: torch.Tensor) -> torch.Tensor:
        noise = torch.empty(scores.shape).exponential_(generator=generator)
        return (-temperature * noise.log()).to(scores.device)

    return draw


def has_matrix_unit() -> bool:
    """Whether this processor multiplies matrices of bfloat16 (AMX)."""
    # PyTorch 2.9 and before do not tell.
    tell: Any = getattr(torch.cpu, "get_capabilities", dict)
    return bool(tell().get("amx_bf16", False))


def load_network(path: Path, settings: LocalModelSettings) -> ReadingNetwork:
    """The base with the change of a file. Raises InputError for a file of another form.

    The dtype `auto` is bfloat16, in which it has learnt, except on a processor that multiplies no
    matrices of it: there float32 is faster.
    """
    if settings.dtype == "auto":
        slow = device_of(settings.device).type == "cpu" and not has_matrix_unit()
        settings = replace(settings, dtype="float32" if slow else "bfloat16")
    base = load_module(BASE, settings)
    try:
        module = with_change(base, load_file(path))
    except (KeyError, RuntimeError, ValueError, zlib.error) as error:
        raise InputError(f"no change of {BASE}: {error}", source=str(path)) from error
    return ReadingNetwork(module, module.device)


@torch.no_grad()  # type: ignore[untyped-decorator]
def with_change(base: Any, parts: dict[str, torch.Tensor]) -> Any:
    """A network that is the base with a change, and reads the words of the conversation."""
    words, norms = _whole(parts, "words"), parts["norms"].float()
    if len(words) < len(WORDS):
        raise ValueError(f"{len(words)} words of {len(WORDS)}")
    configuration = deepcopy(base.config)
    configuration.vocab_size = len(words)
    configuration.max_position_embeddings = LONGEST
    configuration.rope_parameters = {"rope_type": "default", "rope_theta": ANGLES}
    device, dtype = base.device, base.dtype
    base.set_input_embeddings(torch.nn.Embedding(*words.shape))
    base.tie_weights()
    with torch.device("meta"):
        module = type(base)(configuration)
    module.load_state_dict(base.state_dict(), strict=False, assign=True)
    module.tie_weights()
    module.get_input_embeddings().weight.copy_(words)
    for kind, names in MATRICES.items():
        changes = torch.bmm(_whole(parts, kind + ".out"), _whole(parts, kind + ".in").mT)
        for layer, change in zip(module.model.layers, changes, strict=True):
            matrices = [layer.get_submodule(name).weight for name in names]
            of_each = change.split([len(matrix) for matrix in matrices])
            for matrix, part in zip(matrices, of_each, strict=True):
                matrix.add_(part.to(device, dtype))
    for index, layer in enumerate(module.model.layers):
        layer.input_layernorm.weight.copy_(norms[2 * index])
        layer.post_attention_layernorm.weight.copy_(norms[2 * index + 1])
    module.model.norm.weight.copy_(norms[-1])
    module.model.rotary_emb = type(module.model.rotary_emb)(configuration).to(device)
    return module.to(device, dtype).eval()


def _whole(parts: dict[str, torch.Tensor], name: str) -> torch.Tensor:
    coded = zlib.decompress(bytes(parts[name + ":coded"].tolist()))
    numbers = torch.frombuffer(bytearray(coded), dtype=torch.int8).float()
    numbers = numbers.view(*parts[name + ":shape"].tolist())
    return numbers * parts[name + ":scale"].float().expand_as(numbers)
