"""A dataset of experts' kernels: its files, its check, its card, and how commands read it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from dataset_builders.inspection import lists_check
from dataset_builders.inspection.check import check_dataset
from dataset_builders.inspection.rebuild import _difference
from dataset_builders.publishing.contents import published_files
from dataset_builders.release.duplicates import (
    RowCandidate,
    near_duplicates_of,
    near_duplicates_within,
    near_pairs,
)
from dataset_builders.release.similarity import Tokens
from dataset_builders.statistics import statistics_of
from dataset_builders.sweeps.experts import make_expert_point
from tests.dataset_builders.expert_folders import NOTICE, use_fake_libraries, write_expert_dataset
from tests.dataset_builders.inspection_folders import SPLITS, draft, rehash
from verilocc_bench.cli import main
from verilocc_bench.dataset import embedded_path, load_raw_row, load_rows, read_parquet
from verilocc_bench.dataset.parquet import write_parquet
from verilocc_bench.dataset.rows import Row
from verilocc_bench.errors import InputError

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def patch() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def folder(cuda: None, tmp_path_factory: pytest.TempPathFactory, patch: pytest.MonkeyPatch) -> Path:
    return write_expert_dataset(tmp_path_factory.mktemp("experts") / "expert", patch)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_nothing_is_wrong_with_it(folder: Path) -> None:
    report = check_dataset(folder, progress=False)
    assert report.findings == ()
    assert report.rows == 3


def test_all_rows_are_of_the_test_split(folder: Path) -> None:
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*.parquet")}
    name = "test-00000-of-00001.parquet"
    assert files == {f"{raw}data/sm_80/{f}/{name}" for raw in ("", "raw/") for f in ("gemm", "mha")}
    rows = load_rows(str(folder)).rows
    assert {row.license for row in rows} == {"BSD-3-Clause"}
    assert {row.kernel for row in rows} == {"cutlass_gemm", "flash_attention_forward"}


def test_why_candidates_have_no_row(folder: Path) -> None:
    assert statistics_of(folder).rejected == {"duplicate": 1, "nvcc-failed": 2}
    rejected = [(each["kernel"], each["kind"]) for each in lines(folder / "rejected.jsonl")]
    assert sorted(rejected) == [
        ("cutlass_gemm", "duplicate"),
        ("cutlass_gemm", "nvcc-failed"),
        ("flash_attention_forward", "nvcc-failed"),
    ]


def test_notices_go_with_the_rows(folder: Path) -> None:
    texts = {path.name: path.read_text() for path in (folder / "licenses").iterdir()}
    assert texts == {"cutlass.txt": NOTICE, "flash-attention.txt": NOTICE}
    listed = json.loads((folder / "manifest.json").read_text())["files"]
    assert "licenses/cutlass.txt" in listed


def test_the_card_has_no_default(folder: Path) -> None:
    card = (folder / "README.md").read_text()
    head = yaml.safe_load(card.split("---\n")[1])
    assert [config["config_name"] for config in head["configs"]] == ["expert", "expert-raw"]
    assert not any(config.get("default") for config in head["configs"])
    assert head["license"] == "bsd-3-clause"
    for words in ("experts do not minimise registers", "stand in for them", "licenses"):
        assert words in " ".join(card.lower().split())


def test_rows_are_made_again(folder: Path, patch: pytest.MonkeyPatch) -> None:
    use_fake_libraries(patch)
    listed = lines(folder / "rows.jsonl")
    assert [_difference(folder, line) for line in listed] == [None, None, None]
    other = {**listed[0], "params": {"place": 7}}
    assert "the parameters belong to" in str(_difference(folder, other))


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("license", "Apache-2.0", "expected 'BSD-3-Clause'"),
        ("params", '{"place":8}', "the point is"),
        ("kernel", "gemm", "unknown kernel 'gemm'"),
        ("label_source", "ptxas 1", "the column 'label_source'"),
    ],
)
def test_a_wrong_column_is_found(
    folder: Path, tmp_path: Path, column: str, value: str, said: str
) -> None:
    broken = shutil.copytree(folder, tmp_path / "broken")
    path = broken / "data/sm_80/mha/test-00000-of-00001.parquet"
    rows = [replace(row, **{column: value}) for row in read_parquet(path, Row)]
    write_parquet(rows, path)
    rehash(broken)
    found = check_dataset(broken, labels=False, progress=False).findings
    assert any(said in finding.message for finding in found), found


@pytest.fixture(scope="module")
def around(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, patch: pytest.MonkeyPatch
) -> Path:
    """A dataset of our own kernels with that of experts' in it."""
    patch.setattr(lists_check, "split_of", lambda _, point: SPLITS.get(point.group, "test"))
    outer = draft().write(tmp_path_factory.mktemp("around") / "regalloc")
    shutil.copytree(folder, outer / "expert")
    return outer


def test_it_lies_in_another_dataset(around: Path, folder: Path) -> None:
    report = check_dataset(around, labels=False, progress=False)
    assert report.findings == ()
    assert report.rows == 7 + 3
    inner = load_rows(f"{around}:expert")
    assert inner.rows == load_rows(str(folder)).rows
    assert load_raw_row(f"{around}:expert", inner.rows[0].id).format == "cubin"
    with pytest.raises(InputError, match="no folder 'expert'"):
        load_rows(f"{folder}:expert")


def test_faults_of_the_inner_dataset_are_found(around: Path, tmp_path: Path) -> None:
    broken = shutil.copytree(around, tmp_path / "broken")
    (broken / "expert/licenses/cutlass.txt").unlink()
    found = check_dataset(broken, labels=False, progress=False).findings
    assert [finding.file for finding in found] == ["expert/licenses/cutlass.txt"]


def test_it_is_published_with_the_other(around: Path, tmp_path: Path) -> None:
    with published_files(around, "owner/name") as files:
        assert "expert/licenses/cutlass.txt" in files
        for path, file in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file.location, tmp_path / path)
    head = yaml.safe_load((tmp_path / "README.md").read_text().split("---\n")[1])
    configs = {config["config_name"]: config["data_files"] for config in head["configs"]}
    assert configs["expert"][0] == {"split": "test", "path": "expert/data/*/*/test-*.parquet"}
    assert configs["expert-raw"][0]["path"] == "expert/raw/data/*/*/test-*.parquet"
    assert 'load_dataset("owner/name", "expert"' in (tmp_path / "expert/README.md").read_text()
    assert check_dataset(tmp_path, labels=False, progress=False).findings == ()


def test_it_is_evaluated_by_name(around: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["evaluate", "--dataset", f"{around}:expert", "--model", "compiler", "--json"]
    assert main(arguments) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    assert results["overall"]["n"] == 3
    assert results["overall"]["pass@1"] == 1


def test_beside_is_for_experts_alone(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = ["build", "--sweep", "mini", "--beside", "x", "--output", str(tmp_path / "new")]
    assert main(arguments) == 2
    assert "--beside is for the sweeps 'fresh' and 'expert'" in capsys.readouterr().err
    arguments[2:3] = ["fresh", "--seed", "a"]
    assert main(arguments) == 2
    assert "x: holds no rows of a dataset" in capsys.readouterr().err
    part = shutil.copytree(embedded_path(), tmp_path / "part")
    shutil.rmtree(part / "data" / "gfx942")
    arguments[arguments.index("x")] = str(part)
    assert main(arguments) == 2
    assert "the file is missing: manifest.json lists it" in capsys.readouterr().err


def candidate(place: int, tokens: Tokens) -> RowCandidate:
    point = make_expert_point("sm_80", "cutlass_gemm", {"place": place})
    return RowCandidate(point, f"id{place}", "assign", "test", tokens)


def test_the_first_of_near_ones_stays() -> None:
    base = tuple(range(100))
    near, nearer = (*base[:96], 1, 2, 3, 4), (*base[:92], 1, 2, 3, 4, 1, 2, 3, 4)
    found = [candidate(0, base), candidate(1, near), candidate(2, nearer), candidate(3, (7,) * 90)]
    rejected = near_duplicates_within(found, near_pairs(found))
    # The third is near the second, which is left out, but not near the first.
    assert rejected == {found[1].point.key: ("near-duplicate", "distance 0.0400 from id0")}


def test_a_function_of_another_dataset_is_left_out() -> None:
    base = tuple(range(100))
    found = [candidate(0, (*base[:98], 1, 2)), candidate(1, base[:80])]
    rejected = near_duplicates_of({"known": base}, found, "the dataset beside it")
    said = "distance 0.0200 from known of the dataset beside it"
    assert rejected == {found[0].point.key: ("near-duplicate", said)}
    assert near_duplicates_of({}, found, "nothing") == {}
