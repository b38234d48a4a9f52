"""Bad input: one clear line on standard error, status 2, no traceback, nothing half-written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from pyarrow import parquet

from tests.command_line import CommandLine
from verilocc_bench.dataset import load_rows, write_parquet
from verilocc_bench.edits import answer_files

ROW = load_rows("mini").rows[0]
LABEL = ROW.label


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
def test_malformed_answers(run: CommandLine, tmp_path: Path, text: str, words: list[str]) -> None:
    path = answer(tmp_path, text)
    run.refuses(["verify", ROW.id, path], path, *words)


def test_answers_that_are_no_text_or_too_large(run: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    path.write_bytes(b'{"assignment": {"%0": "\xff"}}')
    run.refuses(["verify", ROW.id, path], path, "UTF-8")
    with path.open("wb") as file:
        file.truncate(1 << 30)
    run.refuses(["verify", ROW.id, path], path, "1,073,741,824")
    run.refuses(["verify", ROW.id, tmp_path / "nothing"], "no such file")
    run.refuses(["verify", "k" * 300, path], "kkk: File name too long")
    run.refuses(["verify", ROW.id, tmp_path], "expected a file")


def test_an_answer_with_too_many_entries(
    run: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_files, "MAXIMUM_ENTRIES", 1_000)
    path = answer(tmp_path, json.dumps({"assignment": {f"%{n}": "" for n in range(1_001)}}))
    run.refuses(["verify", ROW.id, path], "1,001 entries, more than the 1,000 accepted")


def test_unknown_registers_are_findings_not_errors(run: CommandLine, tmp_path: Path) -> None:
    path = answer(tmp_path, json.dumps({"id": ROW.id, "assignment": {**LABEL, "%0": "r99"}}))
    out, err = run("verify", ROW.id, path, status=1)
    assert err == ""
    assert "unknown_physical_register" in out
    path = answer(tmp_path, json.dumps({"assignment": {**LABEL, "%99999": "v0"}}))
    verdict = run.json("verify", ROW.id, path, status=1)
    assert [f["kind"] for f in verdict["findings"]] == ["unknown_virtual_register"]
    assert verdict.keys() == {"id", "valid", "findings", "registers_used", "occupancy"}
    odd = json.dumps({"assignment": {**LABEL, "\ud800\u2028": "v0"}}, ensure_ascii=False)
    path.write_bytes(b"\xef\xbb\xbf" + odd.replace("\ud800", "\\ud800").encode())
    out, err = run("verify", ROW.id, path, status=1)
    assert err == ""
    assert "unknown_virtual_register" in out


def test_unknown_instances_models_and_architectures(run: CommandLine, tmp_path: Path) -> None:
    path = answer(tmp_path, json.dumps({"assignment": LABEL}))
    run.refuses(["verify", "0123456789abcdef", path], "0123456789abcdef")
    run.refuses(["evaluate", "--model", "nothing"], "nothing", "linear-scan")
    run.refuses(["evaluate", "--model", "python:os"], "python:MODULE:ATTRIBUTE")
    run.refuses(["evaluate", "--model", "python:no_such_module:f"], "no_such_module")
    run.refuses(["evaluate", "--model", "python:os:no_such"], "no_such")
    run.refuses(["evaluate", "--model", "predictions:/nowhere"], "/nowhere")
    run.refuses(["evaluate", "--model", "compiler", "--arch", "gfx1100"], "gfx1100", "gfx942")
    run.refuses(["evaluate", "--model", "compiler", "--k", "10"], "--samples 10")
    run.refuses(["evaluate", "--model", "compiler", "--split", "train"], "train", "test")
    run.refuses(["evaluate", "--model", "compiler", "--samples", "0"], "positive")
    run.refuses(["evaluate", "--model", "compiler", "--dataset", tmp_path / "x"], "x")
    run.refuses(["evaluate", "--model", "compiler", "--dataset", tmp_path], "expected files")
    run.refuses(["frobnicate"], "frobnicate")
    run.refuses(["build", "--sweep", "nothing", "--output", tmp_path / "d"], "nothing", "mini")


def test_models_that_cannot_be_made(
    run: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        run.refuses(["evaluate", "--model", f"python:{name}:A"], name)
    run.refuses(["evaluate", "--model", "python:.here:A"], ".here")


def test_options_that_do_not_fit(run: CommandLine, tmp_path: Path) -> None:
    path = answer(tmp_path, json.dumps({"assignment": LABEL}))
    run.refuses(["verify", ROW.id, path, "--arch", "gfx90a"], "--arch")
    run.refuses(["evaluate", "--model", "compiler", "--family", "gemm,conv"], "conv", "mha")
    run.refuses(["evaluate", "--model", "compiler", "--revision", "main"], "--revision")
    run.refuses(["evaluate", "--model", "compiler", "--model", "compiler"], "twice")
    run.refuses(["evaluate", "--model", "compiler", "--limit", "\u0663"], "number")
    run.refuses(["evaluate", "--model", "compiler", "--limit", "9" * 5000], "number")
    run.refuses(["normalize", "x.mir", "--max-threads", "2048"], "1024")
    other = answer(tmp_path, json.dumps({"id": "0" * 16, "assignment": LABEL}))
    run.refuses(["show", ROW.id, other, "-o", tmp_path / "x.png"], ROW.id)
    run.refuses(["show", ROW.id, "-o", "/proc/x.png"], "/proc/x.png")
    run.refuses(["build", "--sweep", "mini", "--output", "/proc/x"], "/proc/x")


def test_machine_ir_of_another_target_and_of_no_target(run: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "x.mir"
    triple = '--- |\n  target triple = "x86_64-linux"\n...\n'
    path.write_text(f"{triple}---\nname: f\nbody: |\n  bb.0:\n    RET64\n...\n")
    run.refuses(["normalize", path], path, "--arch")
    run.refuses(["normalize", path, "--arch", "gfx942"], path, "x86_64-linux")
    path.write_text("---\nname: f\nbody: |\n  bb.0:\n    %0:gr32 = COPY $edi\n...\n")
    run.refuses(["normalize", path, "--arch", "gfx942"], f"{path}:5", "gr32")
    path.write_text("---\nname: f\nbody: |\n  bb.0:\n    S_NOP 0\n")
    run.refuses(["normalize", path, "--arch", "gfx942"], path, "cut off")
    path.write_bytes(os.urandom(4096))
    run.refuses(["normalize", path, "--arch", "gfx942"], path)
    path.write_bytes(b"---\nname: f\0\n")
    run.refuses(["normalize", path, "--arch", "gfx942"], f"{path}:2", "binary")
    path.write_text("---\nname: f\nbody: |\n  bb.0:\n...\n---\nname: g\nbody: |\n  bb.0:\n...\n")
    run.refuses(["normalize", path, "--arch", "gfx942"], path, "f, g")
    run.refuses(["normalize", path, "--arch", "gfx942", "--function", "h"], "'h'")


def test_parquet_files_that_are_wrong(run: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "data" / ROW.arch / ROW.family / "test-00000-of-00001.parquet"
    command = ["evaluate", "--model", "compiler", "--dataset", tmp_path]
    write_parquet([ROW], path)
    whole, table = path.read_bytes(), parquet.read_table(path)
    for data in (b"PAR1 nothing here", whole[:-100]):
        path.write_bytes(data)
        run.refuses(command, path, "Parquet")
    for column in ("normalized", "assignment"):
        parquet.write_table(table.drop_columns([column]), path)
        run.refuses(command, path, column)
    write_parquet([replace(ROW, normalized=ROW.normalized + "S_NOP\n")], path)
    run.refuses(command, f"row {ROW.id}: the column 'id' is '{ROW.id}', its text says")


def test_nothing_is_half_written(run: CommandLine, tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("precious")
    run.refuses(["allocate", "--model", "linear-scan", ROW.id, "-o", target / "below"], "below")
    assert target.read_text() == "precious"
    run.refuses(["evaluate", "--model", "compiler", "--limit", 1, "--output-path", target], "file")
    assert target.read_text() == "precious"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("package", "arguments"),
    [
        ("leaderboard", ["submit", "folder", "--dry-run"]),
        ("dataset_builders", ["dataset", "check", "folder"]),
    ],
)
def test_another_projects_package_of_our_name_is_named(
    package: str, arguments: list[str], tmp_path: Path
) -> None:
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text("")
    command = "import sys; from verilocc_bench.cli import main; sys.exit(main(sys.argv[1:]))"
    # The current folder comes first on the path of `python -c`.
    done = subprocess.run(
        [sys.executable, "-c", command, *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert f"the package {package!r} in {tmp_path / package} is another project's" in done.stderr
