"""The HTML report in a browser: laid out, nothing fetched, no table cut off."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from verilocc_bench.cli import main

PROBE = """<script>
addEventListener("load", () => {
  const wide = document.documentElement.scrollWidth > innerWidth + 1;
  const drawn = [...document.querySelectorAll("svg")].filter(
    (svg) => svg.getBoundingClientRect().height > 100).length;
  const fetched = performance.getEntriesByType("resource").length;
  document.title = `wide=${wide} drawn=${drawn} fetched=${fetched}`;
});
</script>"""


@pytest.fixture
def chromium() -> str:
    """The browser; where there is none the test is skipped, but fails in CI."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        reason = "needs chromium"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return path


@pytest.mark.parametrize("width", [1200, 500])
def test_the_report_fits_its_window(
    width: int, chromium: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = []
    for model in ("compiler", "linear-scan", "graph-coloring"):
        folders.append(str(tmp_path / model))
        arguments = ["evaluate", "--model", model, "--limit", "2", "--arch", "gfx90a,sm_80"]
        assert main([*arguments, "--output-path", folders[-1]]) == 0
    page = tmp_path / "report.html"
    assert main(["report", *folders, "--format", "html", "-o", str(page)]) == 0
    capsys.readouterr()
    # The page forbids scripts; the probe is one.
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text())
    page.write_text(text.replace("</body>", f"{PROBE}</body>"))
    command = [chromium, "--headless=new", "--no-sandbox", "--disable-dev-shm-usage"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},2000"]
    command += ["--virtual-time-budget=5000", "--dump-dom", page.as_uri()]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    title = re.search(r"<title>(.*?)</title>", run.stdout)
    assert title is not None
    assert re.fullmatch(r"wide=false drawn=[3-9] fetched=0", title[1]), title[1]
