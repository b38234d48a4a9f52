"""Names of registers as tokens of their own: `%1034` is six tokens of most tokenizers.

Each word begins as the mean of the tokens of which it was made before. It is
trained with the adapter (`network.adapted`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import torch

_NAME = re.compile(r"(?<!\w)(%|[vas]|U?[RP])(\d{1,5})(?!\w)")


def words_of(texts: Iterable[str]) -> list[str]:
    """The names of registers from 0 to the highest of each kind in the texts, sorted."""
    highest: dict[str, int] = {}
    for text in texts:
        for kind, number in _NAME.findall(text):
            highest[kind] = max(highest.get(kind, 0), int(number))
    return [f"{kind}{n}" for kind, last in sorted(highest.items()) for n in range(last + 1)]


def add_words(network: Any, tokenizer: Any, words: Iterable[str]) -> list[int]:
    """Adds the words that are no tokens yet to both; the numbers of the new tokens."""
    from transformers import AddedToken

    known = tokenizer.get_vocab()
    new = [word for word in words if word not in known]
    pieces = [tokenizer(word, add_special_tokens=False)["input_ids"] for word in new]
    tokenizer.add_tokens([AddedToken(word, single_word=True, normalized=False) for word in new])
    numbers = [int(number) for number in tokenizer.convert_tokens_to_ids(new)]
    layers = {id(each.weight): each.weight for each in _word_layers(network)}
    if len(tokenizer) > len(next(iter(layers.values()))):
        network.resize_token_embeddings(len(tokenizer), mean_resizing=False)
        layers = {id(each.weight): each.weight for each in _word_layers(network)}
    with torch.no_grad():
        for weight in layers.values():
            for number, made_of in zip(numbers, pieces, strict=True):
                weight[number] = weight[made_of].mean(dim=0)
    return numbers


def word_layer_names(network: Any) -> list[str]:
    """The names of the layers that have a row for each token, without a tied repetition."""
    layers = _word_layers(network)
    if len(layers) == 2 and layers[0].weight is layers[1].weight:
        layers = layers[:1]
    names = {id(module): name for name, module in network.named_modules()}
    return [names[id(layer)] for layer in layers]


def _word_layers(network: Any) -> list[Any]:
    layers = (network.get_input_embeddings(), network.get_output_embeddings())
    return [layer for layer in layers if layer is not None]
