"""What the README shows is what the commands print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from verilocc_bench.cli import main

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
MODELS = ("compiler", "linear-scan", "graph-coloring")


@pytest.mark.slow
def test_the_table_is_what_evaluate_prints(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    # After `make evaluate` nothing is computed again, unless the code has changed since.
    output = ROOT / "results" if (ROOT / "results").is_dir() else tmp_path
    arguments = [argument for model in MODELS for argument in ("--model", model)]
    arguments += ["--output-path", str(output)]
    assert main(["evaluate", "--dataset", "mini", *arguments]) == 0
    printed = capsys.readouterr().out.rstrip("\n").split("\n")
    without_seconds = "\n".join(line.rsplit("  ", 1)[0].rstrip() for line in printed)
    assert f"```\n{without_seconds}\n```" in README


def test_ids_in_examples_exist() -> None:
    from verilocc_bench.dataset import load_rows

    known = {row.id for track in ("assign", "split") for row in load_rows("mini", track=track).rows}
    assert set(re.findall(r"\b[0-9a-f]{16}\b", README)) <= known


def test_the_index_names_every_page() -> None:
    folder = ROOT / "docs"
    linked = set(re.findall(r"\]\((\w[\w-]*\.md)\)", (folder / "README.md").read_text()))
    assert linked == {path.name for path in folder.glob("*.md")} - {"README.md"}
