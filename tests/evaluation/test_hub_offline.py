"""Without a network: what needs none works, and a dataset of the Hub is one clear line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from verilocc_bench.dataset import embedded_path, load_rows

pytestmark = pytest.mark.slow

OFFLINE = {"HF_HUB_OFFLINE": "1"}
UNREACHABLE = {"HF_ENDPOINT": "http://127.0.0.1:9"}
COMMIT = "0123456789abcdef0123456789abcdef01234567"
NOT_THERE = (
    "not in the Hub's local cache, and the Hub cannot be reached "
    "(no connection, or HF_HUB_OFFLINE is set)"
)

CACHE = """
import os, shutil, sys
from pathlib import Path
import datasets
datasets.disable_progress_bars()
home = Path(sys.argv[1])
shutil.copytree(sys.argv[2], home / "name")
builder = datasets.load_dataset_builder(str(home / "name"), "default")
builder.download_and_prepare()
cached = home / "datasets" / "owner___name" / "default" / "0.0.0" / sys.argv[3]
cached.parent.mkdir(parents=True)
shutil.copytree(builder.cache_dir, cached)
os._exit(0)
"""
"""Leaves a dataset in the cache as a load from the Hub does, under the commit's name.

It leaves without the interpreter's last steps: there a thread of Arrow's that still has to let
go of the file it read has been seen to end the process in an error
(https://github.com/apache/arrow/issues/34314). What is tested are other processes.
"""

READ = """
import sys
from verilocc_bench.dataset import load_rows
from verilocc_bench.errors import InputError
for asked in sys.argv[1:]:
    name, split, track, revision = asked.split(" ")
    try:
        print(load_rows(name, split=split, track=track, revision=revision or None).hash)
    except InputError as error:
        print(error)
"""

REACHABLE = """
import datasets, huggingface_hub
real = datasets.load_dataset_builder
huggingface_hub.HfApi.dataset_info = lambda *_, **__: None
datasets.disable_progress_bars()
datasets.load_dataset_builder = lambda name, *more, **_: real(sys.argv.pop(), *more)
"""
"""A Hub that has the folder named last, as long as one builder is asked for."""


def python(home: Path, variables: dict[str, str], *arguments: str) -> str:
    """What a fresh Python prints. It must have nothing to complain about."""
    dropped = {"HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "HF_ENDPOINT", "HF_DATASETS_CACHE"}
    environment = {name: value for name, value in os.environ.items() if name not in dropped}
    environment |= {"HF_HOME": str(home), "HF_HUB_DISABLE_TELEMETRY": "1", **variables}
    found = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert (found.returncode, found.stderr) == (0, "")
    return found.stdout


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with one dataset."""
    home = tmp_path_factory.mktemp("home")
    python(home, OFFLINE, "-c", CACHE, str(home), str(embedded_path()), COMMIT)
    return home


@pytest.mark.parametrize("variables", [OFFLINE, UNREACHABLE], ids=["offline", "unreachable"])
def test_a_dataset_in_the_cache(variables: dict[str, str], home: Path) -> None:
    asked = [
        "owner/name test assign ",
        f"owner/name test assign {COMMIT}",
        "owner/name test assign main",
        "owner/name train assign ",
        "owner/name test split ",
        "owner/other test assign ",
    ]
    lines = python(home, variables, "-c", READ, *asked).splitlines()
    assert lines[:2] == [load_rows("mini").hash] * 2
    assert lines[2].startswith(f"owner/name: its revision 'main' is {NOT_THERE}; ")
    assert lines[3].startswith("owner/name: there is no split 'train' of the config 'default' ")
    names = ("owner/name", "owner/other")
    assert lines[4:] == [f"{name}: no such folder, {NOT_THERE}" for name in names]


def test_a_split_that_the_hub_has_not(tmp_path: Path) -> None:
    script = READ.replace("import sys\n", f"import sys\n{REACHABLE}", 1).replace("[1:]", "[1:2]")
    said = python(tmp_path, OFFLINE, "-c", script, "owner/name train assign ", str(embedded_path()))
    assert said == (
        "owner/name: there is no split 'train' of the config 'default' there; splits: test\n"
    )
    assert not list(tmp_path.rglob("*.arrow"))  # told before anything was fetched


def test_what_needs_no_network(tmp_path: Path) -> None:
    row = min(load_rows("mini").rows, key=lambda row: row.n_virtual_registers)
    answer = tmp_path / "answer.json"
    commands = [
        ["evaluate", "--dataset", "mini", "--model", "compiler", "--limit", "1", "--json"],
        ["list", "datasets"],
        ["list", "models"],
        ["allocate", "--model", "compiler", row.id, "-o", str(answer)],
        ["verify", row.id, str(answer)],
    ]
    script = (
        "import contextlib, io, sys\n"
        "from verilocc_bench.cli import main\n"
        f"for command in {commands!r}:\n"
        "    with contextlib.redirect_stderr(io.StringIO()):  # progress\n"
        "        assert main(command) == 0, command\n"
        "assert not {'datasets', 'huggingface_hub'} & set(sys.modules)\n"
    )
    said = python(tmp_path / "home", {**OFFLINE, **UNREACHABLE}, "-c", script)
    assert '"dataset"' in said
    assert not (tmp_path / "home").exists()
