"""Both layouts of rows, and the config `chat`, as `datasets` and TRL see them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyarrow import parquet

from dataset_builders.publishing.contents import is_owned
from dataset_builders.release.card import card_configs
from tests.model.tiny_models import save_model
from verilocc_bench.dataset import Row, embedded_path, load_rows, read_parquet, write_parquet
from verilocc_bench.dataset.parquet import JSON_COLUMNS
from verilocc_bench.model.prompts import get_prompt_format
from verilocc_bench.model.prompts.conversation import messages
from verilocc_bench.views.chat import chat_file, write_chat
from verilocc_bench.views.view_rows import problem_of

ROWS = [
    min(load_rows(f"mini{config}").rows, key=lambda row: (row.arch != arch, row.n_instructions))
    for arch, config in (("gfx90a", ""), ("sm_80", ""), ("sm_90", ":sm_90"))
]
TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


@pytest.fixture(name="folder", scope="module")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One row an architecture, in the splits `train` and `test`."""
    folder = tmp_path_factory.mktemp("dataset")
    for row in ROWS:
        for split in ("train", "test"):
            place = Path("data", row.arch, row.family, f"{split}-00000-of-00001.parquet")
            write_parquet([row], folder / place)
            chat = chat_file(place)
            assert (chat is not None) == (split == "train" and row.arch != "sm_90")
            if chat is not None:
                write_chat([row], folder / chat)
                assert is_owned(chat.as_posix())  # so it is published
    counts = Counter(("data", r.arch, r.family, s) for r in ROWS for s in ("train", "test"))
    head = yaml.safe_dump({"configs": [c for c in card_configs(counts) if "raw" not in c.values()]})
    (folder / "README.md").write_text(f"---\n{head}---\n")
    return folder


def columns_and_rows(folder: Path, configs: Sequence[str], cache: Path) -> tuple[Any, Any]:
    """Kinds of columns, and rows, by config, as `datasets` loads and streams them."""
    import datasets

    kinds, rows = {}, {}
    for config in configs:
        found = datasets.load_dataset(str(folder), config, cache_dir=str(cache))
        streamed = datasets.load_dataset(str(folder), config, cache_dir=str(cache), streaming=True)
        rows[config] = {split: list(part) for split, part in found.items()}
        assert rows[config] == {split: list(part) for split, part in streamed.items()}
        first = next(iter(found.values()))
        kinds[config] = {name: type(kind).__name__ for name, kind in first.features.items()}
    return kinds, rows


@pytest.fixture(scope="module")
def loaded(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """Kinds of columns, and rows, by config, of all that the folder has."""
    import datasets

    names = datasets.get_dataset_config_names(str(folder))
    return columns_and_rows(folder, names, tmp_path_factory.mktemp("cache"))


def as_texts(row: dict[str, Any]) -> dict[str, Any]:
    """The row with objects of its JSON columns as canonical texts."""
    return {
        name: json.dumps(value, separators=(",", ":"))
        if name in JSON_COLUMNS and isinstance(value, dict)
        else value
        for name, value in row.items()
    }


@pytest.mark.slow
def test_datasets_gives_objects_in_the_new_layout_and_texts_in_the_old(
    loaded: tuple[Any, Any], tmp_path: Path
) -> None:
    kinds, rows = loaded
    assert {name for name, kind in kinds["default"].items() if kind == "Json"} == JSON_COLUMNS
    assert list(rows["default"]) == ["train", "test"]
    assert isinstance(rows["gfx90a"]["train"][0]["assignment"], dict)
    new = [as_texts(row) for row in (*rows["default"]["train"], *rows["sm_90"]["train"])]
    assert new == [asdict(row) for row in ROWS]
    kinds, rows = columns_and_rows(embedded_path(), ("default", "sm_90"), tmp_path)
    assert "Json" not in kinds["default"].values()
    old = {row["id"]: row for part in ("default", "sm_90") for row in rows[part]["test"]}
    assert all(old[row.id] == asdict(row) for row in ROWS)


@pytest.mark.parametrize("old_layout", [False, True])
def test_both_layouts_are_read_and_the_old_one_has_its_bytes(
    old_layout: bool, tmp_path: Path
) -> None:
    for arch in ("gfx90a", "sm_90"):
        (place,) = embedded_path().glob(f"data/{arch}/gemm/*.parquet")
        rows, path = read_parquet(place, Row), tmp_path / "rows.parquet"
        write_parquet(rows, path, old_layout=old_layout)
        assert read_parquet(path, Row) == rows
        assert (path.read_bytes() == place.read_bytes()) == old_layout
        chunk = parquet.read_metadata(path).row_group(0).column(0)
        assert chunk.has_offset_index == (not old_layout)


@pytest.mark.slow
def test_conversations_are_what_evaluation_asks_and_the_label(loaded: tuple[Any, Any]) -> None:
    kinds, rows = loaded
    assert kinds["chat"]["messages"] == "List"
    assert list(rows["chat"]) == ["train"]
    assert {each["id"] for each in rows["chat"]["train"]} == {row.id for row in ROWS[:2]}
    for row in ROWS[:2]:
        for name in ("whole", "window"):
            style = get_prompt_format(name)
            own = [e for e in rows["chat"]["train"] if (e["id"], e["format"]) == (row.id, name)]
            assert {each["version"] for each in own} == {style.version}
            prompts = [turn.prompt for turn in style.demonstrations(problem_of(row), row.label)]
            assert [each["messages"][:-1] for each in own] == [
                [{"role": m.role, "content": m.content} for m in messages(style.system, (), prompt)]
                for prompt in prompts
            ]
            answers = [each["messages"][-1] for each in own]
            assert {answer["role"] for answer in answers} == {"assistant"}
            label: dict[str, str] = {}
            for answer in answers:
                label |= json.loads(answer["content"])
            assert label == row.label


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_trl_trains_on_them(folder: Path, tmp_path: Path) -> None:
    import datasets
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from trl import SFTConfig, SFTTrainer

    found = datasets.load_dataset(
        str(folder), "chat", split="train", cache_dir=str(tmp_path / "cache")
    )
    base = save_model(tmp_path / "model", chat_template=TEMPLATE)
    options = SFTConfig(
        str(tmp_path / "out"), max_steps=2, per_device_train_batch_size=1, report_to=[],
        max_length=256, use_cpu=True, logging_steps=1, bf16=False, save_strategy="no",
    )  # fmt: skip
    trainer = SFTTrainer(
        model=AutoModelForCausalLM.from_pretrained(base),
        args=options,
        train_dataset=found,
        processing_class=AutoTokenizer.from_pretrained(base),
    )
    assert trainer.train().training_loss > 0
