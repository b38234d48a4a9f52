"""Experts' kernels on the Hub: published with a dataset, and loaded as its config `expert`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.dataset_builders.expert_folders import write_expert_dataset
from tests.hub.clients import NAME, command, published, script
from tests.hub.server import LocalHub
from tests.hub.test_load import QUIET
from verilocc_bench.dataset import embedded_path

LOADED = (
    QUIET
    + """
names = datasets.get_dataset_config_names("verilocc/regalloc")
rows, raws = (load_dataset("verilocc/regalloc", name) for name in ("expert", "expert-raw"))
plain = load_dataset("verilocc/regalloc", split="test")
print(json.dumps([names, {split: list(found["id"]) for split, found in rows.items()},
                  list(raws["test"]["id"]), len(plain)]))
"""
)

TRAINED = """
from verilocc_bench.dataset import load_raw_row, load_rows
from verilocc_bench.errors import InputError
found = load_rows("verilocc/regalloc:expert")
print(len(found.rows), load_raw_row("verilocc/regalloc:expert", found.rows[0].id).format)
try:
    load_rows("verilocc/regalloc:expert", split="train")
except InputError as error:
    print(error)
"""


def test_the_config_expert(
    cuda: None, hub: LocalHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "dataset"
    shutil.copytree(embedded_path(), folder)
    write_expert_dataset(folder / "expert", monkeypatch)
    published(hub, tmp_path, folder)
    names, rows, raws, plain = json.loads(script(hub, tmp_path / "a", LOADED))
    assert {"default", "gemm", "mha", "expert", "expert-raw"} <= set(names)
    assert list(rows) == ["test"]
    assert len(rows["test"]) == 3
    assert sorted(rows["test"]) == sorted(raws)
    assert plain > 3, "the default config has our own kernels alone"
    said = script(hub, tmp_path / "b", TRAINED).splitlines()
    assert said[0] == "3 cubin"
    assert "there is no split 'train' of the config 'expert'" in said[1]
    arguments = ["--dataset", f"{NAME}:expert", "--model", "compiler", "--json"]
    results = json.loads(command(hub, tmp_path / "c", "evaluate", *arguments))["results"]
    assert results["overall"]["pass@1"] == 1
