"""The report and the page of a kernel in a browser: drawn, whole, sortable, clean for axe."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait

from tests.browser import browser, opened
from tests.report.test_kernel_page import ROW, label_of, two_in_one_place
from verilocc_bench.cli import main
from verilocc_bench.report.kernel_page import kernel_page
from verilocc_bench.report.occupation import occupation_of

__all__ = ["browser"]

LOOKS = [(1200, "light"), (500, "dark")]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    root = tmp_path_factory.mktemp("runs")
    for model in ("compiler", "linear-scan", "graph-coloring"):
        arguments = ["evaluate", "--model", model, "--limit", "3", "--arch", "gfx90a,sm_80"]
        assert main([*arguments, "--output-path", str(root / model)]) == 0
    return sorted(root.iterdir())


@pytest.fixture(scope="module")
def report(runs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    assert main(["report", *map(str, runs), "--format", "html", "-o", str(path)]) == 0
    return path


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_the_report(
    width: int, scheme: str, browser: webdriver.Chrome, runs: list[Path], report: Path
) -> None:
    with opened(browser, report, width, scheme) as page:
        drawn = "return document.documentElement.dataset.drawn === '4'"
        WebDriverWait(page, 60).until(lambda each: each.execute_script(drawn))
        charts = page.find_elements(By.CSS_SELECTOR, ".chart svg")
        assert len(charts) == 4
        assert all(chart.size["height"] > 200 for chart in charts)
        assert all(0 < chart.size["width"] <= width for chart in charts)
        # The legend is there once. A click in it shows a run alone.
        assert not page.find_elements(By.CSS_SELECTOR, ".chart .role-legend")
        faint = '.chart .mark-symbol path[opacity="0.03"]'
        faded = f"return document.querySelectorAll('{faint}').length"
        before = page.execute_script(faded)
        page.execute_script("document.querySelector('.legend button').click()")
        WebDriverWait(page, 20).until(lambda each: each.execute_script(faded) > before == 0)
        page.execute_script("document.querySelector('.legend button').click()")

        def column(heading: str) -> list[str]:
            places = [b.text for b in page.find_elements(By.CSS_SELECTOR, ".kernels thead button")]
            rows = page.find_elements(By.CSS_SELECTOR, ".kernels tbody tr")
            cells = [row.find_elements(By.XPATH, "./*") for row in rows]
            return [each[places.index(heading)].get_attribute("textContent") for each in cells]

        buttons = page.find_elements(By.CSS_SELECTOR, ".kernels thead button")
        button = next(each for each in buttons if each.text == "instructions")
        page.execute_script("arguments[0].click()", button)
        sizes = [int(text.replace(",", "")) for text in column("instructions")]
        assert sizes == sorted(sizes)
        assert len(sizes) == 12
        page.execute_script("arguments[0].click()", button)
        assert [int(text.replace(",", "")) for text in column("instructions")] == sizes[::-1]

        documents = [json.loads((run / "results.json").read_text()) for run in runs]
        kernels = [kernel for document in documents for kernel in document["kernels"]]
        failed = {kernel["id"] for kernel in kernels if kernel["valid"] < kernel["samples"]}
        Select(page.find_element(By.CSS_SELECTOR, ".kernels select")).select_by_value("failed")
        assert set(column("kernel")) == failed
        assert failed
        assert "wrong" in column("linear-scan") + column("graph-coloring")
        first = page.find_element(By.CSS_SELECTOR, ".kernels tbody button")
        page.execute_script("arguments[0].click()", first)
        command = page.find_element(By.CSS_SELECTOR, ".command").text.splitlines()
        assert command[0] == f"verilocc-bench show {first.text} -o {first.text}.html"
        assert command[1].startswith("verilocc-bench failures ")
        words = page.find_element(By.CSS_SELECTOR, ".kernels input")
        words.send_keys("nothing like it")
        assert column("kernel") == []


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_the_page_of_a_kernel(
    width: int, scheme: str, browser: webdriver.Chrome, tmp_path: Path
) -> None:
    problem, wrong = two_in_one_place(ROW)
    shown = [occupation_of(problem, wrong, "wrong"), occupation_of(problem, label_of(ROW), "label")]
    path = tmp_path / "page.html"
    path.write_text(kernel_page(problem, shown if width > 800 else shown[:1], "a kernel"))
    with opened(browser, path, width, scheme) as page:
        canvas = page.find_element(By.TAG_NAME, "canvas")
        height = canvas.size["height"]
        tip = page.find_element(By.ID, "tip")
        for down in range(100, height, 6):
            ActionChains(page, duration=0).move_to_element_with_offset(
                canvas, 0, down - height // 2
            ).perform()
            if tip.is_displayed() and tip.text.startswith("%"):
                break
        register = tip.text.partition(",")[0].partition(" ")[0]
        lit = page.find_elements(By.CSS_SELECTOR, "#text b.on")
        assert lit
        assert {each.get_attribute("textContent") for each in lit} == {register}
        lines = problem.normalized.splitlines()
        assert len(lit) == problem.normalized.split("bb0", 1)[1].count(register) - sum(
            line.count(f"{register}{digit}") for line in lines for digit in range(10)
        )
        shown_points = "return view[1] - view[0]"
        before = page.execute_script(shown_points)
        page.find_element(By.ID, "in").click()
        assert page.execute_script(shown_points) == pytest.approx(before / 2, abs=1)
        page.find_element(By.CSS_SELECTOR, ".findings button").click()
        assert page.find_element(By.ID, "find").get_attribute("value").startswith("%")
        assert page.execute_script(shown_points) <= 81
        colours = (
            "const c = document.querySelector('canvas'); const d = c.getContext('2d')"
            ".getImageData(0, 0, c.width, c.height).data; const found = new Set();"
            "for (let i = 0; i < d.length; i += 388) found.add(d.slice(i, i + 4).join());"
            "return found.size"
        )
        page.find_element(By.ID, "whole").click()
        assert page.execute_script(colours) > 8
