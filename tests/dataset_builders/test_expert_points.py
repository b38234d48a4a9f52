"""The candidates among experts' kernels, the C++ that makes them, and their archives."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from dataset_builders.building.install import is_complete
from dataset_builders.experts import fetch
from dataset_builders.experts.archives import Archive
from dataset_builders.experts.cuda_sources import CUTLASS, FLASH_ATTENTION
from dataset_builders.experts.cutlass import TILES
from dataset_builders.sweeps.experts import EXPERT_KERNELS, expert_point_from_json
from verilocc_bench.errors import InputError

CUDA_POINTS = [*CUTLASS.points(), *FLASH_ATTENTION.points()]


def test_there_are_enough_candidates_each_once() -> None:
    counts = Counter(point.library for point in CUDA_POINTS)
    assert counts["cutlass"] >= 150
    assert counts["flash-attention"] >= 40
    assert len({point.key for point in CUDA_POINTS}) == len(CUDA_POINTS)
    assert {point.kernel for point in CUDA_POINTS} <= EXPERT_KERNELS.keys()


def test_types_schedules_and_masks_are_all_there() -> None:
    matrix = CUTLASS.points()
    assert {point.parameters["dtype"] for point in matrix} == set(TILES)
    assert {point.parameters["epilogue"] for point in matrix} > {"relu", "gelu", "silu"}
    attention = FLASH_ATTENTION.points()
    for flag in ("dropout", "causal", "local", "alibi", "softcap", "split", "append"):
        assert any(point.parameters.get(flag) for point in attention), flag


def test_a_row_gives_its_point_again() -> None:
    for point in CUDA_POINTS:
        assert expert_point_from_json(point.arch, point.kernel, point.parameters_json) == point
    with pytest.raises(InputError, match="unknown kernel 'no_such'"):
        expert_point_from_json("sm_80", "no_such", "{}")
    with pytest.raises(InputError, match="not JSON"):
        expert_point_from_json("sm_80", "cutlass_gemm", "{")


def test_each_text_is_of_its_own_and_has_one_kernel() -> None:
    texts = [source.text(p) for source in (CUTLASS, FLASH_ATTENTION) for p in source.points()]
    assert len(set(texts)) == len(texts)
    assert all(text.count("template __global__ void") == 1 for text in texts)


def test_no_warp_has_a_part_of_an_instruction() -> None:
    for point in CUTLASS.points():
        rows, columns, _ = (int(part) for part in str(point.parameters["tile"]).split("x"))
        down, across = (int(part) for part in str(point.parameters["warps"]).split("x"))
        assert (rows % (down * 8), columns % (across * 8)) == (0, 0), point


def _archive(data: bytes, name: str) -> Archive:
    digest = hashlib.sha256(data).hexdigest()
    return Archive("library", "1", name, digest, len(data), ("wanted",), "wanted/LICENSE")


def _tar(files: dict[str, str]) -> bytes:
    memory = io.BytesIO()
    with tarfile.open(fileobj=memory, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return memory.getvalue()


def _wheel(files: dict[str, str]) -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return memory.getvalue()


FILES = {"wanted/LICENSE": "terms", "wanted/a.h": "a", "other/b.h": "b", "../wanted/out": "c"}


@pytest.mark.parametrize("kind", ["library.whl", "library.tar.gz"])
def test_only_the_wanted_parts_are_unpacked(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VERILOCC_BENCH_EXPERTS", str(tmp_path))
    tar = kind.endswith("gz")
    data = _tar({f"library-1/{n}": t for n, t in FILES.items()}) if tar else _wheel(FILES)
    archive = _archive(data, kind)
    with pytest.raises(InputError, match="make expert-archives"):
        archive.folder()
    (tmp_path / kind).write_bytes(data)
    assert archive.notice_text() == "terms"
    folder = archive.folder()
    assert sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*.h")) == ["wanted/a.h"]
    assert {path.name for path in tmp_path.iterdir()} == {kind, folder.name}


def test_another_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERILOCC_BENCH_EXPERTS", str(tmp_path))
    archive = _archive(_wheel(FILES), "library.whl")
    (tmp_path / "library.whl").write_bytes(_wheel({"wanted/LICENSE": "other terms"}))
    with pytest.raises(InputError, match="SHA-256"):
        archive.folder()


def test_an_unknown_library_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert fetch.main(["no-such"]) == 2
    assert "unknown library 'no-such'" in capsys.readouterr().err


def test_a_dataset_may_be_built_around_experts(tmp_path: Path) -> None:
    (tmp_path / "expert").mkdir()
    assert not is_complete(tmp_path, {})
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="not empty"):
        is_complete(tmp_path, {})
