"""A run as a folder for a machine without this package and without a network.

It holds `launcher.py` (needs torch, transformers and peft), `settings.json`,
`shards/*.npz`, and `base/`: weights in bfloat16 and the tokenizer, own words
among them. What comes back is the folder `adapter`.
"""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import numpy as np
import torch
import transformers

from verilocc_bench.dataset import load_rows
from verilocc_bench.errors import InputError
from verilocc_bench.files import write_atomically
from verilocc_bench.training.network import adapted, advice, begin, low_rank_options
from verilocc_bench.training.recipe import Recipe
from verilocc_bench.training.run import DatasetRequest, learnt_of
from verilocc_bench.training.run_folder import claim_folder, data_source, versions

ADAPTER_BYTES = 40_000_000
SHARD_TOKENS = 4_000_000
BASE_SHARD = "60MB"


def export(recipe: Recipe, data: DatasetRequest, folder: Path) -> Path:
    """Writes the folder of a run by a recipe with `lora`.

    Raises InputError if the adapter would have more than 40 MB.
    """
    if recipe.model.lora is None or recipe.reward is not None:
        raise InputError("--export: expected a recipe with lora, and without reward")
    rows = load_rows(data.dataset, split=recipe.split, revision=data.revision).rows
    transformers.set_seed(recipe.seed)
    network, tokenizer, words = begin(recipe, rows)
    told = {
        "recipe": recipe.as_json(),
        "dataset": data_source(data.dataset, data.revision, rows),
        "versions": versions(),
    }
    claim_folder(folder, told)
    learnt = learnt_of(recipe, (network, tokenizer), rows, data, folder)
    shards = folder / "shards"
    shards.mkdir(exist_ok=True)
    shard_of = np.cumsum(np.diff(learnt.examples.starts)) // SHARD_TOKENS
    for number, shard in enumerate(np.unique(shard_of)):
        learnt.examples.take(np.flatnonzero(shard_of == shard)).save(shards / f"{number:04}.npz")
    network.to(torch.bfloat16).save_pretrained(folder / "base", max_shard_size=BASE_SHARD)
    tokenizer.save_pretrained(folder / "base")
    settings = {
        "training": recipe.as_json()["training"],
        "seed": recipe.seed,
        "attention": recipe.model.attention,
        "lora": low_rank_options(recipe, network, words),
        "advice": advice(recipe),
    }
    changed = adapted(recipe, network, words)
    size = 2 * sum(each.numel() for each in changed.parameters() if each.requires_grad)
    if size > ADAPTER_BYTES:
        most = ADAPTER_BYTES // 1_000_000
        raise InputError(f"lora: the adapter has {size / 1e6:.0f} MB, at most {most} may come back")
    launcher = files("verilocc_bench.training").joinpath("launcher.py").read_text()
    write_atomically(folder / "launcher.py", launcher)
    write_atomically(folder / "settings.json", json.dumps(settings, indent=2) + "\n")
    return folder
