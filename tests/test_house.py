"""The house is in order: versions, layout, public names, what installs without extras."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import verilocc_bench
from verilocc_bench.dataset import embedded_path

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_versions_agree() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    released = re.search(r"^## \[(\d[^\]]*)\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    manifest = json.loads((embedded_path() / "manifest.json").read_text())
    assert released is not None
    assert verilocc_bench.__version__ == PROJECT["version"] == citation["version"] == released[1]
    assert str(citation["date-released"]) == released[2]
    assert manifest["versions"]["verilocc-bench"] == PROJECT["version"]


def test_constraints_pin_every_requirement() -> None:
    pins = dict(
        line.split("==")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if line and not line.startswith("#")
    )
    assert pins["torch"] == "2.13.0"
    extras = PROJECT["optional-dependencies"].values()
    for requirement in [*PROJECT["dependencies"], *(r for extra in extras for r in extra)]:
        name = re.split(r"[\[<>=;! ]", requirement)[0].lower()
        assert name in {*pins, "verilocc-bench"}, requirement


def test_public_names_exist_and_have_docstrings() -> None:
    for package in ("verilocc_bench", "dataset_builders", "leaderboard"):
        for path in sorted((ROOT / package).rglob("*.py")):
            tree = ast.parse(path.read_text())
            assert ast.get_docstring(tree), path
            exported = [
                ast.literal_eval(node.value)
                for node in tree.body
                if isinstance(node, ast.Assign)
                and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets)
            ]
            defined = {name for node in ast.walk(tree) for name in _names(node)}
            for name in exported[0] if exported else ():
                assert name in defined, f"{path}: {name}"


def _names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name for alias in node.names]
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return [node.id]
    return []


HEAVY = ("torch", "transformers", "triton", "llvmlite", "matplotlib", "datasets", "pyarrow")


@pytest.mark.parametrize(
    "command",
    [["--help"], ["evaluate", "--help"], ["--version"], ["build", "--help"], ["publish", "--help"]],
)
def test_help_imports_nothing_heavy(command: list[str]) -> None:
    script = (
        "import sys\nfrom verilocc_bench.cli import main\n"
        f"try:\n    main({command!r})\nexcept SystemExit as end:\n    assert not end.code\n"
        f"found = [name for name in {HEAVY!r} if name in sys.modules]\nassert not found, found\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


def test_verify_imports_no_model_code() -> None:
    script = (
        "import sys\nimport verilocc_bench.cli.verify_command\n"
        "found = [n for n in ('torch', 'transformers', 'triton', 'datasets') if n in sys.modules]\n"
        "assert not found, found\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


def test_the_embedded_dataset_is_small() -> None:
    size = sum(path.stat().st_size for path in embedded_path().rglob("*") if path.is_file())
    assert size <= 4 << 20
