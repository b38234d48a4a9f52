"""What the README and the pages show is what the commands print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.figures import THEMES, pipeline, shown
from verilocc_bench.cli import main

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
EVALUATING = (ROOT / "docs" / "evaluating.md").read_text()
MODELS = [f"--model={model}" for model in ("compiler", "linear-scan", "graph-coloring")]
BLOB = "https://github.com/verilocc/verilocc-bench/blob/main/"
TREE = "https://github.com/verilocc/verilocc-bench/tree/main/"
RAW = "https://raw.githubusercontent.com/verilocc/verilocc-bench/main/"


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def printed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["evaluate", *arguments]) == 0
    return capsys.readouterr().out.rstrip("\n")


@pytest.mark.slow
def test_the_table_is_what_evaluate_prints(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    # After `make evaluate` nothing is computed again, unless the code has changed since.
    output = ROOT / "results" if (ROOT / "results").is_dir() else tmp_path
    arguments = ["--dataset", "mini", *MODELS, "--output-path", str(output)]
    assert f"```\n{printed(arguments, capsys)}\n```" in EVALUATING
    columns = "kernels,fewer,more,above bound,occupancy +/-"
    assert f'--columns "{columns}"' in EVALUATING
    assert "fewer" in printed([*arguments, "--columns", columns], capsys)


@pytest.mark.slow
def test_the_readmes_table_is_what_evaluate_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert "`evaluate --arch gfx942 --model compiler --model linear-scan" in README
    table = printed(["--arch", "gfx942", *MODELS], capsys)
    assert f"```\n{table}\n```" in README
    assert max(map(len, table.splitlines())) <= 80


def test_the_readme_is_one_screen_with_doors() -> None:
    assert len(README.splitlines()) <= 150
    assert "make evaluate" in README
    assert "make test" in README


def test_the_links_of_the_readme_are_absolute_and_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)]+)\)|(?:src|srcset)=\"([^\"]+)\"", README)
    places = [first or second for first, second in links]
    assert len(places) > 15
    for place in places:
        assert place.startswith("https://"), place
        for start in (BLOB, TREE, RAW):
            if place.startswith(start):
                path, _, heading = place.removeprefix(start).partition("#")
                assert (ROOT / path).exists(), place
                if heading:
                    words = re.findall(r"^#+ (.*)$", (ROOT / path).read_text(), re.M)
                    assert heading in {word.lower().replace(" ", "-") for word in words}, place


def test_the_links_of_the_pages_lead_somewhere() -> None:
    for page in sorted((ROOT / "docs").glob("*.md")):
        for place in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            path = place.partition("#")[0]
            if path and not re.match(r"[a-z]+:", path):
                assert (page.parent / path).exists(), f"{page.name}: {place}"


@pytest.mark.parametrize("name", THEMES)
def test_the_figures_are_what_their_script_makes(name: str) -> None:
    folder = ROOT / "docs" / "images"
    assert (folder / f"pipeline-{name}.svg").read_text() == pipeline(THEMES[name])
    assert (folder / f"show-{name}.svg").read_bytes() == shown(THEMES[name])


def test_ids_in_examples_exist() -> None:
    from verilocc_bench.dataset import load_rows

    known = {row.id for track in ("assign", "split") for row in load_rows("mini", track=track).rows}
    for page in (README, EVALUATING, (ROOT / "docs" / "one-kernel.md").read_text()):
        assert set(re.findall(r"\b[0-9a-f]{16}\b", page)) <= known


def test_the_index_names_every_page() -> None:
    folder = ROOT / "docs"
    linked = set(re.findall(r"\]\((\w[\w-]*\.md)\)", (folder / "README.md").read_text()))
    assert linked == {path.name for path in folder.glob("*.md")} - {"README.md"}
