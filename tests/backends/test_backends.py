"""Every target has a back end, all back ends have the same modules, and nobody else asks."""

from __future__ import annotations

import re
from pathlib import Path

import verilocc_bench.backends as room
from verilocc_bench.backends import BACKENDS, backend_of, backend_of_file, raw_bytes
from verilocc_bench.targets import TARGETS

FOLDER = Path(room.__file__).parent
MODULES = {"compare", "kernel", "lower", "normalize", "read", "tools", "write_back"}
ASKS = re.compile(r"\.vendor (==|!=|in)|\bvendor (==|!=)|\b(arch|target\.name) == ['\"](sm_|gfx)")
ALLOWED = (
    "verilocc_bench/backends/",
    "verilocc_bench/targets/",
    "verilocc_bench/machine/",  # an executor of some targets' machine code
    "verilocc_bench/measuring/driver.py",  # part of a script that runs alone, beside a driver
    "dataset_builders/compilers/",
    "dataset_builders/sweeps/",  # what each vendor's compiler is asked for
)


def test_every_target_has_one() -> None:
    for target in TARGETS.values():
        assert backend_of(target).vendor == target.vendor
        assert backend_of(target.name) is backend_of(target)
    assert len({backend.raw_format for backend in BACKENDS}) == len(BACKENDS)


def test_all_have_the_same_modules() -> None:
    for package in (path.parent for path in FOLDER.glob("*/__init__.py")):
        assert {path.stem for path in package.glob("*.py")} >= MODULES, package.name


def test_files_are_told_apart_by_their_first_bytes() -> None:
    assert backend_of_file(b"\x7fELF").vendor == "nvidia"
    assert backend_of_file(b"---\nname: f\n").vendor == "amd"
    assert raw_bytes("cubin", "AAE=") == b"\x00\x01"
    assert raw_bytes("mir", "AAE=") == b"AAE="


def test_nobody_else_asks_for_the_vendor() -> None:
    root = FOLDER.parents[1]
    for package in ("verilocc_bench", "dataset_builders", "leaderboard"):
        for path in sorted((root / package).rglob("*.py")):
            name = path.relative_to(root).as_posix()
            if not name.startswith(ALLOWED):
                assert not ASKS.search(path.read_text()), name
