"""Kernels of a script as problems: compiled without a GPU, with the compiler's label."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import triton

import verilocc_bench as vb
from dataset_builders.inspection.check import check_dataset
from tests.triton import kernels, tutorial_kernels
from verilocc_bench.cli import main

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("llc", "cuda")]

FIRST = {"softmax_rows": 1}
MOST = FIRST | {"matrix_product": 2, "layer_norm_backward": 1}
KERNELS = {"gfx90a": FIRST, "gfx942": MOST | {"attention": 2}, "sm_80": MOST, "sm_90": FIRST}


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with triton.knobs.cache.scope():
        triton.knobs.cache.dir = str(tmp_path_factory.mktemp("cache"))
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kernels of the tutorials' kinds, captured for all targets by the command."""
    path = tmp_path_factory.mktemp("captured") / "set"
    script = str(Path(tutorial_kernels.__file__))
    status = main(["capture", "--arch", ",".join(KERNELS), "-o", str(path), script])
    assert status == 0
    return path


def test_every_kernel_is_in_and_labelled(folder: Path) -> None:
    for arch, expected in KERNELS.items():
        problems = vb.load_problems(f"{folder}:{arch}")
        counts: dict[str, int] = {}
        for problem in problems:
            assert problem.row is not None
            counts[problem.row.kernel] = counts.get(problem.row.kernel, 0) + 1
            assert problem.label is not None
            assert vb.verify(problem, problem.label).valid
            assert problem.row.license == "NOASSERTION"
        assert counts == expected
    assert not (folder / "rejected.jsonl").read_text()


def test_the_folder_passes_its_check(folder: Path) -> None:
    report = check_dataset(folder, progress=False)
    assert report.passed, report.findings
    assert report.rows == sum(sum(counts.values()) for counts in KERNELS.values())


@pytest.mark.parametrize("name", ["rows.jsonl", "README.md"])
def test_a_changed_folder_does_not(folder: Path, name: str, tmp_path: Path) -> None:
    copy = tmp_path / "set"
    shutil.copytree(folder, copy)
    text = (copy / name).read_text()
    (copy / name).write_text(text.replace("captured", "recorded"))
    assert not check_dataset(copy, labels=False, progress=False).passed


@pytest.mark.parametrize("arch", ["gfx942", "sm_80"])
def test_commands_read_it(
    folder: Path, arch: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = next(
        each
        for each in vb.load_problems(folder, arch=arch)
        if each.row is not None and each.row.kernel == "softmax_rows"
    )
    answer, place = tmp_path / "answer.json", ["--dataset", str(folder)]
    allocate = ["allocate", "--model", "graph-coloring", problem.id, "-o", str(answer)]
    assert main([*allocate, *place]) == 0
    assert main(["verify", problem.id, str(answer), *place]) == 0
    output = tmp_path / ("kernel.cubin" if arch == "sm_80" else "kernel.s")
    assert main(["lower", problem.id, str(answer), "-o", str(output), *place]) == 0
    assert main(["compare", problem.id, str(answer), *place]) == 0
    assert output.stat().st_size > 1000
    capsys.readouterr()


def test_the_same_script_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "again"
    script = str(Path(tutorial_kernels.__file__))
    assert main(["capture", "--arch", "gfx942", "-o", str(path), script]) == 0
    file = Path("data", "gfx942", "captured", "test-00000-of-00001.parquet")
    assert (path / file).read_bytes() == (folder / file).read_bytes()
    assert main(["dataset", "rebuild", str(path)]) == 2


def test_a_block_captures_launches_warmups_and_compiles() -> None:
    import torch

    from verilocc_bench.triton.compile_only import triton_target

    x = torch.zeros(256)
    with vb.capture("gfx942", license="MIT") as captured:
        kernels.scaled_sum[(2,)](x, x, x, 256, 2.0, BLOCK=64)
        kernels.scaled_sum.warmup(x, x, x, 256, 2.0, BLOCK=64, num_warps=8, grid=(8,))
        triton.compile(
            kernels.product_source(), target=triton_target("sm_80"), options={"num_warps": 1}
        )
        kernels.namesake()[(2,)](x, x, x, 256, 2.0, BLOCK=64)
        kernels.with_a_call[(1,)](x, x)
        kernels.scaled_sum[(2,)](x, x, x, 100, 2.0, BLOCK=64)  # not divisible by 16
    assert captured.count == 6
    named = [p.row.params for p in captured.problems if p.row and p.row.kernel == "scaled_sum"]
    assert ["text_sha256" in params for params in named].count(True) == 1
    problems = {(p.row.kernel, p.arch): p for p in captured.problems[::-1] if p.row is not None}
    assert set(problems) == {("scaled_sum", "gfx942"), ("product", "sm_80")}
    (refusal,) = [each for each in captured.refusals if each.point.kernel == "with_a_call"]
    assert "machine functions" in refusal.reason
    budgets = {
        sum(file.count for file in each.function.files if file.name in "va")
        for each in captured.problems
        if each.arch == "gfx942"
    }
    assert budgets == {512, 256}  # four waves in a work-group, and eight
    problem = problems["scaled_sum", "gfx942"]
    assert problem.row is not None
    assert problem.row.license == "MIT"
    assert problem.kernel().name == "scaled_sum"
    assert vb.verify(problem, vb.allocate(problem, "graph-coloring")).valid
    params = json.loads(problem.row.params)
    assert params["x"] == "*fp32:16:range32"
    assert params["n"] == "i32:16"
    assert params["BLOCK"] == 64


def test_what_was_there_before_comes_back() -> None:
    config, compilation = triton.runtime.driver, triton.knobs.compilation
    before = config._active, compilation.listener, compilation.disable_line_info
    tuned = tutorial_kernels.matrix_product
    tuned.cache["key"] = tuned.configs[1]
    with vb.capture("gfx90a"):
        assert not tuned.cache
    assert tuned.cache.pop("key") is tuned.configs[1]
    assert (config._active, compilation.listener, compilation.disable_line_info) == before


SCRIPT = """\
import sys
from tests.triton.kernels import scaled_sum
import torch
x = torch.ones(64, device="cuda")
scaled_sum[(1,)](x, x, x, 64, 1.0, BLOCK=int(sys.argv[1]), num_warps=1)
print("the script speaks")
assert x[0] == 2.0, "wrong numbers"
"""


def test_a_script_that_fails_keeps_what_it_compiled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script, path = tmp_path / "script.py", tmp_path / "set"
    script.write_text(SCRIPT)
    words = ["capture", "--arch", "sm_80", "-o", str(path)]
    assert main([*words, "--json", str(script), "--", "64"]) == 0
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert [each["kernel"] for each in document["rows"]] == ["scaled_sum"]
    assert "AssertionError: wrong numbers" in err
    assert "the script speaks" in err
    assert main([*words, str(script)]) == 2
    assert "new or empty folder" in capsys.readouterr().err


@pytest.mark.parametrize("arch", ["gfx942", "sm_80"])
def test_a_whole_script_runs_to_its_end(
    arch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Queries of the GPU, comparisons and benchmarks: tests/triton/whole_script.py."""
    import torch

    script = Path(tutorial_kernels.__file__).with_name("whole_script.py")
    monkeypatch.chdir(tmp_path)
    assert main(["capture", "--arch", arch, "-o", "set", "--json", str(script)]) == 0
    out, err = capsys.readouterr()
    assert "the whole script ran" in err
    assert "ended with" not in err
    rows = json.loads(out)["rows"]
    assert {each["kernel"] for each in rows} == {"scaled_rows"}
    assert len(rows) == 3  # blocks of 128, 64 and 256 in two types
    assert not (tmp_path / "plots").exists()
    assert not torch.cuda.is_available()
    assert torch.version.hip is None
    assert not torch.ones(1).is_cuda


def test_large_products_are_not_computed() -> None:
    import torch

    with vb.capture("gfx90a"):
        wide = torch.empty(2, 1 << 14, 1 << 14, device="cuda", dtype=torch.float16)
        product = torch.bmm(wide, wide)
        assert (product.shape, product.dtype) == (wide.shape, wide.dtype)
        assert (wide @ wide[0]).shape == wide.shape
        assert (wide[0] @ wide[0, 0]).shape == (1 << 14,)
        narrow = torch.ones(3, 3, device=torch.device("cuda", 0))
        assert (narrow @ narrow)[0, 0].item() == 3.0
        assert narrow.device == torch.device("cuda:0")
        assert torch.equal(narrow, narrow + 1)


@pytest.mark.parametrize("text", ["", "raise SystemExit(3)"])
def test_a_script_without_kernels(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "script.py"
    script.write_text(text)
    assert main(["capture", "--arch", "gfx90a", "-o", str(tmp_path / "set"), str(script)]) == 2
    assert "compiled nothing" in capsys.readouterr().err


def test_a_kernel_for_another_architecture_is_refused_by_name() -> None:
    from triton.backends.compiler import GPUTarget

    with vb.capture("gfx90a") as captured:
        triton.compile(kernels.sum_source(), target=GPUTarget("cuda", 86, 32))
        triton.compile(kernels.sum_source(), target=GPUTarget("cuda", 90, 32))
    assert [problem.arch for problem in captured.problems] == ["sm_90"]
    (refusal,) = captured.refusals
    assert (refusal.kind, refusal.point.arch) == ("unknown-architecture", "sm_86")
    assert "compiled for sm_86" in refusal.reason
    with pytest.raises(vb.InputError, match="not for sm_89"), vb.capture("sm_89"):
        pass
