"""Results for the Hub: entries that its own client reads back, and ids that agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import parse_eval_result_entries

from tests.command_line import CommandLine
from tests.report.documents import make_document
from verilocc_bench.dataset import load_rows, rows_hash, write_parquet
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.hub_results import eval_results_yaml

pytestmark = pytest.mark.slow


def documents(**changes: Any) -> dict[str, dict[str, Any]]:
    found = {
        "free": make_document("org/model"),
        "guided": make_document("org/model", decoding="guided", seed=3),
    }
    for document in found.values():
        document["dataset"] = {"name": "owner/kernels", "revision": "c" * 40, "hash": "ab" * 32}
    for path, value in changes.items():
        key, inner = path.split("__")
        found["guided"][key][inner] = value
    return found


def test_entries_come_back() -> None:
    given = documents()
    entries = parse_eval_result_entries(yaml.safe_load(eval_results_yaml(given, None)))
    values = {entry.task_id: entry.value for entry in entries}
    assert len(values) == len(entries) == 14  # six tasks and overall, twice
    assert values["overall_text_free_pass@1"] == given["free"]["results"]["overall"]["pass@1"]
    mha = given["guided"]["results"]["sm_80/mha"]["pass@1"]
    assert values["sm_80_mha_text_guided_pass@1"] == mha
    for entry in entries:
        assert (entry.dataset_id, entry.dataset_revision) == ("owner/kernels", "c" * 40)
        assert entry.date == "2026-11-21T17:00:00Z"
        assert entry.notes is not None
        assert "verilocc-bench 0.1.0, samples for each kernel: 1" in entry.notes


def ids(given: dict[str, Any], dataset_id: str | None = None) -> list[str]:
    text = eval_results_yaml(given, dataset_id)
    return [entry.task_id for entry in parse_eval_result_entries(yaml.safe_load(text))]


def test_the_ids_of_the_split_track_and_of_all_tasks() -> None:
    given = {"run": make_document(track="split")}
    given["run"]["dataset"]["name"] = "owner/kernels"
    assert all(each.startswith("split_") for each in ids(given, "owner/kernels"))
    # Overall is of the whole dataset.
    found = ids(documents(config__arch=["gfx942"]))
    assert [each for each in found if each.startswith("overall")] == ["overall_text_free_pass@1"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"config__limit": 3}, "guided: this run is of a part of the dataset"),
        ({"config__budget": "bound"}, "guided: this run is at another budget"),
        ({"config__model": "org/other"}, "guided: expected runs of one model"),
        ({"config__decoding": "free"}, "guided: a second result for gfx90a_gemm_text_free_pass@1"),
        ({"dataset__hash": "00"}, "guided: expected runs of one dataset in one version"),
        ({"results__overall": {"infrastructure_failures": 2}}, "2 samples are missing"),
    ],
)
def test_what_cannot_be_published(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        eval_results_yaml(documents(**change), None)


def test_the_dataset_needs_an_id_of_the_hub() -> None:
    with pytest.raises(InputError, match="not 'mini': give --dataset-id"):
        eval_results_yaml({"run": make_document()}, None)
    with pytest.raises(InputError, match="owner/name"):
        eval_results_yaml({"run": make_document()}, "a/b/c")


ROWS = load_rows("mini").rows


@pytest.fixture(name="asked")
def _asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What is asked of the Hub, which has one dataset: a/b, with the rows of `mini`."""
    asked: list[tuple[Any, ...]] = []

    def read(name: str, config: str, split: str, revision: str | None, _: type) -> Any:
        asked.append((name, config, split, revision))
        if name != "a/b":
            raise InputError("no such folder, and no such dataset on the Hub", source=name)
        return ROWS

    monkeypatch.setattr("verilocc_bench.evaluation.hub_results.read_hub", read)
    return asked


def of_a_folder(digest: str, **config: Any) -> dict[str, Any]:
    document = make_document(**config)
    document["dataset"] = {"name": "./data/copy", "revision": None, "hash": digest}
    return document


def test_results_go_to_the_dataset_that_they_are_of(asked: list[tuple[Any, ...]]) -> None:
    run = {"run": of_a_folder(rows_hash(ROWS))}
    assert " a/b\n" in eval_results_yaml(run, "a/b")
    assert asked == [("a/b", "default", "test", None)]


def test_results_go_to_no_other_dataset(asked: list[tuple[Any, ...]]) -> None:
    run = {"run": of_a_folder("17d0a73689fc5894" * 4)}
    with pytest.raises(InputError) as caught:
        eval_results_yaml(run, "a/b")
    assert str(caught.value) == (
        "run: this run is of './data/copy' (hash 17d0a73689fc5894…), and not of a/b "
        f"(hash {rows_hash(ROWS)[:16]}…)"
    )
    with pytest.raises(
        InputError, match=r"is of './data/copy', and cannot be compared with a/c: no such"
    ):
        eval_results_yaml(run, "a/c")
    with pytest.raises(InputError, match=r"not './data/copy': give --dataset-id"):
        eval_results_yaml(run, None)
    assert len(asked) == 2


def test_every_split_of_a_run_counts(asked: list[tuple[Any, ...]]) -> None:
    run = of_a_folder(rows_hash([*ROWS, *ROWS]))
    run["config"] |= {"split": "test,test_larger", "track": "split"}
    text = eval_results_yaml({"run": run}, "a/b")
    assert "split test,test_larger" in text
    assert asked == [("a/b", "split", split, None) for split in ("test", "test_larger")]


def test_a_folder_is_not_recorded_as_an_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: CommandLine
) -> None:
    monkeypatch.chdir(tmp_path)
    row = min(ROWS, key=lambda row: row.n_instructions)
    write_parquet(
        [row], Path("verilocc/regalloc/data", row.arch, row.family, "test-00000-of-00001.parquet")
    )
    document = run.json("evaluate", "--model", "compiler", "--dataset", "verilocc/regalloc")
    assert document["dataset"]["name"] == "./verilocc/regalloc"
    with pytest.raises(InputError, match="give --dataset-id"):
        eval_results_yaml({"run": document}, None)
