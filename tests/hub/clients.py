"""Clients of the local Hub, each a process of its own: the command line, and scripts."""

from __future__ import annotations

from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from tests.hub.accounts import OWNER_TOKEN
from tests.hub.programs import Program, programs_of
from tests.hub.server import LocalHub

NAME = "verilocc/regalloc"


def python(
    hub: LocalHub,
    home: Path,
    *arguments: str,
    token: str | None = OWNER_TOKEN,
    **variables: str,
) -> CompletedProcess[str]:
    """Runs a Python that is a client of this Hub."""
    return programs_of(hub, **variables).start(home, token, *arguments).wait()


def publish(
    hub: LocalHub, home: Path, folder: Path, *options: str, name: str = NAME, **more: Any
) -> CompletedProcess[str]:
    """`verilocc-bench publish` of a folder that need not pass the check."""
    return python(hub, home, *_publishing(folder, name, "--jobs", "2", *options), **more)


def _publishing(folder: Path, name: str, *options: str) -> tuple[str, ...]:
    return "-m", "tests.hub.unchecked", "publish", str(folder), "--repo-id", name, *options


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


def start_publishing(hub: LocalHub, home: Path, folder: Path) -> Program:
    """A publication that goes on while the test does."""
    return programs_of(hub).start(home, OWNER_TOKEN, *_publishing(folder, NAME))


def script(hub: LocalHub, home: Path, text: str, *arguments: str, **more: Any) -> str:
    """What a script prints that must succeed."""
    done = python(hub, home, "-c", text, *arguments, **more)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def command(hub: LocalHub, home: Path, *arguments: str, **more: Any) -> str:
    """What `verilocc-bench` prints; it must succeed."""
    done = python(hub, home, "-m", "verilocc_bench", *arguments, **more)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def write_files(folder: Path, files: dict[str, str]) -> Path:
    """A folder with files; those of Parquet need not be any."""
    for path, text in files.items():
        location = folder / path
        location.parent.mkdir(parents=True, exist_ok=True)
        location.write_text(text)
    return folder
