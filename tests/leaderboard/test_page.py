"""The page in a browser: sorting, filters, details, keyboard, narrow, dark, and what axe finds."""

from __future__ import annotations

import html
import json
import random
import shutil
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from axe_core_python.selenium import Axe
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from leaderboard import boards as boards_module
from leaderboard import examining, render
from leaderboard.boards import Board
from leaderboard.document import document_text
from leaderboard.rendering import pages
from leaderboard.rendering.entries import OWN, BoardEntry, EntryFigures, Scope, read_entries
from leaderboard.rendering.history import History, history_plot
from leaderboard.rendering.pages import BoardPage
from leaderboard.rendering.register_picture import register_picture
from leaderboard.rendering.scatter import scatter_plot
from leaderboard.revalidate import COMMENT, REVALIDATION, revalidate
from leaderboard.seed import ENTRIES
from tests.browser import browser
from tests.leaderboard.submissions import Arena, Submitted, submitted
from tests.leaderboard.test_revalidate import broken
from tests.sampling import some_of
from verilocc_bench.allocators import BUILT_IN, Request
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import Row, load_rows
from verilocc_bench.edits.answer_files import answer_to_json
from verilocc_bench.report.occupation import occupation_of

pytestmark = pytest.mark.slow

__all__ = ["browser"]

SHARP = "<img src=x onerror=alert(1)>"


TOKENS = {"prompt_tokens": 61_175, "completion_tokens": 172, "cost": 0.35}


def entries_of(arena: Arena) -> dict[str, Submitted]:
    def drawn(seed: int, samples: int, **fields: Any) -> Submitted:
        found = submitted(arena, samples, **fields)
        lines = [dict(line) for line in found.lines]
        broken(arena, lines, random.Random(seed))
        found.lines = list(lines)
        return found

    model = {"assistance": "state", "decoding": "constrained"}
    part = submitted(arena, name="One architecture", architectures=["gfx90a"])
    ids = {row.id for row in arena.rows if row.arch == "gfx90a"}
    part.lines = [line for line in part.lines if line["id"] in ids]
    return {
        "compiler": submitted(arena),
        "drawn": drawn(1, 1, name="Another", authors=[SHARP], **TOKENS),
        "part": part,
        "small": drawn(2, 10, name="Small model", parameters=1_000_000, date="2026-01-05", **model),
        "large": drawn(
            3, 10, name="Large model", parameters=7_000_000_000, date="2026-03-01", **model
        ),
    }


@pytest.fixture(scope="module")
def site(arena_folder: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, board, (rows, trained) = arena_folder
    with pytest.MonkeyPatch.context() as patch:
        for module in (boards_module, examining, render):
            patch.setattr(module, "boards", lambda: (board,))
        arena = Arena(folder, board, rows, trained)
        root = tmp_path_factory.mktemp("page")
        (root / "entries").mkdir()
        for name, each in entries_of(arena).items():
            revalidate(each.write(root / name), root / f"out-{name}")
            shutil.copyfile(root / f"out-{name}" / REVALIDATION, root / "entries" / f"{name}.json")
        render.render(root / "entries", root / "site", dataset=str(folder))
    return root / "site"


@pytest.fixture
def page(browser: webdriver.Chrome, site: Path) -> Iterator[webdriver.Chrome]:
    browser.set_window_size(1280, 1000)
    browser.get((site / "index.html").as_uri())
    yield browser
    assert browser.get_log("browser") == []


def shown(page: webdriver.Chrome) -> list[list[str]]:
    """The names of the rows in sight, by table."""
    tables = page.find_elements(By.CSS_SELECTOR, "section[data-kind]")
    return [
        [
            link.text
            for link in table.find_elements(By.CSS_SELECTOR, "tbody a")
            if link.is_displayed()
        ]
        for table in tables
        if table.is_displayed()
    ]


def choose(page: webdriver.Chrome, name: str, value: str) -> None:
    Select(page.find_element(By.NAME, name)).select_by_value(value)


def figures(page: webdriver.Chrome, name: str) -> list[str]:
    found = page.find_elements(By.CSS_SELECTOR, f'tbody tr [data-figure="{name}"]')
    return [each.text.split("\n")[0].split(" %")[0] for each in found if each.is_displayed()]


def heading(page: webdriver.Chrome, text: str) -> Any:
    buttons = page.find_elements(By.CSS_SELECTOR, "thead button")
    return next(button for button in buttons if button.text.startswith(text))


def test_kinds_have_tables_of_their_own(page: webdriver.Chrome) -> None:
    first, second = shown(page)
    # What answers only a part of the kernels is not among those that answer all.
    assert first == ["The compiler", "Another"]
    assert set(second) == {"Small model", "Large model"}
    status = page.find_element(By.ID, "status")
    assert status.text.startswith("4 entries on 6 kernels; 1 more answers some architectures")
    text = page.find_element(By.TAG_NAME, "main").text
    assert text.count("The lower bound is ") == 1
    assert "verilocc-bench submit my-submission --from-run RUN" in text


def test_sorting(page: webdriver.Chrome) -> None:
    assert figures(page, "pass@1")[0] == "100.0"
    button = heading(page, "Entry")
    cell = button.find_element(By.XPATH, "..")
    button.click()
    assert cell.get_attribute("aria-sort") == "ascending"
    assert shown(page)[0] == ["Another", "The compiler"]
    button.click()
    assert cell.get_attribute("aria-sort") == "descending"
    assert shown(page)[0] == ["The compiler", "Another"]
    assert page.find_element(By.ID, "status").text == "sorted by Entry, descending"
    sorted_heads = page.find_elements(By.CSS_SELECTOR, "section:first-of-type th[aria-sort]")
    assert len(sorted_heads) == 1
    choose(page, "sort", "2")
    choose(page, "sort", "1")
    assert shown(page)[0] == ["Another", "The compiler"]


def test_filters(page: webdriver.Chrome, site: Path) -> None:
    choose(page, "architecture", "gfx90a")
    assert set(shown(page)[0]) == {"The compiler", "Another", "One architecture"}
    assert "on 2 kernels" in page.find_element(By.ID, "status").text
    choose(page, "parameters", "none")
    assert len(shown(page)) == 1
    choose(page, "parameters", "100000000")
    assert shown(page) == [["Small model"]]
    choose(page, "parameters", "10000000000")
    assert {name for table in shown(page) for name in table} == {"Small model", "Large model"}
    page.find_element(By.CSS_SELECTOR, "button[type=reset]").click()
    assert len(shown(page)) == 2
    choose(page, "kind", "state constrained")
    assert len(shown(page)) == 1
    page.find_element(By.CSS_SELECTOR, "button[type=reset]").click()
    page.find_element(By.NAME, "text").send_keys("onerror")
    assert shown(page) == [["Another"]]
    # The address keeps it.
    page.find_element(By.NAME, "text").clear()
    choose(page, "family", "mha")
    assert page.current_url.endswith("#family=mha")
    page.refresh()
    assert Select(page.find_element(By.NAME, "family")).first_selected_option.text == "mha"


def test_figures_are_those_of_the_documents(page: webdriver.Chrome, site: Path) -> None:
    entries = read_entries(site.parent / "entries")
    board = BoardPage(Board("small", "", "assign", "test", 6, ""), entries, ())
    for entry in entries:
        for task, record in entry.document["results"].items():
            arch, _, family = task.partition("/")
            scope = Scope() if task == "overall" else Scope(arch, family)
            found = board.figures[scope.key][entry.path]
            if found is None:  # it answers one architecture, and these are all
                assert (entry.submission["name"], task) == ("One architecture", "overall")
                continue
            assert found.kernels == record["n"]
            assert found.registers == record["registers_ratio"]
            assert found.above_bound == record["gap_to_bound"]
            for k, share, low, high in found.passed:
                expected = [record[f"pass@{k}{end}"] for end in ("", "_low", "_high")]
                assert [share, low, high] == expected
    # What the script writes is what the template wrote.
    before = page.find_element(By.CSS_SELECTOR, "section").text
    choose(page, "architecture", "sm_80")
    page.find_element(By.CSS_SELECTOR, "button[type=reset]").click()
    assert page.find_element(By.CSS_SELECTOR, "section").text == before


def test_by_keyboard_alone(page: webdriver.Chrome) -> None:
    body = page.find_element(By.TAG_NAME, "body")
    body.send_keys(Keys.TAB)
    assert page.switch_to.active_element.text == "Skip to the content"
    seen = []
    for _ in range(40):
        active = page.switch_to.active_element
        seen.append(active.get_attribute("name") or active.text.split("\n")[0])
        if active.tag_name == "button" and active.text.startswith("Entry"):
            active.send_keys(Keys.ENTER)
            break
        active.send_keys(Keys.TAB)
    assert {"architecture", "family", "sort", "text", "Show all"} <= set(seen)
    assert shown(page)[0] == ["Another", "The compiler"]
    outline = page.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_details(page: webdriver.Chrome, site: Path) -> None:
    told = "61,175 tokens in, 172 tokens out, cost 0.35"
    assert told in page.find_element(By.TAG_NAME, "main").text
    page.find_element(By.LINK_TEXT, "Another").click()
    assert page.find_element(By.TAG_NAME, "h1").text == "Another"
    text = page.find_element(By.TAG_NAME, "main").text
    assert SHARP in text
    assert told in text
    assert "verilocc-bench evaluate --model compiler" in text
    assert "What goes wrong" in text
    assert "no_answer" in text
    pictures = page.find_elements(By.CSS_SELECTOR, "figure img")
    assert pictures
    for picture in pictures:
        page.execute_script(
            "arguments[0].loading = 'eager'; arguments[0].scrollIntoView()", picture
        )
    loaded = "return [...document.images].every((each) => each.complete && each.naturalWidth > 0)"
    for _ in range(200):
        if page.execute_script(loaded):
            break
    assert page.execute_script(loaded)
    page.find_element(By.LINK_TEXT, "Leaderboard: small").click()
    assert page.find_element(By.TAG_NAME, "h1").text == "Leaderboard: small"


@pytest.mark.parametrize(
    "view",
    some_of(product(("index.html", "entries/small/another.html"), ("light", "dark"), (1280, 390))),
)
def test_axe_finds_nothing(page: webdriver.Chrome, site: Path, view: tuple[str, str, int]) -> None:
    path, scheme, width = view
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    media = [{"name": "prefers-color-scheme", "value": scheme}]
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
    try:
        page.get((site / path).as_uri())
        paper = page.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
        sideways = "return document.documentElement.scrollWidth > window.innerWidth"
        assert not page.execute_script(sideways)
        found = Axe().run(page)["violations"]
        assert [(each["id"], each["impact"], each["help"]) for each in found] == []
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_nothing_comes_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        text = path.read_text()
        for attribute in ('src="http', 'src="//', 'href="http', "url("):
            assert attribute not in text, path
        assert SHARP not in text
        assert "default-src 'none'" in html.unescape(text)
    readme = (site / "README.md").read_text()
    assert "sdk: static" in readme
    assert "app_file: index.html" in readme


def test_two_renderings_are_the_same(site: Path, tmp_path: Path, arena_folder: Any) -> None:
    folder, board, _ = arena_folder
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(render, "boards", lambda: (board,))
        again = Path(shutil.copytree(site, tmp_path / "again"))
        (again / "index.html").write_text("damaged")
        render.render(site.parent / "entries", again, dataset=str(folder))
    texts = [
        {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for root in (site, again)
    ]
    assert texts[0] == texts[1]


def test_a_picture_shows_every_place() -> None:
    for row in load_rows("mini").rows[::29]:
        problem = AllocationProblem.from_text(row.normalized)
        assert row.label is not None
        occupation = occupation_of(problem, row.label)
        text = register_picture(problem, occupation, "a & b")
        paths = ElementTree.fromstring(text).findall("{*}path[@fill]")
        shapes = sum(path.attrib["d"].count("z") for path in paths)
        assert shapes == len(occupation.spans)
        assert f"{occupation.used['vector']} used" in text
        assert text == register_picture(problem, occupation, "a & b")


def test_the_split_track_has_a_page(tmp_path: Path) -> None:
    """There are no labels, and spills go below the bound."""
    rows = load_rows("mini", track="split").rows
    with pytest.MonkeyPatch.context() as patch:
        lines = [
            {"id": row.id, "assignment": {}} if number else spilled(row)
            for number, row in enumerate(rows)
        ]
        board = next(board for board in boards_module.boards() if board.name == "mini-split")
        arena = Arena(tmp_path, board, rows, rows[0])
        found = Submitted({**submitted(arena).fields, "track": "split"}, lines)
        (tmp_path / "entries").mkdir()
        document = revalidate(found.write(tmp_path / "s"), tmp_path / "out")
        assert document["accepted"]
        assert document["results"]["overall"]["pass@1"] == 1 / len(rows)
        shutil.copyfile(tmp_path / "out" / REVALIDATION, tmp_path / "entries" / "a.json")
        patch.chdir(tmp_path)
        render.render(tmp_path / "entries", tmp_path / "site", dataset="mini")
    text = (tmp_path / "site" / "mini-split.html").read_text()
    assert "Lower bound" not in text
    assert "11.1 %" in text
    # What it spills counts here, not what it uses.
    cost = document["results"]["overall"]["spill_cost"]
    assert cost > 0
    assert f'data-figure="spill_cost" data-label="Spill cost a kernel" data-value="{cost}"' in text
    assert "Registers over" not in text
    entry = next((tmp_path / "site" / "entries" / "mini-split").glob("*.html")).read_text()
    assert "Spill cost" in entry
    comment = (tmp_path / "out" / COMMENT).read_text()
    assert f"| {cost:.3f}" in comment or f"{cost:,}" in comment


def spilled(row: Row) -> dict[str, Any]:
    """What spilling everything everywhere says."""
    answer = BUILT_IN["spill-everywhere"].allocate(
        Request(AllocationProblem.from_text(row.normalized))
    )
    return answer_to_json(row.id, answer)


def test_an_entry_of_another_revision_is_refused(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "entries").mkdir()
    shutil.copyfile(site.parent / "entries" / "compiler.json", tmp_path / "entries" / "a.json")
    command = [str(tmp_path / "entries"), "--output", str(tmp_path / "site")]
    assert render.main(command) == 2  # the boards are those of the package here
    assert "'The compiler' is of no board" in capsys.readouterr().err


def test_names_that_hold_the_folders_name_stay_apart(site: Path, tmp_path: Path) -> None:
    compiler = json.loads((site.parent / "entries" / "compiler.json").read_text())
    for number, name in enumerate(("my submissions", "my entries")):
        named = {**compiler, "submission": {**compiler["submission"], "name": name}}
        (tmp_path / f"{number}.json").write_text(document_text(named))
    assert len({entry.path for entry in read_entries(tmp_path)}) == 2


def test_what_cannot_be_rendered(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = ["--output", str(tmp_path / "site")]
    assert render.main([str(tmp_path / "none"), *output]) == 2
    assert "expected a folder" in capsys.readouterr().err
    entries = tmp_path / "entries"
    entries.mkdir()
    (entries / "a.json").write_text('{"format": 99}')
    assert render.main([str(entries), *output]) == 2
    assert "a.json: expected a document of leaderboard.revalidate" in capsys.readouterr().err
    (entries / "a.json").write_text('{"format": 1, "accepted": true}')
    assert render.main([str(entries), *output]) == 2
    assert "a.json: at /: the key 'submission' is missing" in capsys.readouterr().err
    compiler = json.loads((site.parent / "entries" / "compiler.json").read_text())
    for key, value, place in (
        ("kernels", [{**compiler["kernels"][0], "label_registers": "4"}], "/kernels/0/label_reg"),
        ("claims", [{"task": "overall"}], "/claims/0: the key 'figure' is missing"),
        ("submission", {**compiler["submission"], "measured": [{}]}, "/submission/measured: exp"),
    ):
        (entries / "a.json").write_text(document_text({**compiler, key: value}))
        assert render.main([str(entries), *output]) == 2
        assert f"a.json: at {place}" in capsys.readouterr().err
    for name in ("a", "b"):
        (entries / f"{name}.json").write_text(document_text(compiler))
    assert render.main([str(entries), *output]) == 2
    assert "a second entry named 'The compiler'" in capsys.readouterr().err
    (entries / "b.json").write_text(document_text(compiler | {"accepted": False}))
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "index.html").write_text("mine")
    assert render.main([str(entries), "--output", str(mine)]) == 2
    assert (mine / "index.html").read_text() == "mine"
    assert not (tmp_path / "site").exists()


def test_the_best_come_first_and_are_plotted(page: webdriver.Chrome, site: Path) -> None:
    section = page.find_element(By.CSS_SELECTOR, "section[data-kind]")
    rows = [row for row in section.find_elements(By.CSS_SELECTOR, "tbody tr") if row.is_displayed()]
    ranks = [row.find_element(By.CSS_SELECTOR, ".rank").text for row in rows]
    assert ranks == [str(place) for place in range(1, len(rows) + 1)]
    places = [row.find_element(By.CSS_SELECTOR, "[data-figure='pass@1']") for row in rows]
    shares = [float(place.get_attribute("data-value")) for place in places]
    assert shares == sorted(shares, reverse=True)
    titles = section.find_elements(By.CSS_SELECTOR, ".scatter g title")
    told = [title.get_attribute("textContent") for title in titles]
    names = [row.find_element(By.CSS_SELECTOR, "a").text for row in rows]
    for place, (name, share) in enumerate(zip(names, shares, strict=True), 1):
        assert any(
            text.startswith(f"{place}. {name}: pass@1 {100 * share:.1f} %") for text in told
        ), told
    choose(page, "architecture", "gfx90a")  # the entry for one architecture is ranked, too
    rows = [row for row in section.find_elements(By.CSS_SELECTOR, "tbody tr") if row.is_displayed()]
    ranks = [row.find_element(By.CSS_SELECTOR, ".rank").text for row in rows]
    places = [row.find_element(By.CSS_SELECTOR, "[data-figure=score]") for row in rows]
    scores = [place.get_attribute("data-value") for place in places]
    assert scores == sorted(scores, key=float, reverse=True)
    assert ranks == [str(1 + scores.index(each)) for each in scores]


def test_places_in_a_plot() -> None:
    """A better share lies to the right, better valid answers higher; ends are in order."""

    def figures(share: float, quality: float) -> EntryFigures:
        passed = ((1, share, max(0.0, share - 0.1), min(1.0, share + 0.1)),)
        score = (share * quality, None, None)
        return EntryFigures(9, 9, passed, 1.0, None, None, None, None, None, None, score)

    entries = read_entries(ENTRIES / "mini-expert")[:3]
    values = [(0.9, 0.2), (1.0, 0.95), (0.5, 0.4)]
    plot = scatter_plot(
        entries,
        [1, 2, 3],
        {Scope().key: {e.path: figures(*v) for e, v in zip(entries, values, strict=True)}},
    )
    assert plot is not None
    first, second, third = plot.spots
    assert third.x < first.x < second.x
    assert second.y < third.y < first.y  # y grows downwards
    for spot in plot.spots:
        assert plot.left <= spot.low < spot.x <= spot.high <= plot.width
        assert 0 <= spot.y <= plot.bottom
    assert plot.across[-1].text == "100 %"
    one = {Scope().key: {entries[0].path: figures(1.0, 1.0)}}
    assert scatter_plot(entries[:1], [1], one) is None


def test_own_entries_are_ranked_by_score_and_equal_ones_share_a_place() -> None:
    entries = read_entries(ENTRIES / "mini")
    board = next(each for each in boards_module.boards() if each.name == "mini")
    page = BoardPage(board, entries, [board])
    assert all(section.meaning for section in page.sections)  # words for every kind
    table = page.sections[0]
    scores = [page.figures[Scope().key][each.path] for each in table.entries]
    found = [each.score[0] for each in scores if each is not None and each.score is not None]
    assert found == sorted(found, reverse=True)
    assert [name_of(each) for each in table.entries[:2]] == ["best", "tabu-search"]
    assert found[0] == found[1] > found[2]
    assert list(table.ranks[:3]) == [1, 1, 3]
    assert [page.possible[each.key] for each in (Scope(), Scope("sm_80"))] == [(59, 60), (25, 26)]
    # Entries with wrong answers, which know no label, may stand last.
    by_failures = sorted(
        entries, key=lambda each: sum(k["valid"] for k in each.kernels), reverse=True
    )
    assert BoardPage(board, by_failures, [board]).bound == page.bound
    assert page.bound[Scope().key] == pytest.approx(0.980, abs=5e-4)


def name_of(entry: BoardEntry) -> str:
    return str(entry.submission["name"])


def test_a_copy_of_a_base_line_is_marked(tmp_path: Path) -> None:
    document = json.loads((ENTRIES / "mini-expert" / "linear-scan.json").read_text())
    (tmp_path / "own.json").write_text(document_text(document))
    document["submission"] |= {"name": "Mine", "authors": ["Me"]}
    (tmp_path / "copy.json").write_text(document_text(document))
    (board,) = (each for each in boards_module.boards() if each.name == "mini-expert")
    page = BoardPage(board, read_entries(tmp_path), [board])
    assert pages.board_page(page).count("every figure is that of linear-scan") == 1


def test_the_history_has_a_step_for_each_new_leader() -> None:
    def entry(name: str, day: str | None, authors: str = "Somebody") -> BoardEntry:
        told = {"name": name, "date": day, "authors": [authors]}
        return BoardEntry({"submission": told, "board": {"name": "x", "track": "assign"}})

    def history(*dated: tuple[BoardEntry, float]) -> History | None:
        none, ones = (None,) * 7, ((1, 1.0, None, None),)
        found = {
            each.path: EntryFigures(4, 4, ones, *none, (one, None, None)) for each, one in dated
        }
        ranks = range(1, len(dated) + 1)
        return history_plot([each for each, _ in dated], ranks, {Scope().key: found})

    # Sorted by rank: the best came last.
    best, second = entry("best", "2026-03-01"), entry("second", "2026-01-01")
    third, base = entry("third", "2026-02-01"), entry("base", None, OWN)
    plot = history((best, 0.9), (second, 0.8), (third, 0.7), (base, 0.6))
    assert plot is not None
    assert [spot.rank for spot in plot.spots] == [4, 2, 3, 1]  # by date, the base line first
    assert plot.spots[0].x < plot.spots[1].x < plot.spots[2].x < plot.spots[3].x
    line = [tuple(map(float, point.split(","))) for point in plot.leader.split()]
    heights = {spot.rank: spot.y for spot in plot.spots}
    assert list(dict.fromkeys(y for _, y in line)) == [heights[4], heights[2], heights[1]]
    assert (plot.across[0].text, plot.across[-1].text) == ("2026-01-01", "2026-03-01")
    assert history((second, 0.8), (base, 0.6)) is None  # one day alone


@pytest.mark.parametrize(
    "missing", [("./nothing", "nothing"), ("jinja2", "[page]"), ("markupsafe", "[page]")]
)
def test_what_is_missing_is_told_in_one_line(
    missing: tuple[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name, said = missing
    entries = Path(shutil.copytree(ENTRIES / "mini-expert", tmp_path / "entries" / "mini-expert"))
    arguments = [str(entries.parent), "--output", str(tmp_path / "site")]
    if name.startswith("."):
        arguments += ["--dataset", name]
    else:
        monkeypatch.setitem(sys.modules, name, None)
        pages._environment.cache_clear()
    assert render.main(arguments) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert said in error
    assert not (tmp_path / "site").exists()
