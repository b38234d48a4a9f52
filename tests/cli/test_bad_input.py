"""Bad input: one clear line on standard error, status 2, no traceback, nothing half-written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from verilocc_bench.cli import main
from verilocc_bench.dataset import load_rows, write_parquet

ROW = load_rows("mini").rows[0]
LABEL = ROW.label


@pytest.fixture(name="run")
def _run(capsys):  # type: ignore[no-untyped-def]
    def run(*arguments: object) -> tuple[int, str, str]:
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as end:
            assert isinstance(end.code, int)  # noqa: PT017
            status = end.code
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


def refused(result: tuple[int, str, str], *words: object) -> None:
    status, out, err = result
    assert status == 2, (out, err)
    assert out == ""
    assert err.count("\n") == 1, err
    assert "Traceback" not in err
    for word in words:
        assert str(word) in err


def answer(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "answer.json"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["empty"]),
        ("{", ["1:2", "JSON"]),
        ("[]", ["expected an answer"]),
        ('{"assignment": []}', ["expected an object"]),
        ('{"assignment": {"%0": 4}}', ["%0", "int"]),
        ('{"assignment": {"%0": null}}', ["%0"]),
        ('{"assignment": {"%0": "v0", "%0": "v1"}}', ["'%0' stands twice"]),
        ('{"assignment": {}, "assignment": {}}', ["stands twice"]),
        ('{"id": 4, "assignment": {}}', ["'id'"]),
        ('{"id": "0000", "assignment": {}}', ["0000", ROW.id]),
        ('{"assignment": {"%0": NaN}}', ["NaN"]),
        ('{"assignment": {"%0": 1e999}}', ["1e999"]),
        ('{"assignment": {}, "colour": "red"}', ["colour"]),
        ("[" * 100_000, ["nested"]),
        ('{"assignment": {"%0": ' + "9" * 10_000 + "}}", ["JSON"]),
    ],
)
def test_malformed_answers(run, tmp_path: Path, text: str, words: list[str]) -> None:  # type: ignore[no-untyped-def]
    path = answer(tmp_path, text)
    refused(run("verify", ROW.id, path), path, *words)


def test_answers_that_are_no_text_or_too_large(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "answer.json"
    path.write_bytes(b'{"assignment": {"%0": "\xff"}}')
    refused(run("verify", ROW.id, path), path, "UTF-8")
    with path.open("wb") as file:
        file.truncate(1 << 30)
    refused(run("verify", ROW.id, path), path, "1,073,741,824")
    refused(run("verify", ROW.id, tmp_path / "nothing"), "no such file")
    refused(run("verify", ROW.id, tmp_path), "expected a file")


def test_an_answer_with_too_many_entries(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    entries = ",".join(f'"{n:x}":""' for n in range(1_000_001))
    path = answer(tmp_path, f'{{"assignment":{{{entries}}}}}')
    refused(run("verify", ROW.id, path), "1,000,001 entries")


def test_unknown_registers_are_findings_not_errors(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = answer(tmp_path, json.dumps({"id": ROW.id, "assignment": {**LABEL, "%0": "r99"}}))
    status, out, err = run("verify", ROW.id, path)
    assert (status, err) == (1, "")
    assert "unknown_physical_register" in out
    path = answer(tmp_path, json.dumps({"assignment": {**LABEL, "%99999": "v0"}}))
    status, out, _ = run("verify", ROW.id, path, "--json")
    assert status == 1
    verdict = json.loads(out)
    assert [f["kind"] for f in verdict["findings"]] == ["unknown_virtual_register"]
    assert verdict.keys() == {"id", "valid", "findings", "registers_used", "occupancy"}


def test_unknown_instances_models_and_architectures(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = answer(tmp_path, json.dumps({"assignment": LABEL}))
    refused(run("verify", "0123456789abcdef", path), "0123456789abcdef")
    refused(run("evaluate", "--model", "nothing"), "nothing", "linear-scan")
    refused(run("evaluate", "--model", "python:os"), "python:MODULE:ATTRIBUTE")
    refused(run("evaluate", "--model", "python:no_such_module:f"), "no_such_module")
    refused(run("evaluate", "--model", "python:os:no_such"), "no_such")
    refused(run("evaluate", "--model", "predictions:/nowhere"), "/nowhere")
    refused(run("evaluate", "--model", "compiler", "--arch", "gfx1100"), "gfx1100", "gfx942")
    refused(run("evaluate", "--model", "compiler", "--k", "10"), "--samples 10")
    refused(run("evaluate", "--model", "compiler", "--split", "train"), "train", "test")
    refused(run("evaluate", "--model", "compiler", "--samples", "0"), "positive")
    refused(run("evaluate", "--model", "compiler", "--dataset", tmp_path / "x"), "x")
    refused(run("evaluate", "--model", "compiler", "--dataset", tmp_path), "expected files")
    refused(run("frobnicate"), "frobnicate")
    refused(run("build", "--sweep", "nothing", "--output", tmp_path / "d"), "nothing", "mini")


def test_models_that_cannot_be_made(run, tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    modules = {
        "bad_syntax": "def f(:\n",
        "bad_raise": "raise RuntimeError('two\\nlines')\n",
        "bad_exit": "import sys\nsys.exit(3)\n",
        "bad_class": "class A:\n    def __init__(self, needed): pass\n",
        "bad_assistance": "class A:\n    assistance = 'psychic'\n    def allocate(self, r): ...\n",
        "bad_object": "A = 5\n",
    }
    for name, text in modules.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in modules:
        refused(run("evaluate", "--model", f"python:{name}:A"), name)
    refused(run("evaluate", "--model", "python:.here:A"), ".here")


def test_options_that_do_not_fit(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = answer(tmp_path, json.dumps({"assignment": LABEL}))
    refused(run("verify", ROW.id, path, "--arch", "gfx90a"), "--arch")
    refused(run("evaluate", "--model", "compiler", "--family", "gemm,conv"), "conv", "mha")
    refused(run("evaluate", "--model", "compiler", "--revision", "main"), "--revision")
    refused(run("evaluate", "--model", "compiler", "--model", "compiler"), "twice")
    refused(run("evaluate", "--model", "compiler", "--limit", "\u0663"), "number")
    refused(run("evaluate", "--model", "compiler", "--limit", "9" * 5000), "number")
    refused(run("normalize", "x.mir", "--max-threads", "2048"), "1024")
    other = answer(tmp_path, json.dumps({"id": "0" * 16, "assignment": LABEL}))
    refused(run("show", ROW.id, other, "-o", tmp_path / "x.png"), ROW.id)
    refused(run("show", ROW.id, "-o", "/proc/x.png"), "/proc/x.png")
    refused(run("build", "--sweep", "mini", "--output", "/proc/x"), "/proc/x")


def test_odd_but_legal_text(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    assert LABEL is not None
    document = json.dumps({"assignment": {**LABEL, "\ud800\u2028": "v0"}}, ensure_ascii=False)
    path = tmp_path / "answer.json"
    path.write_bytes(b"\xef\xbb\xbf" + document.replace("\ud800", "\\ud800").encode())
    status, out, err = run("verify", ROW.id, path)
    assert (status, err) == (1, "")
    assert "unknown_virtual_register" in out


def test_machine_ir_of_another_target_and_of_no_target(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "x.mir"
    triple = '--- |\n  target triple = "x86_64-linux"\n...\n'
    path.write_text(f"{triple}---\nname: f\nbody: |\n  bb.0:\n    RET64\n...\n")
    refused(run("normalize", path), path, "--arch")
    refused(run("normalize", path, "--arch", "gfx942"), path, "x86_64-linux")
    path.write_text("---\nname: f\nbody: |\n  bb.0:\n    %0:gr32 = COPY $edi\n...\n")
    refused(run("normalize", path, "--arch", "gfx942"), f"{path}:5", "gr32")
    path.write_text("---\nname: f\nbody: |\n  bb.0:\n    S_NOP 0\n")
    refused(run("normalize", path, "--arch", "gfx942"), path, "cut off")
    path.write_bytes(os.urandom(4096))
    refused(run("normalize", path, "--arch", "gfx942"), path)
    path.write_bytes(b"---\nname: f\0\n")
    refused(run("normalize", path, "--arch", "gfx942"), f"{path}:2", "binary")
    path.write_text("---\nname: f\nbody: |\n  bb.0:\n...\n---\nname: g\nbody: |\n  bb.0:\n...\n")
    refused(run("normalize", path, "--arch", "gfx942"), path, "f, g")
    refused(run("normalize", path, "--arch", "gfx942", "--function", "h"), "'h'")


def dataset_with(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "data" / "gfx942" / "gemm" / "test-00000-of-00001.parquet"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    return path


def test_a_corrupt_parquet_file(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = dataset_with(tmp_path, b"PAR1 nothing here")
    refused(run("evaluate", "--model", "compiler", "--dataset", tmp_path), path, "Parquet")


def test_a_parquet_file_cut_off(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    whole = tmp_path / "whole.parquet"
    write_parquet([ROW], whole)
    path = dataset_with(tmp_path, whole.read_bytes()[:-100])
    refused(run("evaluate", "--model", "compiler", "--dataset", tmp_path), path, "Parquet")


@pytest.mark.parametrize("column", ["normalized", "assignment"])
def test_a_parquet_file_that_lacks_a_column(run, tmp_path: Path, column: str) -> None:  # type: ignore[no-untyped-def]
    from pyarrow import parquet

    path = dataset_with(tmp_path, b"")
    write_parquet([ROW], path)
    table = parquet.read_table(path)
    parquet.write_table(table.drop_columns([column]), path)
    refused(run("evaluate", "--model", "compiler", "--dataset", tmp_path), path, column)


def test_a_row_whose_id_is_not_its_hash(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    from dataclasses import replace

    path = tmp_path / "data" / ROW.arch / ROW.family / "test-00000-of-00001.parquet"
    write_parquet([replace(ROW, normalized=ROW.normalized + "S_NOP\n")], path)
    said = f"row {ROW.id}: the column 'id' is '{ROW.id}', its text says"
    refused(run("evaluate", "--model", "compiler", "--dataset", tmp_path), said)


def test_predictions_with_errors_name_the_line(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "predictions.jsonl"
    good = json.dumps({"id": ROW.id, "assignment": LABEL})
    stranger = json.dumps({"id": "0123456789abcdef", "assignment": LABEL})
    path.write_text(f"{good}\n{stranger}\n")
    refused(run("evaluate", "--model", f"predictions:{path}"), path, "0123456789abcdef")
    path.write_text(f"{good}\n\n{{\n")
    refused(run("evaluate", "--model", f"predictions:{path}"), f"{path}:3")
    path.write_text(f"{good}\n{json.dumps({'assignment': LABEL})}\n")
    refused(run("evaluate", "--model", f"predictions:{path}"), f"{path}:2", "'id'")


def test_nothing_is_half_written(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    target = tmp_path / "file"
    target.write_text("precious")
    refused(run("allocate", "--model", "linear-scan", ROW.id, "-o", target / "below"), "below")
    assert target.read_text() == "precious"
    refused(run("evaluate", "--model", "compiler", "--limit", 1, "--output-path", target), "file")
    assert target.read_text() == "precious"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_module_run_has_no_traceback(tmp_path: Path) -> None:
    path = tmp_path / "x.mir"
    path.write_text("nonsense\n")
    run = subprocess.run(
        [sys.executable, "-m", "verilocc_bench", "normalize", str(path), "--arch", "gfx90a"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 2
    assert run.stderr.startswith("verilocc-bench normalize: ")
    assert run.stderr.count("\n") == 1
