"""Rows are compiled again from their lines alone; what differs is named."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dataset_builders.compilers import toolchains
from dataset_builders.inspection import rebuild
from dataset_builders.inspection.rebuild import differing_versions, rebuild_rows
from tests.dataset_builders.inspection_folders import draft, read_lines, rehash, write_lines
from verilocc_bench.errors import InputError, MissingExtraError

pytestmark = pytest.mark.slow

REDUCE = "ff6a8c95c1702273"
REDUCE_942 = "283d953e61cef95c"
REDUCE_SM = "52dedc6393ee792f"
DECODE = "8a0c1350f3e3e019"


def test_rows_are_made_again(tmp_path: Path, cuda: None) -> None:
    found = draft()
    row = next(row for row in found.rows if row.id == REDUCE_942)
    label = (row.assignment or "").replace('"%0":"', '"%0":"x', 1)
    found.change(REDUCE_942, assignment=label)
    raw = next(raw for raw in found.raws if raw.id == REDUCE_SM)
    found.raws[found.raws.index(raw)] = replace(raw, content="A" + raw.content[1:])
    folder = found.write(tmp_path)
    # A line that claims the parameters of another point.
    lines = read_lines(folder / "rows.jsonl")
    places = {line["id"]: place for place, line in enumerate(lines)}
    lines[places[DECODE]]["params"] = lines[places[REDUCE_SM]]["params"]
    lines[places[DECODE]]["kernel"] = lines[places[REDUCE_SM]]["kernel"]
    write_lines(folder / "rows.jsonl", lines)
    rehash(folder)
    ids = (REDUCE, REDUCE_942, REDUCE_SM, DECODE)
    report = rebuild_rows(folder, ids=ids, jobs=1, progress=False)
    differences = {row.id: row.difference for row in report.rows}
    assert list(differences) == [line["id"] for line in lines if line["id"] in ids]
    assert differences[REDUCE] is None
    assert (differences[REDUCE_942] or "").startswith("assignment differs at character 7 (line 1)")
    assert (differences[REDUCE_SM] or "").startswith("raw content differs at character 0")
    assert "the parameters belong to gemm_reduce" in (differences[DECODE] or "")
    assert not report.equal
    assert report.versions == {}


def test_versions_that_differ(tmp_path: Path) -> None:
    found = draft()
    found.manifest["versions"] |= {"triton": "1.0", "no-such-package": "2"}
    folder = found.write(tmp_path)
    assert list(differing_versions(folder)) == ["no-such-package", "triton"]
    assert differing_versions(folder)["no-such-package"] == ("2", None)


def test_a_sample_depends_on_the_seed_alone(tmp_path: Path) -> None:
    folder = draft().write(tmp_path)
    lines = read_lines(folder / "rows.jsonl")

    def chosen(sample: int, seed: int) -> list[str]:
        return [line["id"] for line in rebuild._chosen(lines, sample, seed, (), folder)]

    assert chosen(3, 1) == chosen(3, 1)
    assert len(set(chosen(3, 1))) == 3
    assert len({tuple(chosen(3, seed)) for seed in range(20)}) > 1
    assert chosen(100, 0) == [line["id"] for line in lines]


def test_what_cannot_be_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = draft().write(tmp_path)
    with pytest.raises(InputError, match="there is no row 'a'"):
        rebuild_rows(folder, ids=["a"], progress=False)
    monkeypatch.setattr(toolchains, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="triton"):
        rebuild_rows(folder, progress=False)
    (folder / "rows.jsonl").write_text(json.dumps({"id": "a"}) + "\n")
    with pytest.raises(InputError, match=r"line 1: .*required"):
        rebuild_rows(folder, progress=False)
    (folder / "rows.jsonl").unlink()
    with pytest.raises(InputError, match=r"no rows\.jsonl"):
        rebuild_rows(folder, progress=False)
