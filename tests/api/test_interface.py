"""The names that `import verilocc_bench` gives, and their types."""

from __future__ import annotations

import ast
import pydoc
import subprocess
import sys
from pathlib import Path

import pytest

import verilocc_bench as vb

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("users_script.py")


def test_the_stub_has_the_names_that_the_package_has() -> None:
    tree = ast.parse((ROOT / "verilocc_bench" / "__init__.pyi").read_text())
    homes = {
        alias.asname: f"{node.module}"
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert {"__version__", *homes} == set(vb.__all__)
    assert set(homes) - set(vb._HOME) == set(vb._ROOMS)
    for name, home in homes.items():
        assert vb._HOME.get(name, "verilocc_bench") == home
        assert getattr(vb, name) is not None


def test_names_are_of_one_thing_each() -> None:
    rooms = {path.stem for path in (ROOT / "verilocc_bench").iterdir()}
    assert not rooms & set(vb._HOME)
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = vb.no_such_name  # type: ignore[attr-defined]


def test_the_import_brings_no_other_module() -> None:
    """An interrupt meanwhile would end in a traceback."""
    code = "import sys\nown = {*sys.modules}\nimport verilocc_bench\nprint({*sys.modules} - own)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "{'verilocc_bench'}\n"


def test_help_lists_the_functions() -> None:
    text = pydoc.plain(pydoc.render_doc(vb))
    for name in ("load_problems(", "evaluate(", "verify(", "allocate(", "lower(", "show("):
        assert name in text


@pytest.mark.slow
def test_a_users_script_is_strictly_typed() -> None:
    # With the options of `make check`, whose cache it takes from there if there is one.
    command = [sys.executable, "-m", "mypy", "--strict", str(SCRIPT)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout


def test_a_users_script_runs(tmp_path: Path) -> None:
    from tests.api.users_script import main

    assert main(tmp_path) == 0.0
    assert (tmp_path / "kernel.mir").stat().st_size > 1_000
