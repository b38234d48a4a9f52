"""A browser for tests, and looking at one page at a width in light or dark."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from axe_core_python.selenium import Axe
from selenium import webdriver


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        reason = "needs chromium and its driver (Debian: chromium, chromium-driver)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(str(shutil.which("chromedriver")))
    driver = webdriver.Chrome(options, service)
    driver.set_page_load_timeout(300)
    driver.set_script_timeout(300)
    yield driver
    driver.quit()


@contextmanager
def opened(
    browser: webdriver.Chrome, path: Path, width: int, scheme: str
) -> Iterator[webdriver.Chrome]:
    """The page at a width, in light or dark; at the end, what axe or the console says fails."""
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    media = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
    try:
        browser.get(path.as_uri())
        paper = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
        yield browser
        sideways = "return document.documentElement.scrollWidth > window.innerWidth"
        assert not browser.execute_script(sideways)
        fetched = "return performance.getEntriesByType('resource').length"
        assert browser.execute_script(fetched) == 0
        found = Axe().run(browser)["violations"]
        assert [
            (each["id"], each["impact"], each["nodes"][0]["html"][:200]) for each in found
        ] == []
        assert browser.get_log("browser") == []
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
