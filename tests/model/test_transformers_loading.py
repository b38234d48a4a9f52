from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.command_line import CommandLine
from tests.model.tiny_models import byte_level_tokenizer, load, save_model
from verilocc_bench.errors import InputError, MissingExtraError
from verilocc_bench.model.advice import Advice
from verilocc_bench.model.allocator import language_model_allocator
from verilocc_bench.model.transformers_model import load_transformers_model
from verilocc_bench.settings.allocator import Decoding
from verilocc_bench.settings.language_model import LocalModelSettings, SamplingStrategy

pytestmark = pytest.mark.slow


# Loading


def test_the_revision_is_of_the_files_that_count(folder: Path, copy: Path) -> None:
    first = load(folder).revision
    assert load(copy).revision == first
    assert len(first) == 64
    (copy / "README.md").write_text("nothing")
    assert load(copy).revision == first
    configuration = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(configuration))
    assert load(copy).revision != first


def _without(*names: str) -> Callable[[Path], None]:
    def remove(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return remove


def _pickled(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def _cut_short(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])


def _set(**values: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        configuration = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**configuration, **values}))

    return change


def _write(name: str, text: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).write_text(text)

    return change


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (_without("config.json"), "no config.json"),
        (_without("tokenizer.json"), "no tokenizer"),
        (_without("model.safetensors"), "no weights"),
        (_pickled, "the weights are in pytorch_model.bin: only safetensors"),
        (_cut_short, "cannot load its weights"),
        (_write("config.json", "{"), "config.json cannot be read"),
        (_write("config.json", "[]"), "expected a JSON object"),
        (_write("tokenizer.json", "{}"), "cannot load its tokenizer"),
        (_set(model_type="no_such_architecture"), "cannot load its configuration"),
        (
            _set(model_type="own", auto_map={"AutoConfig": "own.Own"}),
            "runs only with --trust-remote-code",
        ),
        (
            _write("config.json", "[" * 100_000),
            "config.json cannot be read: JSON nested too deeply",
        ),
        (_write("config.json", '{"a": "' + "x" * (5 << 20) + '"}'), "config.json cannot be read"),
        (_set(num_hidden_layers=3), "weights are missing"),
        (_set(num_hidden_layers=1_000_000), "num_hidden_layers: expected at most 10,000"),
        (_set(text_config={"n_layers": 10**12}), "n_layers: expected at most 10,000"),
        (_set(layer_types=["full_attention"] * 20_000), "layer_types: expected at most 10,000"),
        (_set(vocab_size=10**9), "a model of this configuration has .* MiB: expected at most"),
        (_set(intermediate_size=48), "another shape|cannot load its weights"),
        (_set(model_type="t5", is_encoder_decoder=True), "encoder-decoder|cannot load"),
        (_set(hidden_size="many"), "cannot load"),
        (_set(verilocc_bench=["state"]), "verilocc_bench: expected an object"),
        (_set(verilocc_bench={"prompt_format": 1}), "prompt_format: expected a name"),
        (_set(verilocc_bench={"sampling": "best"}), "expected greedy, random, priority"),
        (
            _set(verilocc_bench={"window_registers": 0}),
            "window_registers: expected a number from 1",
        ),
        (_set(verilocc_bench={"window_registers": True}), "window_registers: expected a number"),
    ],
)
def test_a_spoilt_folder_is_one_line(
    copy: Path, spoil: Callable[[Path], None], expected: str
) -> None:
    spoil(copy)
    with pytest.raises(InputError, match=expected) as caught:
        load(copy)
    assert "\n" not in str(caught.value)
    assert str(copy) in str(caught.value)


def test_what_the_model_says_of_itself(folder: Path, copy: Path, run: CommandLine) -> None:
    assert load(folder).advice == Advice()
    told = {"prompt_format": "window", "sampling": "priority", "backtracks": 7, "other": []}
    _set(verilocc_bench=told)(copy)
    assert load(copy).advice == Advice("window", SamplingStrategy.PRIORITY)
    assert "window, the first" in run("prompt", "283d953e61cef95c", "--model", str(copy)).err
    _set(verilocc_bench={"window_registers": 4})(copy)
    assert load(copy).advice == Advice(window_registers=4)
    assert Advice.from_json(Advice(window_registers=4).to_json(), "x") == Advice(window_registers=4)


WINDOW = {"prompt_format": "window"}
GREEDY = {**WINDOW, "sampling": "greedy"}


@pytest.mark.parametrize(
    ("told", "given", "expected"),
    [
        ({}, WINDOW, ("window", 16)),
        ({"window_registers": 4}, WINDOW, ("window", 4)),
        ({"window_registers": 4, **WINDOW}, {}, ("window", 4)),
        ({"window_registers": 4}, {**WINDOW, "window_registers": 2}, ("window", 2)),
        ({"window_registers": 4}, {"prompt_format": "whole"}, ("whole", None)),
        ({"window_registers": 4}, {}, ("whole", None)),
        (GREEDY, {}, ("window", 16, "greedy", "free")),
        (GREEDY, {"prompt_format": "whole"}, ("whole", None, "greedy", "free")),
        (GREEDY, {"strategy": SamplingStrategy.RANDOM}, ("window", 16, "random", "free")),
        (GREEDY, {"decoding": Decoding.CONSTRAINED}, ("window", 16, "greedy", "constrained")),
        (GREEDY, {"decoding": Decoding.GUIDED}, ("window", 16, "random", "guided")),
    ],
)
def test_options_come_before_what_the_model_says(
    copy: Path, told: dict[str, Any], given: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    """Windows are as wide as the option says, else the model, else 16."""
    _set(verilocc_bench=told)(copy)
    options = LocalModelSettings(device="cpu", **given)
    settings = language_model_allocator(str(copy), options).settings
    said = settings.described()
    found = (settings.prompt_format, said.get("window_registers"), said.get("strategy"))
    assert (*found, settings.decoding)[: len(expected)] == expected
    assert settings.window_registers == expected[1]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"dtype": "int8"}, "unknown dtype 'int8'"),
        ({"device": "abacus"}, "device 'abacus' cannot be used"),
        ({"device": "meta"}, "device 'meta' cannot be used"),
        ({"chat": True}, "no chat template"),
        ({"model_revision": "main"}, "a folder has no revisions"),
    ],
)
def test_options_that_do_not_fit(folder: Path, options: dict[str, Any], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        load(folder, **options)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_no_gpu(folder: Path) -> None:
    with pytest.raises(InputError, match="device 'cuda' cannot be used"):
        load(folder, device="cuda")


def test_a_tokenizer_that_is_too_large(copy: Path, tmp_path: Path) -> None:
    other = save_model(tmp_path / "other", byte_level_tokenizer(360))
    shutil.copy(other / "tokenizer.json", copy / "tokenizer.json")
    with pytest.raises(InputError, match=r"the tokenizer has \d+ tokens, but the model knows"):
        load(copy)


def test_names_that_are_no_model(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a folder with a language model"):
        load(tmp_path / "missing")
    with pytest.raises(InputError, match="neither a folder nor a Hub id"):
        load_transformers_model("a/b/c", LocalModelSettings())


def test_an_unreachable_hub_is_one_line(tmp_path: Path) -> None:
    script = (
        "import huggingface_hub.constants\n"
        "from verilocc_bench.errors import InputError\n"
        "from verilocc_bench.model.transformers_model.model_files import find_model_folder\n"
        "for offline in (False, True):\n"
        "    huggingface_hub.constants.HF_HUB_OFFLINE = offline\n"
        "    try:\n        find_model_folder('owner/name', None, False)\n"
        "    except InputError as error:\n        print(error)\n"
    )
    variables = {"HF_HOME": str(tmp_path), "HF_HUB_DISABLE_TELEMETRY": "1"}
    variables["HF_ENDPOINT"] = "http://127.0.0.1:9"
    found = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    said = "owner/name: no such folder, not in the Hub's local cache"
    assert [line[: len(said)] for line in found.stdout.splitlines()] == [said] * 2


def test_a_cached_commit_is_used_offline(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    cache = tmp_path / "hub" / "models--owner--name"
    shutil.copytree(folder, cache / "snapshots" / commit)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    options = LocalModelSettings(model_revision=commit, device="cpu", dtype="float32")
    assert load_transformers_model("owner/name", options).revision == commit


def test_a_missing_extra_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"verilocc-bench\[model\]"):
        load(folder)


def test_a_folder_is_looked_at_before_anything_heavy(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from verilocc_bench.cli import main\n"
        "assert main(['evaluate', '--model', sys.argv[1], '--limit', '1']) == 2\n"
        "assert not {'torch', 'transformers'} & set(sys.modules)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (found.returncode, found.stdout) == (0, ""), found.stderr
    assert f"{tmp_path}: no config.json: not a model of transformers" in found.stderr


def test_loading_is_quiet(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    load(folder)
    assert capfd.readouterr() == ("", "")
