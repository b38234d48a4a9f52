"""Clients of the local Hub, each a fresh Python: the command line, and scripts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.hub.accounts import OWNER_TOKEN
from tests.hub.server import ROOT, LocalHub
from tests.hub.unchecked import quick_publisher

NAME = "verilocc/regalloc"

UNREACHABLE = LocalHub("http://127.0.0.1:9")
"""Where nobody listens."""


def publish(
    hub: LocalHub,
    home: Path,
    folder: Path,
    *options: str,
    token: str | None = OWNER_TOKEN,
    name: str = NAME,
    **variables: str,
) -> subprocess.CompletedProcess[str]:
    """`verilocc-bench publish` of a folder that need not pass the check."""
    arguments = ["publish", str(folder), "--repo-id", name, "--jobs", "2", *options]
    if not variables and hub is not UNREACHABLE:
        return quick_publisher(hub).run(arguments, token)
    return hub.python(home, "-m", "tests.hub.unchecked", *arguments, token=token, **variables)


def published(hub: LocalHub, home: Path, folder: Path, *options: str, **more: Any) -> str:
    """What a publication says that must succeed."""
    done = publish(hub, home, folder, *options, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(hub: LocalHub, home: Path, folder: Path, *options: str, **more: Any) -> str:
    """The one line of a publication that must fail."""
    done = publish(hub, home, folder, *options, **more)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    line = done.stderr.replace("\r", "\n").strip().splitlines()[-1]
    assert line.startswith("verilocc-bench publish: ")
    assert "Traceback" not in done.stderr
    return line.removeprefix("verilocc-bench publish: ")


def start_publishing(hub: LocalHub, home: Path, folder: Path) -> subprocess.Popen[bytes]:
    """A publication that goes on while the test does."""
    command = [sys.executable, "-m", "tests.hub.unchecked", "publish", str(folder)]
    return subprocess.Popen(
        [*command, "--repo-id", NAME],
        env=hub.environment(home),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def script(hub: LocalHub, home: Path, text: str, *arguments: str, **more: Any) -> str:
    """What a script prints that must succeed."""
    done = hub.python(home, "-W", "error::UserWarning", "-c", text, *arguments, **more)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def command(hub: LocalHub, home: Path, *arguments: str, **more: Any) -> str:
    """What `verilocc-bench` prints; it must succeed."""
    done = hub.python(home, "-m", "verilocc_bench", *arguments, **more)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def write_files(folder: Path, files: dict[str, str]) -> Path:
    """A folder with files; those of Parquet need not be any."""
    for path, text in files.items():
        location = folder / path
        location.parent.mkdir(parents=True, exist_ok=True)
        location.write_text(text)
    return folder
