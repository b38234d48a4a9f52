"""Reports: what they say, what they keep apart, and what cannot get into them."""

from __future__ import annotations

import argparse
import base64
import json
import sys
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from tests.report.documents import chance_of_success, make_document, write_document
from verilocc_bench.cli.report_command import run as report_command
from verilocc_bench.errors import InputError, MissingExtraError
from verilocc_bench.report import html
from verilocc_bench.report.charts import pass_curve, section_charts
from verilocc_bench.report.pairing import answer_lines, certainty, rank_runs
from verilocc_bench.report.runs import ReportedRun, make_sections, read_runs, section_notes

EVIL = "=cmd|'x'!A1 </script><img src=x onerror=alert(1)> `a` [b](http://c.d) *e* _f_ $g$ &lt; | \\"


def report(folders: list[Path], format_name: str, output: Path | None = None) -> int:
    options = argparse.Namespace(
        folders=folders, format=format_name, output=output, dataset_id=None
    )
    return report_command(options)


def write_runs(folder: Path, *documents: dict[str, Any]) -> list[Path]:
    return [
        write_document(folder / f"run{number}", document)
        for number, document in enumerate(documents)
    ]


class Page(HTMLParser):
    """Tags that are open, cells by table, and what a browser would fetch or run."""

    VOID = ("meta", "path", "use", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.ids: list[str] = []
        self.fetched: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.text = ""
        self.scripts: list[str] = []
        self.policy = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")
        if dict(attrs).get("http-equiv") == "Content-Security-Policy":
            self.policy = dict(attrs).get("content") or ""
        for name, value in attrs:
            assert not name.startswith("on"), name
            if name == "id":
                self.ids.append(value or "")
            if name in ("src", "href", "xlink:href") and not (value or "").startswith("#"):
                self.fetched.append(value or "")
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
            return
        self.text += data
        if self.open and self.open[-1] in ("td", "th"):
            self.tables[-1][-1][-1] += data


def make_page(folders: list[Path], tmp_path: Path) -> Page:
    path = tmp_path / "out" / "report.html"
    assert report(folders, "html", path) == 0
    return Page(path.read_text())


def test_kinds_are_never_in_one_table(tmp_path: Path) -> None:
    documents = [
        make_document("a"),
        make_document("b", decoding="guided"),
        make_document("c", assistance="state"),
        make_document("d", track="split"),
        make_document("e", dataset_hash="cd" * 32),
        make_document("f", dataset="other"),
    ]
    folders = write_runs(tmp_path, *documents)
    page = make_page(folders, tmp_path)
    models = {document["config"]["model"] for document in documents}
    for table in page.tables:
        named = models & {cell for row in table for cell in row}
        assert len(named) == 1, table
    assert "there are 6 sections" in page.text
    assert "assign track, test split, are of 3 different datasets or versions" in page.text
    overall = [table for table in page.tables if table[0][:3] == ["run", "kernels", "samples"]]
    assert len(overall) == 6


def test_runs_of_one_kind_stand_side_by_side(tmp_path: Path) -> None:
    first, second = make_document("a", seed=1), make_document("b", seed=2)
    page = make_page(write_runs(tmp_path, first, second), tmp_path)
    (overall,) = (t for t in page.tables if t[0][:3] == ["run", "kernels", "samples"])
    rows = {row[0]: row for row in overall[1:]}
    assert rows.keys() == {"a", "b"}
    for document in (first, second):
        record = document["results"]["overall"]
        row = rows[document["config"]["model"]]
        cells = dict(zip(overall[0], row, strict=True))
        assert cells["pass@1"].startswith(f"{100 * record['pass@1']:.1f} % ")
        assert cells["registers/label"] == f"{record['registers_ratio']:.3f}"
    (failures,) = (t for t in page.tables if t[0] == ["kind", "a", "b"] and t[1][0] == "invalid")
    counts = [str(d["results"]["overall"]["failures"]["invalid"]) for d in (first, second)]
    assert failures[1] == ["invalid", *counts]


def test_pass_curves_against_the_product_form(tmp_path: Path) -> None:
    document = make_document(samples=6, k=(1, 5), chance=0.4)
    curve = pass_curve(ReportedRun("a", tmp_path, document))
    assert [k for k, _, _ in curve] == [1, 2, 3, 4, 5, 6]
    for k, value, band in curve:
        chances = [chance_of_success(r["samples"], r["valid"], k) for r in document["kernels"]]
        assert value == pytest.approx(sum(chances) / len(chances))
        assert band is not None
        assert band[0] <= value <= band[1]


def test_charts_have_words_and_data(tmp_path: Path) -> None:
    documents = [make_document("a", samples=4, k=(1, 4)), make_document("b", seed=5, samples=4)]
    documents.append(make_document("c", decoding="guided"))
    folders = write_runs(tmp_path, *documents)
    page = make_page(folders, tmp_path)
    assert {"figure", "figcaption", "details"} <= page.tags
    assert len(page.ids) == len(set(page.ids))
    document = json.loads(page.scripts[0])
    for place, section in enumerate(make_sections(read_runs(folders))):
        charts = section_charts(section)
        assert (
            json.loads(json.dumps([chart.spec for chart in charts]))
            == (document[str(place)]["charts"])
        )
        rows = document[str(place)]["kernels"]["rows"]
        assert {row["id"] for row in rows} == {k["id"] for r in section.runs for k in r.kernels}
    for words in ("Each curve is the chance", "verifier calls (across)", "how many vector"):
        assert words in page.text


def test_nothing_from_files_becomes_markup(tmp_path: Path) -> None:
    documents = [make_document(EVIL, samples=2), make_document("b", seed=1, samples=2)]
    for document in documents:
        record = document["results"]["overall"]
        record["unparsable"] = {EVIL: 3}
        document["dataset"]["name"] = EVIL
        document["versions"][EVIL] = EVIL
    page = make_page(write_runs(tmp_path, *documents), tmp_path)
    assert page.tags.isdisjoint({"img", "a", "link", "iframe"})
    assert page.fetched == []
    assert len(page.scripts) == 3
    assert EVIL in json.loads(page.scripts[0])["0"]["kernels"]["names"]
    # What may run is what the page has, and nothing else.
    hashes = [base64.b64encode(sha256(s.encode()).digest()).decode() for s in page.scripts[1:]]
    allowed = " ".join(f"'sha256-{each}'" for each in hashes)
    assert page.policy.endswith(f"script-src {allowed}")
    assert page.policy.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:;")
    assert any(row[:1] == [EVIL] for table in page.tables for row in table)


def test_markdown_shows_names_as_they_are(tmp_path: Path, capsys: Any) -> None:
    document = make_document(EVIL)
    document["results"]["overall"]["totals"] = {EVIL: 5}
    assert report(write_runs(tmp_path, document), "markdown") == 0
    rendered = MarkdownIt("commonmark").enable("table").render(capsys.readouterr().out)
    page = Page(rendered)
    assert page.tags.isdisjoint({"script", "img", "a", "em", "strong"})
    assert rendered.count("<code>") == 1  # of our own last line
    assert page.tables[0][1][0] == EVIL
    widths = [{len(row) for row in table} for table in page.tables]
    assert all(len(width) == 1 for width in widths)
    assert [EVIL, "5"] in page.tables[-1]


def whole_of(text: str, format_name: str) -> str:
    """All text of a report as its reader sees it."""
    return Page(text if format_name == "html" else MarkdownIt().render(text)).text


@pytest.mark.parametrize("format_name", ["markdown", "html"])
def test_what_no_file_can_hold_is_escaped(format_name: str, tmp_path: Path) -> None:
    odd, shown = "a \udcff\x1b\r\nb\u202e", r"a \u{dcff}\u{1b}\u{d}\u{a}b\u{202e}"
    document = make_document(f"model {odd}")
    document["config"]["revision"] = f"revision {odd}"
    document["dataset"]["revision"] = f"of data {odd}"
    document["dataset"]["name"] = f"dataset {odd}"
    document["versions"]["verilocc-bench"] = f"version {odd}"
    results = document["results"]
    results[f"gfx942/{odd}"] = results["overall"]
    results["overall"]["totals"] = {f"total {odd}": 5}
    output = tmp_path / "out"
    folders = write_runs(tmp_path, document, document)  # names that are told apart by folder
    assert report(folders, format_name, output) == 0
    seen = whole_of(output.read_text("utf-8"), format_name)
    assert all(character.isprintable() or character == "\n" for character in seen)
    wanted = [f"model {shown}", f"dataset {shown}", f"gfx942/{shown}"]
    if format_name == "html":  # the configuration is JSON, where a backslash is two
        wanted += [f"of data {shown}", json.dumps(f"revision {shown}")]
    assert [text for text in wanted if text not in seen] == []


@pytest.mark.parametrize("format_name", ["markdown", "html"])
def test_same_runs_same_bytes(format_name: str, tmp_path: Path) -> None:
    folders = write_runs(
        tmp_path, make_document("a", samples=3, k=(1, 3)), make_document("b", decoding="guided")
    )
    for name in ("first", "second"):
        assert report(folders, format_name, tmp_path / name) == 0
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_runs_have_names_and_a_folder_of_runs_stands_for_them(tmp_path: Path) -> None:
    folders = write_runs(tmp_path, make_document("a"), make_document("a"), make_document("b"))
    names = [f"a in {folders[0]}", f"a in {folders[1]}", "b"]
    assert [run.name for run in read_runs(folders)] == names
    assert [run.name for run in read_runs([tmp_path])] == names
    write_document(tmp_path, make_document("c"))
    assert [run.name for run in read_runs([tmp_path])] == ["c", *names]


def test_different_kernels_and_missing_samples_are_said(tmp_path: Path, capsys: Any) -> None:
    name = "a" * 100
    first, second = make_document(name), make_document("b", kernels=20)
    second["results"]["overall"]["infrastructure_failures"] = 7
    folders = write_runs(tmp_path, first, second)
    (section,) = make_sections(read_runs(folders))
    notes = " ".join(section_notes(section))
    assert f"different kernels ({name}: 24, b: 20; 20 in all of them)" in notes
    assert "machine failed (b: 7)" in notes
    assert report(folders, "markdown") == 0
    assert "20 in all of them)." in capsys.readouterr().out  # never cut short


def test_what_cannot_be_computed_is_a_dash(tmp_path: Path) -> None:
    page = make_page(write_runs(tmp_path, make_document("a", chance=0.0)), tmp_path)
    overall = page.tables[0]
    cells = dict(zip(overall[0], overall[1], strict=True))
    assert cells["pass@1"].startswith("0.0 %")
    assert cells["registers/label"] == cells["above bound"] == "–"
    assert "NaN" not in page.text
    assert "None" not in page.text


def test_bad_folders(tmp_path: Path) -> None:
    (folder,) = write_runs(tmp_path, make_document())
    empty = tmp_path / "empty"
    empty.mkdir()
    for folders, message in (
        ([tmp_path / "none"], "does not exist"),
        ([folder / "results.json"], "is not a folder"),
        ([empty], "expected a results.json in this folder"),
        ([folder, tmp_path / "run0" / ".." / "run0"], "the same run is given twice"),
    ):
        with pytest.raises(InputError, match=message):
            report(folders, "markdown")
    (folder / "results.json").write_text("[]")
    with pytest.raises(InputError, match=r"results\.json: at /: expected an object"):
        report([folder], "markdown")


@pytest.mark.parametrize("package", ["jinja2", "vl_convert"])
def test_only_html_needs_an_extra(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for function in (html.page_environment, html._vega):
        function.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    folders = write_runs(tmp_path, make_document())
    assert report(folders, "markdown", tmp_path / "out") == 0
    with pytest.raises(MissingExtraError, match=r"verilocc-bench\[report\]"):
        report(folders, "html")


def test_the_format_for_the_hub(tmp_path: Path) -> None:
    document = make_document()
    document["dataset"]["name"] = "a/b"
    folders, output = write_runs(tmp_path, document), tmp_path / "out"
    options = argparse.Namespace(
        folders=folders, format="eval-results", output=output, dataset_id="a/b"
    )
    assert report_command(options) == 0
    assert "task_id: overall_text_free_pass@1\n" in output.read_text()


def with_registers(model: str, valid: list[bool], registers: list[int]) -> dict[str, Any]:
    """A run over as many kernels of label 100, with these verdicts and registers."""
    document = make_document(model, kernels=len(valid))
    for kernel, right, used in zip(document["kernels"], valid, registers, strict=True):
        kernel |= {"valid": int(right), "registers": used if right else None}
        kernel["label_registers"] = 100 if right else None
    document["results"]["overall"]["pass@1"] = sum(valid) / len(valid)
    return document


def test_the_ranking_is_over_common_kernels(tmp_path: Path) -> None:
    # c is right on all of the few kernels that it was asked, b wrong on one of these.
    b = with_registers("b", [True] * 9 + [False], [100] * 10)
    a = with_registers("a", [True] * 10, [101] * 10)
    c = with_registers("c", [True] * 4, [90] * 4)
    (section,) = make_sections(read_runs(write_runs(tmp_path, b, a, c)))
    ranking = rank_runs(section)
    assert [each.run.name for each in ranking.figures] == ["c", "b", "a"]
    assert {each.asked for each in ranking.figures} == {4}
    assert ranking.figures[0].registers_ratio == pytest.approx(0.9)
    lines = answer_lines(ranking)
    assert "over 4 kernels that both solved, b uses 1.111" in lines[0]
    assert lines[0].endswith("(sign test p = 0.12), which is not a sure difference.")


def test_wins_and_losses_against_the_best(tmp_path: Path) -> None:
    best = with_registers("best", [True] * 12, [100] * 12)
    other = with_registers("other", [True] * 8 + [False] * 4, [99, 99, 100] + [101] * 9)
    folders = write_runs(tmp_path, other, best)
    page = make_page(folders, tmp_path)
    (pairs,) = (table for table in page.tables if "sign test, p" in table[0])
    row = dict(zip(pairs[0], pairs[1], strict=True))
    assert row["run"] == "other"
    assert row["pass@1 − best"].startswith("−33.3 %")
    assert row["only best solved"] == "4"
    assert row["only it solved"] == "0"
    assert [row[name] for name in ("fewer", "equal", "more")] == ["2", "1", "5"]
    # Exact, two-sided: 2 * (C(7,0) + C(7,1) + C(7,2)) / 2**7.
    assert float(row["sign test, p"]) == pytest.approx(2 * 29 / 128, abs=0.005)
    assert "★ best" in [table[1][0] for table in page.tables]
    assert "best is valid more often than other: by 33.3 %" in page.text


@pytest.mark.parametrize(
    ("interval", "said"),
    [
        ((0.1, 0.2), "sure"),
        ((-0.2, -0.1), "sure"),
        ((0.5, 0.5), "sure"),
        ((-0.1, 0.1), "not sure"),
        ((0.0, 0.2), "not sure"),
        ((0.0, 0.0), "equal"),
        ((None, None), "not sure"),
    ],
)
def test_what_an_interval_says(interval: Any, said: str) -> None:
    assert certainty(interval, 0.0, 20) == said
    assert certainty((1.0, 1.0), 0.0, 5) == "not sure"
