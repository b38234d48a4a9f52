"""Mining the distances that ptxas relies on: its corpus and its journal."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import distance_corpus, distances
from benchmarks.generated_ptx import generated_kernel
from dataset_builders.sweeps.point import SweepPoint
from tests.backends.nvidia.assembled_kernels import LOOP, PRODUCT, assembled, require_tools
from verilocc_bench.backends.nvidia.cubin import read_cubin
from verilocc_bench.backends.nvidia.distance_table import distance_table, table_from_json
from verilocc_bench.errors import RejectedKernel

pytestmark = pytest.mark.slow


def code_of(cubin: bytes, name: str | None = None) -> bytes:
    kernel = read_cubin(cubin).kernel(name)
    return cubin[kernel.code_offset : kernel.code_offset + kernel.code_size]


def test_kernels_of_one_module_have_the_code_of_their_own_cubins() -> None:
    module = distance_corpus.module_of({"a_1": LOOP, "b_2": PRODUCT})
    for name, alone in (("a_1", LOOP), ("b_2", PRODUCT)):
        assert code_of(assembled(module), name) == code_of(assembled(alone))
    with pytest.raises(RejectedKernel, match=r"\.global \.align 4 \.b8 x"):
        distance_corpus.module_of(
            {"a": LOOP.replace(".visible", ".global .align 4 .b8 x;\n.visible")}
        )
    with pytest.raises(RejectedKernel, match="several kernels"):
        distance_corpus.module_of({"a": LOOP + PRODUCT.partition(".address_size 64")[2]})


def compiled(point: SweepPoint, _: Path) -> SimpleNamespace:
    """Stands for Triton: of every four points one is refused by it, and one by ptxas."""
    turn = int(point.digest, 16) % 4
    if turn == 0:
        raise RejectedKernel("compilation_failed", "refused")
    return SimpleNamespace(ptx=(LOOP, PRODUCT, LOOP.replace("bar.sync", "bar.bad"))[turn - 1])


def test_a_line_that_was_cut_off_is_passed_over(tmp_path: Path) -> None:
    journal = tmp_path / "new" / "measured.jsonl"
    distance_corpus._append(journal, [{"id": "a"}, {"id": "b"}])
    journal.write_bytes(journal.read_bytes()[:-4])
    distance_corpus._append(journal, [{"id": "c"}])
    assert [each["id"] for each in distance_corpus.read_journal(journal)] == ["a", "c"]


def test_a_sweep_is_compiled_mined_and_taken_up_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_tools()
    monkeypatch.setattr(distance_corpus, "compile_kernel", compiled)
    measured, cubins = tmp_path / "measured.jsonl", tmp_path / "cubins"
    command = ["compile", "mini", "--measured", str(measured), "--cubins", str(cubins), "--limit"]
    assert distances.main([*command, "4"]) == 0
    assert distances.main([*command, "8"]) == 0
    first = measured.read_bytes()
    assert distances.main([*command, "8"]) == 0
    assert measured.read_bytes() == first
    records = [*map(json.loads, first.splitlines())]
    assert len({each["id"] for each in records}) == len(records) == 8
    refused = [each["rejected"] for each in records if "rejected" in each]
    assert any("refused" in each for each in refused)
    assert "ptxas-failed" in refused
    kernels = distance_corpus.distinct_kernels(measured)
    assert {each["instructions"] for each in kernels} == {
        len(code_of(assembled(each))) // 16 for each in (LOOP, PRODUCT)
    }
    # The cubins that were kept show the same once more.
    again = tmp_path / "again.jsonl"
    assert distances.main(["read", str(cubins), "--measured", str(again)]) == 0
    assert [each["pairs"] for each in distance_corpus.distinct_kernels(again)] == [
        each["pairs"] for each in kernels
    ]
    table = tmp_path / "table.json"
    assert distances.main(["mine", "--measured", str(measured), "-o", str(table)]) == 0
    found = table_from_json(json.loads(table.read_text()))
    assert found.corpus["kernels"] == 2
    # The package's table knows at least as much, and is never stricter.
    whole = distance_table("sm_80")
    assert all(whole.cells[kind].cycles <= cell.cycles for kind, cell in found.cells.items())


def test_what_cannot_be_mined_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measured = tmp_path / "measured.jsonl"
    assert distances.main(["mine", "--measured", str(measured)]) == 2
    assert distances.main(["read", str(tmp_path), "--measured", str(measured)]) == 2
    assert distances.main(["compile", "nosuch", "--measured", str(measured)]) == 2
    first, second, third = capsys.readouterr().err.splitlines()
    assert first == f"error: {measured}: expected kernels that `compile` or `read` wrote"
    assert second.startswith(f"error: {tmp_path}: expected a dataset with machine code of sm_80")
    assert third.startswith("error: unknown sweep 'nosuch'; known are ")


def test_random_kernels_are_the_same_for_their_seed_and_are_read(tmp_path: Path) -> None:
    require_tools()
    measured = tmp_path / "measured.jsonl"
    assert generated_kernel(7) == generated_kernel(7) != generated_kernel(8)
    assert [".f64" in generated_kernel(seed) for seed in (1_899, 1_900)] == [False, True]
    assert distances.main(["generate", "3", "--measured", str(measured)]) == 0
    first = measured.read_bytes()
    assert distances.main(["generate", "3", "--measured", str(measured)]) == 0
    assert measured.read_bytes() == first
    kernels = distance_corpus.distinct_kernels(measured)
    assert {each["id"] for each in kernels} == {f"generated_{seed}" for seed in range(3)}
    kinds = {tuple(kind) for each in kernels for *kind, _, _ in each["pairs"]}
    assert len(kinds) > 40
