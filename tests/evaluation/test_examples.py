"""The examples do what their READMEs show."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.command_line import CommandLine
from verilocc_bench.allocators import FailureKind, Request, Response
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import load_rows
from verilocc_bench.evaluation.models.command import command_allocator
from verilocc_bench.settings.program import ProgramSettings
from verilocc_bench.verification import Verifier

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
COMPILE = "cc -std=c99 -O2 -o first_fit first_fit.c"


@pytest.fixture(autouse=True)
def python3_is_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = str(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", folder + os.pathsep + os.environ["PATH"])
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture(scope="module")
def c_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled example in C."""
    readme = (EXAMPLES / "command_c" / "README.md").read_text()
    assert COMPILE in readme
    compiler = shutil.which("cc")
    if compiler is None:
        if os.environ.get("CI") == "true":
            pytest.fail("needs a C compiler")
        pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("c")
    shutil.copy(EXAMPLES / "command_c" / "first_fit.c", folder)
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    subprocess.run([*shlex.split(COMPILE), *strict], cwd=folder, check=True)
    return folder / "first_fit"


def shown(folder: str) -> tuple[list[str], str]:
    """The command of an example's README, and what it shows as its output."""
    blocks = re.findall(
        r"^```\n(.*?)\n```$", (EXAMPLES / folder / "README.md").read_text(), re.M | re.S
    )
    at = next(n for n, block in enumerate(blocks) if block.startswith("verilocc-bench evaluate"))
    return shlex.split(blocks[at])[1:], blocks[at + 1]


def printed(arguments: list[str], run: CommandLine) -> str:
    """What the command prints. In 80 characters there is no room for seconds."""
    return run(*arguments).out.rstrip("\n")


@pytest.mark.parametrize(
    "folder", ["python_function", "python_class", "command_python", "predictions"]
)
def test_an_example_prints_what_its_readme_shows(
    folder: str, monkeypatch: pytest.MonkeyPatch, run: CommandLine
) -> None:
    arguments, expected = shown(folder)
    monkeypatch.chdir(EXAMPLES / folder)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    with only_modules_of(EXAMPLES / folder):
        assert printed(arguments, run) == expected


@contextmanager
def only_modules_of(folder: Path) -> Iterator[None]:
    """Another test may have imported a module of the same name; and others will."""
    names = {path.stem for path in folder.glob("*.py")}
    others = {name: sys.modules.pop(name) for name in names & sys.modules.keys()}
    try:
        yield
    finally:
        for name in names & sys.modules.keys():
            del sys.modules[name]
        sys.modules.update(others)


def test_the_plug_in_is_found_by_its_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: CommandLine
) -> None:
    project = tomllib.loads((EXAMPLES / "plug_in" / "pyproject.toml").read_text())
    metadata = project["project"]
    # What installing it would leave behind; building it would need a network.
    folder = tmp_path / f"{metadata['name'].replace('-', '_')}-{metadata['version']}.dist-info"
    folder.mkdir()
    fields = (
        "Metadata-Version: 2.4",
        f"Name: {metadata['name']}",
        f"Version: {metadata['version']}",
    )
    (folder / "METADATA").write_text("\n".join(fields) + "\n")
    lines = []
    for group, entries in metadata["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())]
    (folder / "entry_points.txt").write_text("\n".join(lines) + "\n")
    for package in project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]:
        shutil.copytree(EXAMPLES / "plug_in" / package, tmp_path / package)
    arguments, expected = shown("plug_in")
    run(*arguments, status=2)  # not yet
    monkeypatch.syspath_prepend(tmp_path)
    assert printed(arguments, run) == expected
    assert "widest-first" in run("list", "models").out


def test_the_program_in_c_prints_what_its_readme_shows(
    c_program: Path, monkeypatch: pytest.MonkeyPatch, run: CommandLine
) -> None:
    arguments, expected = shown("command_c")
    monkeypatch.chdir(c_program.parent)
    assert printed(arguments, run) == expected


def test_the_two_programs_agree_and_what_they_answer_is_valid(c_program: Path) -> None:
    script = EXAMPLES / "command_python" / "interval_allocator.py"
    rows = [row for row in load_rows("mini").rows if row.n_instructions < 400]
    problems = [AllocationProblem.from_text(row.normalized) for row in rows]
    # Escapes and nesting that a small reader of JSON must get over.
    requests = [Request(problem, sample=1, seed=2**63) for problem in problems]
    found: list[list[Response]] = []
    for command in (f"python3 {shlex.quote(str(script))}", shlex.quote(str(c_program))):
        allocator = command_allocator(command, ProgramSettings(), 1)
        responses = dict(allocator.respond(requests))
        allocator.close()
        found.append([responses[place] for place in range(len(requests))])
    valid = 0
    for problem, first, second in zip(problems, *found, strict=True):
        assert first.answer == second.answer
        assert first.failure == second.failure
        if first.answer is None:
            assert first.failure is FailureKind.NO_ANSWER
        else:
            assert Verifier(problem).verify(first.answer).valid, problem.id
            valid += 1
    assert valid > len(problems) // 2


def test_the_script_writes_the_answers_file() -> None:
    script = EXAMPLES / "predictions" / "write_answers.py"
    written = subprocess.run([sys.executable, str(script)], capture_output=True, check=True)
    assert written.stdout == script.with_name("answers.jsonl").read_bytes()
