"""The few kernels of experts that the package embeds, as `mini:expert`."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from dataset_builders.experts.expert_sweep import EXPERT_SWEEPS_BY_NAME
from dataset_builders.inspection.check import check_dataset
from dataset_builders.sweeps.experts import EXPERT_KERNELS, EXPERT_MINI
from verilocc_bench.cli import main
from verilocc_bench.dataset import embedded_path, load_raw_row, load_rows

FOLDER = embedded_path().with_name("mini-expert")


def test_two_kernels_of_each_library() -> None:
    rows = load_rows("mini:expert").rows
    counts = Counter(EXPERT_KERNELS[row.kernel][0] for row in rows)
    assert counts == {"aiter": 2, "cutlass": 2, "flash-attention": 2}
    assert {row.license for row in rows} == {"BSD-3-Clause", "MIT"}
    points = EXPERT_SWEEPS_BY_NAME[EXPERT_MINI].points()
    assert {json.loads(row.provenance)["point"] for row in rows} == {p.key for p in points}


def test_it_is_small_and_has_its_notices() -> None:
    files = [path for path in FOLDER.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 2 << 20
    assert {path.name for path in (FOLDER / "licenses").iterdir()} == {
        "aiter.txt",
        "cutlass.txt",
        "flash-attention.txt",
    }
    assert "Redistribution" in (FOLDER / "licenses/cutlass.txt").read_text()


@pytest.mark.slow
def test_nothing_is_wrong_with_it(cuda: None) -> None:
    assert check_dataset(FOLDER, progress=False).findings == ()


@pytest.mark.slow
def test_it_is_evaluated_and_lowered(
    cuda: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = load_rows("mini:expert").rows
    formats = [load_raw_row("mini:expert", row.id).format for row in rows]
    assert formats == ["mir"] * 2 + ["cubin"] * 4
    arguments = ["evaluate", "--dataset", "mini:expert", "--model", "compiler", "--json"]
    assert main(arguments) == 0
    assert json.loads(capsys.readouterr().out)["results"]["overall"]["pass@1"] == 1
    answer = tmp_path / "answer.json"
    answer.write_text(json.dumps({"id": rows[2].id, "assignment": rows[2].label}))
    arguments = ["lower", rows[2].id, str(answer), "--dataset", "mini:expert"]
    assert main([*arguments, "-o", str(tmp_path / "kernel.cubin")]) == 0
    assert (tmp_path / "kernel.cubin").stat().st_size > 0
