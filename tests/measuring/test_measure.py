"""Measurements: the folder, its launcher on a pretended GPU, and reading the results back."""

from __future__ import annotations

import ast
import importlib.util
import json
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import verilocc_bench as vb
from tests.measuring.fake_gpu import FakeLibrary
from verilocc_bench.cli import main
from verilocc_bench.dataset import load_rows
from verilocc_bench.machine.execution import load_kernel
from verilocc_bench.measuring import launcher

pytestmark = pytest.mark.slow

IDS = {
    arch: min(
        (row for row in load_rows("mini").rows if row.arch == arch), key=lambda r: r.n_instructions
    ).id
    for arch in ("gfx942", "sm_80")
}


def prepared(arch: str, folder: Path, *options: str) -> Path:
    answer = folder / "answer.json"
    model = ["--model", "graph-coloring", *(["--runnable"] if arch == "sm_80" else [])]
    assert main(["allocate", *model, IDS[arch], "-o", str(answer)]) == 0
    output = folder / "measurement"
    assert main(["measure", IDS[arch], str(answer), "-o", str(output), *options]) == 0
    return output


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, llc: object) -> Path:
    pytest.importorskip("triton")  # its linker
    return prepared("gfx942", tmp_path_factory.mktemp("amd"), "--tiles", "1")


def run_py(folder: Path, library: FakeLibrary, monkeypatch: pytest.MonkeyPatch) -> int:
    """Runs the folder's own launcher with a pretended library."""
    specification = importlib.util.spec_from_file_location("run_py", folder / "run.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    monkeypatch.setattr(module.ctypes, "CDLL", lambda _name: library)
    monkeypatch.setattr(module, "WARMUP_LAUNCHES", 1)
    status: int = module.main(["--rounds", "6", "--launches", "1"])
    monkeypatch.undo()
    return status


def executed(
    document: dict[str, Any], change: Callable[[list[bytes]], list[bytes]] = lambda d: d
) -> Callable[[bytes, list[tuple[str, Any]]], list[bytes]]:
    """Runs code objects on the CPU; each code once, as the launches are all alike."""
    known: dict[tuple[bytes, ...], list[bytes]] = {}

    def run(code: bytes, arguments: list[tuple[str, Any]]) -> list[bytes]:
        key = (code, *(data for _, data in arguments))
        if key not in known:
            values: list[Any] = []
            for (kind, data), each in zip(arguments, document["arguments"], strict=True):
                if kind == "buffer":
                    values.append(np.frombuffer(data, np.uint8))
                else:
                    code_of = {"i32": "i", "fp32": "f"}[each["element"]]
                    number = struct.unpack(code_of, data)[0]
                    values.append(np.float32(number) if code_of == "f" else np.int32(number))
            done = load_kernel(code, document["kernel"]).run(values, document["grid"])
            known[key] = change([each.tobytes() for each in done.buffers if each is not None])
        return known[key]

    return run


def library_for(folder: Path, **changes: Any) -> FakeLibrary:
    document = json.loads((folder / "measure.json").read_text())
    kinds = ["buffer" if "file" in each else "value" for each in document["arguments"]]
    return FakeLibrary("hip", kinds, executed(document, **changes))


def test_the_launcher_needs_nothing_but_python() -> None:
    tree = ast.parse(Path(str(launcher.__file__)).read_text(), feature_version=(3, 9))
    names = {
        (node.module or "").split(".")[0] if isinstance(node, ast.ImportFrom) else each.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for each in node.names
    }
    assert names <= sys.stdlib_module_names


def test_there_and_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = str(folder.parent / "answer.json")
    assert main(["measure", str(folder)]) == 2
    assert "run `python run.py` there" in capsys.readouterr().err
    library = library_for(folder)
    assert run_py(folder, library, monkeypatch) == 0
    assert "the same bits" in capsys.readouterr().out
    document = json.loads((folder / "measure.json").read_text())
    assert library.launched[0] == (100, *document["grid"], *document["block"],
                                   document["shared_memory_bytes"])  # fmt: skip
    assert main(["measure", str(folder), "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)
    assert measured["verified"] is False
    assert measured["ratio"] == pytest.approx(1.5)
    assert measured["same_bits"] is True
    assert measured["rounds"] == 6
    assert main(["compare", IDS["gfx942"], answer, "--measured", str(folder)]) == 0
    assert "measured on a pretended GPU, not verified" in capsys.readouterr().out
    assert main(["compare", IDS["gfx942"], answer, "--measured", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["measured"] == measured


def test_another_answer_is_not_measured(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    assert run_py(folder, library_for(folder), monkeypatch) == 0
    other = tmp_path / "other.json"
    problem = vb.load_problem(IDS["gfx942"])
    other.write_text(json.dumps({"assignment": problem.label}))
    assert main(["compare", IDS["gfx942"], str(other), "--measured", str(folder)]) == 2
    assert "of another answer" in capsys.readouterr().err


def test_wrong_numbers_are_not_measured(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    library = library_for(folder, change=lambda buffers: [bytes(len(b)) for b in buffers])
    assert run_py(folder, library, monkeypatch) == 1
    assert "wrong numbers: answer:" in capsys.readouterr().out
    assert main(["measure", str(folder)]) == 2
    assert "nothing was measured" in capsys.readouterr().err


def buffers_of(arguments: list[tuple[str, Any]]) -> list[bytes]:
    return [data for kind, data in arguments if kind == "buffer"]


def own_launch(folder: Path) -> Path:
    arrays = folder / "arrays.npz"
    np.savez(arrays, x=np.arange(64, dtype=np.float32), n=np.int32(64), scale=np.float32(2))
    options = ["--arguments", str(arrays), "--grid", "2", "--threads", "64"]
    return prepared("gfx942", folder, *options)


@pytest.mark.usefixtures("llc")
def test_launches_that_do_nothing_are_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("triton")
    folder, kinds = own_launch(tmp_path), ["buffer", "value", "value"]

    def idle(_code: bytes, arguments: list[tuple[str, Any]]) -> list[bytes]:
        return buffers_of(arguments)

    def writing(_code: bytes, arguments: list[tuple[str, Any]]) -> list[bytes]:
        return [b"\1" * len(data) for data in buffers_of(arguments)]

    assert run_py(folder, FakeLibrary("hip", kinds, idle), monkeypatch) == 1
    out = capsys.readouterr().out
    assert "nothing written: answer: all buffers are as before" in out
    assert "nothing written: other: all buffers are as before" in out
    assert "the same bits" not in out
    assert main(["measure", str(folder)]) == 2
    assert "nothing was measured" in capsys.readouterr().err
    assert run_py(folder, FakeLibrary("hip", kinds, writing), monkeypatch) == 0
    assert "both sides leave the same bits" in capsys.readouterr().out

    def tires(code: bytes, arguments: list[tuple[str, Any]]) -> list[bytes]:
        return (writing if len(library.launched) <= 2 else idle)(code, arguments)

    library = FakeLibrary("hip", kinds, tires)
    with pytest.raises(SystemExit, match="answer: 1 launches in a row wrote nothing"):
        run_py(folder, library, monkeypatch)


@pytest.mark.usefixtures("llc")
def test_a_device_that_does_not_hold_what_is_copied_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("triton")
    folder = own_launch(tmp_path)
    library = FakeLibrary("hip", ["buffer", "value", "value"], lambda _, a: buffers_of(a))
    monkeypatch.setattr(library, "do_MemcpyHtoD", lambda *_: 0, raising=False)
    with pytest.raises(SystemExit, match="does not hold what was copied"):
        run_py(folder, library, monkeypatch)


@pytest.mark.parametrize(
    ("key", "value", "word"),
    [
        ("measurement_sha256", "0" * 64, "of another measure.json"),
        ("milliseconds", {"answer": [1.0] * 6, "other": [0.0] * 6}, "times above 0"),
        ("milliseconds", {"answer": [1.0] * 3, "other": [1.0] * 3}, "at least 5 rounds"),
        ("milliseconds", {"answer": [1.0] * 6}, "not as run.py writes it"),
        ("device", None, None),
    ],
)
def test_results_that_do_not_fit(  # noqa: PLR0917
    folder: Path, key: str, value: object, word: str | None,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    assert run_py(folder, library_for(folder), monkeypatch) == 0
    results = json.loads((folder / "results.json").read_text())
    (folder / "results.json").write_text(json.dumps(results | {key: value}))
    assert main(["measure", str(folder)]) == (0 if word is None else 2)
    if word is not None:
        assert word in capsys.readouterr().err


@pytest.mark.usefixtures("cuda")
def test_cubins_by_the_cuda_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = prepared("sm_80", tmp_path, "--tiles", "1")
    document = json.loads((folder / "measure.json").read_text())
    assert document["sides"]["answer"]["file"] == "answer/kernel.cubin"
    kinds = ["buffer" if "file" in each else "value" for each in document["arguments"]]
    expected = {each["name"]: each for each in document["expected"]}

    def run(_code: bytes, arguments: list[tuple[str, Any]]) -> list[bytes]:
        """What the kernel must leave, in place of a GPU."""
        found = []
        for (kind, data), each in zip(arguments, document["arguments"], strict=True):
            if kind != "buffer":
                continue
            want, after = expected.get(each["name"]), data
            if want is not None:
                wanted = np.frombuffer((folder / want["file"]).read_bytes(), "<f8")
                mask = np.frombuffer((folder / want["mask"]).read_bytes(), bool)
                before = np.frombuffer(data, np.float16)
                after = np.where(mask, wanted.astype(np.float16), before).tobytes()
            found.append(after)
        return found

    library = FakeLibrary("cu", kinds, run)
    assert run_py(folder, library, monkeypatch) == 0
    assert {"DevicePrimaryCtxRetain", "LaunchKernel", "CtxSynchronize"} <= set(library.calls)
    assert main(["measure", str(folder)]) == 0
    assert "not verified" in capsys.readouterr().out


@pytest.mark.usefixtures("llc")
def test_a_launch_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("triton")
    arrays = tmp_path / "arrays.npz"
    np.savez(arrays, x=np.zeros(64, np.float32), n=np.int32(64), scale=np.float32(2))
    options = ["--arguments", str(arrays), "--grid", "2", "--threads", "64"]
    folder = prepared("gfx942", tmp_path, *options)
    document = json.loads((folder / "measure.json").read_text())
    assert document["grid"] == [2, 1, 1]
    assert document["block"] == [64, 1, 1]
    assert [each["element"] for each in document["arguments"]] == ["float32", "i32", "fp32"]
    assert not document["expected"]
    capsys.readouterr()
    again = ["measure", IDS["gfx942"], str(tmp_path / "answer.json"), "-o", str(folder)]
    assert main(again) == 2
    assert "new or empty folder" in capsys.readouterr().err
    assert main([*again[:-1], str(tmp_path / "new"), *options[:2]]) == 2
    assert "--arguments needs --grid" in capsys.readouterr().err


@pytest.mark.parametrize("element", ["fp16", "bf16", "fp32", "i32", "int8"])
def test_numbers_of_buffers(element: str) -> None:
    from verilocc_bench.references.numbers import decode, encode

    values = np.array([0.0, 1.0, -2.0, 100.0, -3.0])
    stored = encode(values, element)
    assert launcher.numbers_of(stored.tobytes(), element) == list(decode(stored, element))
    assert launcher.numbers_of(b"\x80", "fp8e4b8") is None
