"""The documentation site: built strictly; every page says for whom it is; code blocks run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from verilocc_bench.cli import main

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if path.name != "README.md")
WALKS = [DOCS / "start.md", *sorted((DOCS / "tutorials").glob("*.md"))]
_BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]*)\")?\n(.*?)^```$", re.M | re.S)
_STATUS = re.compile(r"ends with status (\d)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_says_at_its_top_for_whom_it_is(page: Path) -> None:
    title, blank, first, *_ = page.read_text().splitlines()
    assert title.startswith("# ")
    assert not blank
    assert first.startswith("For ")


@pytest.mark.parametrize("page", WALKS, ids=lambda page: page.stem)
def test_code_blocks_run_in_their_order(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    names: dict[str, Any] = {}
    ran = 0
    for language, title, code in _BLOCK.findall(page.read_text()):
        if language == "python" and title:
            (tmp_path / title).write_text(code)
        elif language == "python":
            exec(compile(code, str(page), "exec"), names)
        elif language == "sh":
            wanted = _STATUS.search(title)
            for line in code.splitlines():
                program, *arguments = shlex.split(line)
                assert program == "verilocc-bench"
                status = main(arguments)
                assert status == (int(wanted[1]) if wanted else 0), capsys.readouterr().err
        else:
            assert language in {"text", "yaml"}
            continue
        ran += 1
    sys.modules.pop("my_module", None)
    assert ran or page.stem == "submit"


def test_the_site_builds_without_a_dead_link(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    output = tmp_path / "site"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(output)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "", "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr
    for page in PAGES:
        assert (output / page.relative_to(DOCS)).with_suffix(".html").exists(), page
    for name, said in (
        ("python", "verilocc_bench.api.evaluating.evaluate"),
        ("command-line", "verilocc-bench dataset check"),
        ("results-schema", "registers_ratio"),
        ("opcodes", "v_mfma_f32_32x32x8_f16"),
    ):
        assert said in (output / "reference" / f"{name}.html").read_text(), name
