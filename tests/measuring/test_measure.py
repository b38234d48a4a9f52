"""Measurements: the folder, its launcher on a pretended GPU, and reading the results back."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import verilocc_bench as vb
from tests.command_line import CommandLine
from verilocc_bench import measurement as shared
from verilocc_bench.cli import main
from verilocc_bench.dataset import load_rows
from verilocc_bench.edits import Answer
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.gpu_measurement import GpuMeasurement, read_measurement
from verilocc_bench.measuring import launcher
from verilocc_bench.measuring.blocks import MULTIPROCESSORS
from verilocc_bench.measuring.folder import (
    MeasuredKernel,
    MeasuredLaunch,
    MeasuredSide,
    write_folder,
)
from verilocc_bench.references import launch_for

pytestmark = pytest.mark.slow

ROWS = load_rows("mini").rows
IDS = {
    arch: min((row for row in ROWS if row.arch == arch), key=lambda r: r.n_instructions).id
    for arch in ("gfx942", "sm_80")
}
ANSWER = Answer({"%0": "R0"})


def small_folder(folder: Path) -> Path:
    """One kernel with five sides, whose codes only the pretended GPU can run."""
    row = next(row for row in ROWS if row.kernel == "mha_decode_combine" and row.arch == "sm_80")
    parameters = json.loads(row.params)
    reference = {"kernel": row.kernel, "parameters": parameters, "tiles": 1, "depth": 3}
    grid = launch_for(row.kernel, parameters, tiles=1, depth=3).grid
    launch = MeasuredLaunch(grid, 32, 0, reference)
    sides = [
        MeasuredSide(name, f"the {name}", role, name.encode(), answer, registers=99)
        for name, role, answer in (
            ("own", "own", None), ("answer", "same", ANSWER), ("capped", "other", None),
            ("own-again", "same", None), ("broken", "control", None),
        )
    ]  # fmt: skip
    write_folder([MeasuredKernel("k", "0" * 16, "sm_90", row.kernel, launch, sides)], folder, {})
    return folder


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_folder(tmp_path_factory.mktemp("small") / "folder")


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    shutil.copytree(written, tmp_path / "folder")
    return tmp_path / "folder"


def run_py(folder: Path, behaviour: str = "right", *options: str) -> int:
    """Runs the launcher; its processes have a pretended GPU."""
    few = ["--rounds", "5", "--launches", "2", "--seconds", "30", *options]
    fake = [sys.executable, "-m", "tests.measuring.fake_gpu", str(folder), behaviour, "--worker"]
    return launcher.main(folder, few, fake)


def verdicts(folder: Path) -> dict[str, str]:
    (kernel,) = read_measurement(folder).kernels()
    return {side["name"]: side["verdict"] for side in kernel["sides"]}


def test_a_folder_needs_nothing_but_python_and_numpy(folder: Path) -> None:
    for path in (folder / "library").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            named = isinstance(node, ast.ImportFrom | ast.Import)
            names = [(node.module or "")] if isinstance(node, ast.ImportFrom) else []
            names += [each.name for each in node.names] if isinstance(node, ast.Import) else []
            assert not named or {name.split(".")[0] for name in names} <= {
                *sys.stdlib_module_names, "numpy", "verilocc_bench", "torch"
            }, path  # fmt: skip
    command = [sys.executable, "-P", str(folder / "run.py"), "--seconds", "5"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 1
    assert "run.py: there is no driver of a GPU here" in done.stderr
    assert not (folder / shared.RESULTS).exists()


def test_all_sides_right(folder: Path, run: CommandLine) -> None:
    run.refuses(["measure", folder], "run `python run.py` there")
    assert run_py(folder) == 0
    assert verdicts(folder) == dict.fromkeys(verdicts(folder), "same bits")
    document = json.loads(run("measure", folder, "--json").out.partition("{")[2].join(["{", ""]))
    (kernel,) = document["kernels"]
    assert document["verified"] is False
    assert document["device"] == "a pretended GPU"
    times = {side["name"]: side.get("ratio") for side in kernel["sides"]}
    assert times == {"own": 1, "answer": 1, "capped": 1, "own-again": 1, "broken": None}
    assert kernel["sides"][0]["errors"]["out"] < 1e-3
    assert kernel["library"] is None
    text = run("measure", folder).out
    assert "not verified" in text
    assert "99" in text
    assert "5, not 16" in text  # blocks, as the driver and as we say
    figure = read_measurement(folder).figure("0" * 16, ANSWER)
    assert figure["names"] == ["the answer", "the own"]
    assert (figure["rounds"], figure["same_bits"]) == (5, True)


ODD = {
    "idle": "wrote nothing",
    "wrong": "wrong numbers",
    "changes": "wrong numbers",
    "fault": "cuLaunchKernel failed with error 700",
    "dies": "its process ended with status -11",
    "slow": "no result in 2 s",
}


@pytest.mark.parametrize(
    "behaviour",
    [
        "idle:answer,wrong:capped,dies:broken",
        "changes:answer,fault:own-again",
        "dies:answer,slow:capped",
        *(pytest.param(f"{each}:answer", marks=pytest.mark.exhaustive) for each in ODD),
        *(pytest.param(f"{each}:broken", marks=pytest.mark.exhaustive) for each in ODD),
    ],
)
def test_sides_that_do_not_compute_right_are_found_out(
    folder: Path, behaviour: str, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = {side: ODD[what] for what, side in (each.split(":") for each in behaviour.split(","))}
    limit = ["--seconds", "2"] if "slow" in behaviour else []
    assert run_py(folder, behaviour, *limit) == ("answer" in odd)
    found = verdicts(folder)
    assert found == {**dict.fromkeys(found, "same bits"), **odd}  # they take no other along
    (kernel,) = read_measurement(folder).kernels()
    timed = {each["name"] for each in kernel["sides"] if "ratio" in each}
    assert timed == {"own", "answer", "capped", "own-again"} - {*odd}
    said = capsys.readouterr().out
    assert all(f"k {side}: {odd[side]}" in said for side in odd if side != "broken")
    if "answer" in odd:
        with pytest.raises(InputError, match="nothing was measured"):
            read_measurement(folder).figure()


def test_machines_that_lose_what_is_copied_measure_nothing(folder: Path) -> None:
    assert run_py(folder, "lost") == 1
    assert set(verdicts(folder).values()) == {"the device does not hold what was copied to it"}
    assert not any(line["part"] == "times" for line in read_measurement(folder).lines)


def test_a_cut_run_goes_on_where_its_results_fit(folder: Path) -> None:
    assert run_py(folder, "right", "--minutes", "0") == 0
    cut = read_measurement(folder).lines
    assert [line["part"] for line in cut] == ["machine", "end"]
    place = folder / shared.RESULTS
    written = place.read_text()
    for line, word in (
        ({"part": "times", "kernel": "k", "milliseconds": {"own": [0.0] * 5}}, "times above 0"),
        ({"part": "times", "kernel": "k", "milliseconds": {"own": [1.0] * 4}}, "at least 5 rounds"),
        ({"part": "bits", "kernel": "k", "side": "own", "digests": ["a"]}, "not as run.py writes"),
        ([], "not as run.py writes"),
    ):
        place.write_text(written + json.dumps(line) + "\n")
        with pytest.raises(InputError, match=word):
            read_measurement(folder)
    with pytest.raises(SystemExit, match=r"jsonl:\d+: expected a line of results"):
        run_py(folder)
    place.write_text(written + '{"part": "bits", "kern')  # killed as it wrote
    assert run_py(folder) == 0
    lines = read_measurement(folder).lines
    assert run_py(folder) == 0
    again = read_measurement(folder).lines
    assert again[:-1] == lines
    place.write_text(place.read_text().replace("a pretended GPU", "another GPU"))
    with pytest.raises(SystemExit, match="of another GPU or driver"):
        run_py(folder)
    document = json.loads((folder / "measure.json").read_text())
    (folder / "measure.json").write_text(json.dumps(document))
    with pytest.raises(SystemExit, match=r"results of another measure\.json"):
        run_py(folder)
    with pytest.raises(InputError, match=r"results are of another measure\.json"):
        read_measurement(folder)


def test_folders_take_kernels_of_one_vendor_and_each_once(folder: Path) -> None:
    with pytest.raises(InputError, match="is there already"):
        small_folder(folder)
    launch = MeasuredLaunch((1, 1, 1), 64, 0, arguments={"x": np.zeros(4, np.float32)})
    side = MeasuredSide("own", "own", "own", b"code")
    with pytest.raises(InputError, match="one vendor"):
        write_folder([MeasuredKernel("l", "1" * 16, "gfx942", "f", launch, [side])], folder, {})
    write_folder([MeasuredKernel("l", "1" * 16, "sm_80", "f", launch, [side])], folder, {})
    assert len(json.loads((folder / "measure.json").read_text())["kernels"]) == 2
    (folder / shared.RESULTS).write_text("{}\n")
    with pytest.raises(InputError, match="without results"):
        write_folder([MeasuredKernel("m", "2" * 16, "sm_80", "f", launch, [side])], folder, {})


@pytest.mark.parametrize(
    ("registers", "threads", "shared", "blocks"),
    # As the driver of an H200 says.
    [(64, 32, 0, 32), (168, 128, 53248, 3), (58, 128, 12288, 8), (102, 128, 24576, 4)],
)
def test_blocks_of_a_multiprocessor(registers: int, threads: int, shared: int, blocks: int) -> None:
    assert MULTIPROCESSORS["sm_90"].holds(registers, threads, shared) == blocks


def prepared(arch: str, folder: Path, *options: str) -> Path:
    answer = folder / "answer.json"
    model = ["--model", "graph-coloring", *(["--runnable"] if arch == "sm_80" else [])]
    assert main(["allocate", *model, IDS[arch], "-o", str(answer)]) == 0
    output = folder / "measurement"
    assert main(["measure", IDS[arch], str(answer), "-o", str(output), *options]) == 0
    return output


@pytest.mark.usefixtures("llc")
def test_code_objects_there_and_back(tmp_path: Path, run: CommandLine) -> None:
    pytest.importorskip("triton")  # its linker
    folder = prepared("gfx942", tmp_path, "--tiles", "1")
    assert run_py(folder, "executes", "--seconds", "500") == 0  # it compiles the interpreter
    assert verdicts(folder) == dict.fromkeys(("other", "answer", "other-again"), "same bits")
    answer, measured = str(tmp_path / "answer.json"), ["--measured", str(folder)]
    out = run("compare", IDS["gfx942"], answer, *measured).out
    assert "measured on a pretended GPU, not verified" in out
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"assignment": vb.load_problem(IDS["gfx942"]).label}))
    swapped = tmp_path / "swapped.json"
    shutil.copy(answer, swapped)
    run.refuses(["compare", IDS["gfx942"], answer, swapped, *measured], "the measurement is beside")
    stranger = min(r.id for r in ROWS if r.arch == "gfx942" and r.id != IDS["gfx942"])
    with pytest.raises(InputError, match=f"not of '{stranger}'"):
        read_measurement(folder).figure(stranger)
    with pytest.raises(InputError, match="of another answer"):
        read_measurement(folder).figure(IDS["gfx942"], Answer({"%0": "v99"}))


@pytest.mark.usefixtures("llc")
def test_a_launch_of_ones_own(tmp_path: Path, run: CommandLine) -> None:
    pytest.importorskip("triton")
    arrays = tmp_path / "arrays.npz"
    np.savez(arrays, x=np.arange(64, dtype=np.float32), n=np.int32(64), scale=np.float32(2))
    options = ["--arguments", str(arrays), "--grid", "2", "--threads", "64"]
    folder = prepared("gfx942", tmp_path, *options)
    (kernel,) = json.loads((folder / "measure.json").read_text())["kernels"]
    assert (kernel["grid"], kernel["block"]) == ([2, 1, 1], [64, 1, 1])
    assert [each["element"] for each in kernel["arguments"]] == ["float32", "i32", "fp32"]
    # Without a reference a launch that changes nothing is still found out.
    assert run_py(folder, "right") == 1
    assert set(verdicts(folder).values()) == {"wrote nothing"}
    again = ["measure", IDS["gfx942"], tmp_path / "answer.json", "-o"]
    run.refuses([*again, folder], "without results")
    run.refuses([*again, tmp_path / "new", *options[:2]], "--arguments needs --grid")


@pytest.mark.usefixtures("cuda")
def test_cubins_by_the_cuda_driver(tmp_path: Path) -> None:
    folder = prepared("sm_80", tmp_path, "--tiles", "1", "--depth", "3")
    (kernel,) = json.loads((folder / "measure.json").read_text())["kernels"]
    assert kernel["sides"][1]["file"].endswith(".cubin")
    assert kernel["sides"][1]["runnable"] is True
    assert run_py(folder) == 0
    measurement: GpuMeasurement = read_measurement(folder)
    assert measurement.figure()["same_bits"] is True


def test_what_a_result_says() -> None:
    def line(*digests: str, **more: Any) -> dict[str, Any]:
        return {"digests": digests, "wrong": [], "errors": {"c": 0.0}, **more}

    own, atomic = line("a", "a"), line("a", "b")
    cases = [
        (own, own, "same", "same bits", True),
        (line("b", "b"), own, "same", "other bits", False),
        (line("b", "b"), own, "other", "other bits", True),
        (line("b", "b", errors={}), own, "other", "other bits", False),
        (line("a", "b"), own, "same", "changing bits", False),
        (atomic, atomic, "own", "changing bits", True),
        (line("c", "d"), atomic, "same", "changing bits", True),
        (line("a", "a", wrong=["c"]), own, "other", "wrong numbers", False),
        ({"failed": "a fault"}, own, "same", "a fault", False),
    ]
    for found, beside, role, verdict, right in cases:
        assert shared.verdict_of(found, beside) == verdict
        assert shared.is_right(found, beside, role) is right, (verdict, role)
