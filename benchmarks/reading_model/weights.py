"""Cuts pretrained weights into three parts, blocks of 4 bits as they are in the source.

The embeddings of the old vocabulary stay behind, but for some thousand words of letters, from which
the words of the conversation begin.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from gguf import GGUFReader, dequantize  # type: ignore[import-not-found]
from safetensors.numpy import save_file

NAMES = {
    "attn_q": "q",
    "attn_k": "k",
    "attn_v": "v",
    "attn_output": "o",
    "ffn_gate": "gate",
    "ffn_up": "up",
    "ffn_down": "down",
    "attn_norm": "norm1",
    "ffn_norm": "norm2",
}
LAYERS = 10
"""Layers a part."""
WORDS = 2048
"""Old words whose embeddings are kept."""


def main(source: str, out: Path) -> None:
    """Writes weights_0.safetensors to weights_2.safetensors."""
    reader = GGUFReader(source)
    parts: list[dict[str, np.ndarray]] = [{}, {}, {}]
    words = reader.fields["tokenizer.ggml.tokens"].contents()
    plain = [
        i
        for i, word in enumerate(words)
        if word[:1] == "Ġ" and word[1:].isascii() and word[1:].isalpha()
    ]
    chosen = np.array(plain[100 : 100 + WORDS])
    for tensor in reader.tensors:
        pieces = tensor.name.split(".")
        if pieces[0] == "blk":
            name = f"{pieces[1]}.{NAMES[pieces[2]]}"
            part = parts[int(pieces[1]) // LAYERS]
            part[name] = np.ascontiguousarray(tensor.data)
        elif pieces[0] == "output_norm":
            parts[2]["norm"] = np.ascontiguousarray(tensor.data)
        else:
            old = dequantize(tensor.data, tensor.tensor_type)
            parts[2]["words"] = old[chosen].astype(np.float16)
    for index, part in enumerate(parts):
        save_file(part, out / f"weights_{index}.safetensors")
        print({name: (value.dtype, value.shape) for name, value in list(part.items())[:9]})


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
