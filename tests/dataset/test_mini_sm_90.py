"""The six kernels of sm_90 in the embedded dataset, as `mini:sm_90`."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from dataset_builders.sweeps import sweep_named
from tests.sampling import some_of
from verilocc_bench import load_problems
from verilocc_bench.allocators import answer_from_assignment
from verilocc_bench.backends.nvidia.read import load_kernel
from verilocc_bench.dataset import Row, embedded_path, load_raw_row, load_rows, write_parquet
from verilocc_bench.dataset.reader import default_architectures
from verilocc_bench.errors import InputError
from verilocc_bench.targets import PUBLISHED

ROWS = load_rows("mini:sm_90").rows


def test_each_of_its_points_is_there() -> None:
    keys = {json.loads(row.provenance)["point"] for row in ROWS}
    assert keys == {point.key for point in sweep_named("mini").points(["sm_90"])}
    assert {row.label_source for row in ROWS} == {"ptxas 13.5.37"}
    assert {row.family for row in ROWS} == {"gemm", "mha"}
    for row in ROWS:
        own = json.loads(row.params)["capability"] == 0
        assert ("GMMA.64x" in row.normalized) == own
        assert ("MMA.16" in row.normalized) == (not own)


def test_mini_itself_has_none_of_them() -> None:
    assert {row.arch for row in load_rows("mini").rows} == set(PUBLISHED)
    with pytest.raises(InputError, match="there is no split 'test' of the split track"):
        load_rows("mini:sm_90", track="split")
    with pytest.raises(InputError, match="there is no split 'test'"):
        load_rows("mini:sm_89")
    with pytest.raises(InputError, match="; those of sm_90 are 'mini:sm_90'"):
        load_problems("mini", arch="sm_90")
    assert [problem.id for problem in load_problems("mini:sm_90")] == [row.id for row in ROWS]


def test_a_dataset_of_one_architecture_needs_no_other_name(tmp_path: Path) -> None:
    assert default_architectures(["sm_90"]) == ["sm_90"]
    assert default_architectures(["sm_90", "sm_80"]) == ["sm_80"]
    path = tmp_path / "data/sm_90/gemm/test-00000-of-00001.parquet"
    write_parquet([row for row in ROWS if row.family == "gemm"], path)
    assert load_rows(str(tmp_path)).hash == load_rows(f"{tmp_path}:sm_90").hash


@pytest.mark.slow
@pytest.mark.parametrize("row", some_of(ROWS, one_in=4), ids=lambda row: row.id)
def test_the_cubin_gives_the_row_again(row: Row, cuda: None) -> None:
    raw = load_raw_row("mini:sm_90", row.id)
    provenance = json.loads(row.provenance)
    kernel, gated = load_kernel(base64.b64decode(raw.content), row.id)
    normalized, problem = gated.normalized(provenance["register_limit"])
    assert provenance["register_count"] == kernel.register_count > 0
    assert problem.normalized == row.normalized
    assert answer_from_assignment(problem, normalized.assignment) == row.label


def test_its_files_are_of_its_own() -> None:
    files = [path.parts[-3] for path in embedded_path().glob("data/*/*/*.parquet")]
    assert sorted(set(files)) == ["gfx90a", "gfx942", "sm_80", "sm_90"]
