"""Runs of TRL's trainers: the same bytes whether interrupted or not; and what comes of them."""

from __future__ import annotations

import json
import runpy
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from tests.command_line import CommandLine
from tests.training.small import base_model, dataset, document, generated, recipe, write_recipe
from verilocc_bench.dataset.rows import BEST_COLUMNS
from verilocc_bench.errors import InputError
from verilocc_bench.training.examples import Examples
from verilocc_bench.training.network import begin, check_packing
from verilocc_bench.training.own_words import words_of
from verilocc_bench.training.recipe import ModelRecipe
from verilocc_bench.training.run import DatasetRequest, train
from verilocc_bench.training.run_folder import data_source
from verilocc_bench.training.trainers import Learnt, Setting, answer_trainer

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

MODEL = ("model.safetensors", "config.json", "tokenizer.json", "adapter/adapter_model.safetensors")
LOW_RANK = {"lora": {"rank": 2}, "own_words": True}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> DatasetRequest:
    folder = dataset(tmp_path_factory.mktemp("rows"), generated(6))
    return DatasetRequest(str(folder), None, 1)


def low_rank(folder: Path, **changes: Any) -> Any:
    return recipe(folder, model={"pretrained": base_model(), **LOW_RANK}, **changes)


@pytest.fixture(scope="module")
def finished(rows: DatasetRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was not interrupted."""
    home = tmp_path_factory.mktemp("finished")
    return train(low_rank(home), rows, home / "run")


def losses(folder: Path) -> list[float]:
    entries = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [entry["loss"] for entry in entries if "loss" in entry]


def test_an_interrupted_run_goes_on_to_the_same_weights(
    finished: Path, rows: DatasetRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trl import SFTTrainer

    plain, steps = SFTTrainer.training_step, []

    def stopping(*arguments: Any, **options: Any) -> Any:
        steps.append(1)
        if len(steps) == 4:
            raise KeyboardInterrupt
        return plain(*arguments, **options)

    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(SFTTrainer, "training_step", stopping)
        with pytest.raises(KeyboardInterrupt):
            train(low_rank(tmp_path), rows, folder)
    assert [path.name for path in (folder / "checkpoints").glob("checkpoint-*")] == ["checkpoint-2"]
    assert not (folder / "training.json").exists()
    (folder / "checkpoints" / "checkpoint-3").mkdir()  # killed while it was written
    train(low_rank(tmp_path), rows, folder)
    for name in MODEL:
        assert (folder / name).read_bytes() == (finished / name).read_bytes(), name
    assert losses(folder) == losses(finished)
    told = json.loads((folder / "training.json").read_text())
    assert told["measured"]["resumed"] is True
    assert not (folder / "checkpoints").exists()
    with pytest.raises(InputError, match="a run of another recipe"):
        train(low_rank(tmp_path, seed=1), rows, folder)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="not empty"):
        train(low_rank(tmp_path), rows, tmp_path / "other")


def test_the_result_is_a_plain_model_with_its_own_words(
    finished: Path, rows: DatasetRequest
) -> None:
    before = {p: p.stat().st_mtime_ns for p in finished.rglob("*") if p.is_file()}
    found = transformers.AutoModelForCausalLM.from_pretrained(finished, local_files_only=True)
    advice = {"prompt_format": "window", "sampling": "greedy", "window_registers": 4}
    assert found.config.verilocc_bench == advice
    told = json.loads((finished / "training.json").read_text())
    assert told["measured"]["parameters"] == found.num_parameters()
    assert told["measured"]["left_out"] >= 0
    tokenizer = transformers.AutoTokenizer.from_pretrained(finished, local_files_only=True)
    own = words_of(row.normalized for row in generated(6))
    assert len(own) > 20
    assert all(len(tokenizer(word)["input_ids"]) == 1 for word in own)
    text = f"{own[1]}, {own[2]}:{own[3]} x{own[4]}"
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
    train(low_rank(finished.parent), rows, finished)
    assert {p: p.stat().st_mtime_ns for p in finished.rglob("*") if p.is_file()} == before


def test_a_new_word_begins_as_the_mean_of_its_pieces(tmp_path: Path) -> None:
    wanted = low_rank(tmp_path)
    plain, pieces, none = begin(replace(wanted, model=ModelRecipe(base_model())), ())
    network, tokenizer, new = begin(wanted, generated(2))
    assert none == []
    for number in new[:5]:
        word = tokenizer.convert_ids_to_tokens(number)
        made_of = plain.get_input_embeddings().weight[pieces(word)["input_ids"]]
        assert torch.allclose(network.get_input_embeddings().weight[number], made_of.mean(dim=0))


def test_packed_examples_do_not_see_each_other(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    lengths = (9, 5, 7)
    tokens = [torch.randint(5, 300, (n,), generator=generator).tolist() for n in lengths]
    flat = [token for each in tokens for token in each]
    starts = [0, 9, 14, 21]
    arrays = [torch.tensor(each).numpy() for each in (flat, flat, starts, 0)]
    wanted = recipe(tmp_path, training={"steps": 1, "maximum_tokens": 64, "threads": 1})
    network, tokenizer, _ = begin(wanted, ())
    network.eval()
    learnt = Learnt(Examples(*arrays), None)
    trainer = answer_trainer(Setting(wanted, network, tokenizer, tmp_path / "steps"), learnt)
    (row,) = trainer.get_train_dataloader()
    assert row["input_ids"].shape[-1] == 21
    with torch.no_grad():
        packed = float(network(**{k: v for k, v in row.items() if k != "seq_lengths"}).loss)
        alone = [
            float(network(input_ids=torch.tensor([t]), labels=torch.tensor([t])).loss)
            for t in tokens
        ]
    expected = sum(loss * (n - 1) for loss, n in zip(alone, lengths, strict=True)) / (21 - 3)
    assert packed == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("kind", ["OPTConfig", "BloomConfig"])
def test_a_model_that_cannot_pack_is_refused(kind: str) -> None:
    torch.manual_seed(0)
    own = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "n_head": 2}
    configuration = getattr(transformers, kind)(
        vocab_size=50, ffn_dim=32, word_embed_proj_dim=16, **own
    )
    network = transformers.AutoModelForCausalLM.from_config(configuration)
    with pytest.raises(InputError, match=r"a/b: training: .*'packing: false'"):
        check_packing(network, "a/b")


def test_the_loss_falls_on_shards(rows: DatasetRequest, tmp_path: Path) -> None:
    shards = tmp_path / "shards"
    shards.mkdir()
    tokens = torch.arange(5, 45).repeat(4).numpy()
    starts = torch.tensor([0, 80, 160]).numpy()
    Examples(tokens, tokens, starts, torch.tensor(0).numpy()).save(shards / "0.npz")
    options = {**document()["training"], "steps": 12, "maximum_tokens": 100}
    wanted = recipe(tmp_path, sources=[], shards=str(shards), training=options)
    found = losses(train(wanted, rows, tmp_path / "run"))
    assert found[-1] < 0.8 * found[0]
    Examples(tokens, tokens, starts[:2], torch.tensor(0).numpy()).save(shards / "0.npz")
    with pytest.raises(InputError, match="another recipe, dataset or version"):
        train(wanted, rows, tmp_path / "run")


def test_verdicts_are_rewards(rows: DatasetRequest, tmp_path: Path) -> None:
    said: list[str] = []

    def verdicts(kernels: Any, style: str) -> Any:
        def reward(completions: Any, kernel: Any, **_: Any) -> list[float]:
            said.extend(completions)
            assert set(kernel) <= set(kernels)
            return [float(len(set(each))) for each in completions]

        turns = [{"role": "user", "content": f"{style}?"}]
        return [{"prompt": turns, "kernel": each} for each in kernels], reward

    asked = {"functions": 2, "generations": 2, "maximum_answer_tokens": 4}
    options = {**document()["training"], "steps": 2, "accumulation": 2}
    wanted = recipe(tmp_path, sources=[], reward=asked, training=options)
    folder = train(wanted, rows, tmp_path / "run", verdicts=verdicts)
    assert len(said) == 4
    config = json.loads((folder / "config.json").read_text())
    assert config["verilocc_bench"]["prompt_format"] == "whole"
    few = recipe(tmp_path, sources=[], reward=asked, training=options | {"accumulation": 32})
    with pytest.raises(InputError, match=r"a step asks \d+ kernels, and there are 2"):
        train(few, rows, tmp_path / "few", verdicts=verdicts)


def test_an_export_is_trained_elsewhere(
    rows: DatasetRequest, tmp_path: Path, run: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = {"pretrained": base_model(), **LOW_RANK}
    path, folder = write_recipe(tmp_path / "r.yaml", model=model), tmp_path / "export"
    command = ["train", str(path), "--dataset", rows.dataset, "--export", str(folder)]
    assert "launcher.py --minutes 12" in run(*command).out
    merged, launcher = tmp_path / "merged", str(folder / "launcher.py")
    # Any connection is an error, and this package is not there.
    with monkeypatch.context() as patch:
        patch.setattr("socket.socket.connect", None)
        patch.setattr("socket.getaddrinfo", None)
        absent = ("verilocc_bench", "trl", "datasets")
        for name in (*absent, *(each for each in sys.modules if each.split(".")[0] in absent)):
            patch.setitem(sys.modules, name, None)
        for more in ([], ["--merge", str(merged)]):
            patch.setattr(sys, "argv", [launcher, *more])
            runpy.run_path(launcher, run_name="__main__")
    assert json.loads((folder / "adapter" / "state.json").read_text())["step"] == 4
    base, found = (
        transformers.AutoModelForCausalLM.from_pretrained(place, local_files_only=True)
        for place in (folder / "base", merged)
    )
    changed = {k for k, v in found.state_dict().items() if not v.equal(base.state_dict()[k])}
    assert any("embed" in name for name in changed)
    assert any("q_proj" in name for name in changed)
    assert found.config.verilocc_bench["prompt_format"] == "window"


@pytest.mark.parametrize(
    ("context", "changes", "said"),
    [
        (16, {}, r"maximum_tokens.*reads 16"),
        (4096, {"pretrained": "/nowhere"}, "/nowhere: expected"),
        (4096, {"attention": "none"}, "attention"),
        (4096, {"lora": {"targets": ["no"]}}, "lora: Target"),
    ],
)
def test_what_cannot_be_trained(
    context: int, changes: dict[str, Any], said: str, rows: DatasetRequest, tmp_path: Path
) -> None:
    model = {"pretrained": base_model(context), **changes}
    with pytest.raises(InputError, match=said):
        train(recipe(tmp_path, model=model), rows, tmp_path / "run")


def test_a_dataset_with_other_better_labels_is_another() -> None:
    rows = [replace(row, **dict.fromkeys(BEST_COLUMNS)) for row in generated(3)]
    better = [replace(row, best_registers_used=9) for row in rows]
    plain, told = (data_source("a/b", None, each) for each in (rows, better))
    assert plain.keys() == {"name", "revision", "hash"}
    assert told.pop("best_hash")
    assert told == plain
