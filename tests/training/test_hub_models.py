"""Models of the Hub are trained further as they are, wholly or by low-rank adaptation."""

from __future__ import annotations

import json
import subprocess
import warnings
from pathlib import Path
from typing import Any

import pytest
import transformers

from tests.hub.fixtures import hub, hub_server
from tests.hub.server import LocalHub
from tests.model.tiny_models import byte_level_tokenizer
from tests.sampling import some_of
from tests.training.small import dataset, generated, smallest, write_recipe

__all__ = ["hub", "hub_server"]

CONTEXT = 4096
CHAT = "{% for m in messages %}<s>{{ m.content }}</s>{% endfor %}"
UPLOAD = """
import sys
from huggingface_hub import HfApi
for name in ("gpt2", "qwen3"):
    HfApi().create_repo(f"verilocc/{name}")
    HfApi().upload_folder(repo_id=f"verilocc/{name}", folder_path=f"{sys.argv[1]}/{name}")
"""
COMMANDS = """
import json, sys
from verilocc_bench.cli import main
for arguments in json.loads(sys.argv[1]):
    status = main(arguments)
    if status:
        sys.exit(status)
"""


def save(folder: Path, configuration: Any, chat: str | None) -> None:
    """A random model with a byte-level tokenizer."""
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=byte_level_tokenizer(), bos_token="<s>", eos_token="</s>"
    )
    if chat is not None:
        tokenizer.chat_template = chat
    configuration.vocab_size = len(tokenizer) + 5  # as many have, to round it up
    transformers.set_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network = transformers.AutoModelForCausalLM.from_config(configuration)
        network.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders `gpt2` and `qwen3`."""
    root = tmp_path_factory.mktemp("models")
    own = {"bos_token_id": 1, "eos_token_id": 2}
    gpt2 = transformers.GPT2Config(n_embd=16, n_layer=1, n_head=2, n_positions=CONTEXT, **own)
    qwen3 = transformers.Qwen3Config(
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        max_position_embeddings=CONTEXT,
        **own,
    )
    save(root / "gpt2", gpt2, None)
    save(root / "qwen3", qwen3, CHAT)
    return root


@pytest.fixture
def client(hub: LocalHub, tmp_path: Path) -> Any:
    """Runs commands of ours in a fresh process."""

    def run(*commands: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
        arguments = json.dumps(commands)
        return hub.python(tmp_path / "home", "-c", COMMANDS, arguments, **variables)

    return run


@pytest.fixture
def uploaded(hub: LocalHub, models: Path, tmp_path: Path) -> None:
    """The models are on the Hub, where alone the client finds them."""
    done = hub.python(tmp_path / "home", "-c", UPLOAD, str(models))
    assert done.returncode == 0, done.stderr[-2000:]


def recipes(folder: Path) -> tuple[Path, Path]:
    """The whole model on `window`, and its low-rank adaptation on `whole`."""
    training = {
        "steps": 3,
        "batch_tokens": 2048,
        "maximum_tokens": CONTEXT,
        "learning_rate": 0.01,
        "warmup_steps": 1,
        "save_steps": 2,
        "threads": 1,
    }
    window = [{"format": "window", "label": "compiler", "functions": 2}]
    whole = [{"format": "whole", "label": "compiler", "functions": 2}]
    lora = {"pretrained": "verilocc/other", "lora": {"rank": 2, "alpha": 4}}
    return (
        write_recipe(folder / "full.yaml", sources=window, training=training),
        write_recipe(folder / "lora.yaml", sources=whole, training=training, model=lora),
    )


@pytest.mark.usefixtures("uploaded")
@pytest.mark.parametrize("name", some_of(["qwen3", "gpt2"]))
def test_a_model_of_the_hub_is_trained_further(
    name: str, client: Any, models: Path, tmp_path: Path
) -> None:
    full, lora = recipes(tmp_path)
    rows = dataset(tmp_path / "rows", generated(6))
    kernels = dataset(tmp_path / "kernels", smallest(1))
    base = ["--base", f"verilocc/{name}", "--dataset", str(rows), "-o"]
    scored = ["evaluate", "--dataset", str(kernels), "--decoding", "constrained", "--model"]
    done = client(
        ["train", str(full), *base, str(tmp_path / "full")],
        ["train", str(lora), *base, str(tmp_path / "lora")],
        [*scored, str(tmp_path / "full"), "--output-path", str(tmp_path / "results")],
    )
    assert done.returncode == 0, done.stderr[-3000:]
    before = transformers.AutoModelForCausalLM.from_pretrained(models / name).state_dict()
    for kind, style in (("full", "window"), ("lora", "whole")):
        folder = tmp_path / kind
        assert not (folder / "adapter_config.json").exists()
        found = transformers.AutoModelForCausalLM.from_pretrained(folder, local_files_only=True)
        advice = {"prompt_format": style, "sampling": "greedy"}
        assert found.config.verilocc_bench == advice
        after = found.state_dict()
        assert after.keys() == before.keys()
        changed = {key for key in after if not after[key].equal(before[key])}
        assert changed
        if kind == "lora":  # embeddings and norms are not adapted
            assert all(after[key].ndim == 2 for key in changed)
        told = json.loads((folder / "run.json").read_text())
        assert told["base"]["name"] == f"verilocc/{name}"
        assert len(told["base"]["revision"]) == 40
    (path,) = (tmp_path / "results").rglob("results.json")
    assert [kernel["valid"] for kernel in json.loads(path.read_text())["kernels"]] == [1]


def test_a_model_that_is_not_there(client: Any, tmp_path: Path) -> None:
    full, _ = recipes(tmp_path)
    options = ["--base", "verilocc/nothing", "--dataset", "mini", "-o", str(tmp_path / "run")]
    done = client(["train", str(full), *options])
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("verilocc-bench train: verilocc/nothing: no such folder")
    assert not (tmp_path / "run").exists()
