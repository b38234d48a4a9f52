"""Checks that a folder can take a dataset, and moves a finished dataset into it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dataset_builders.sweeps.experts import EXPERT
from verilocc_bench.errors import InputError
from verilocc_bench.files import read_json
from verilocc_bench.views.chat import CHAT

WORK_FOLDER = ".work"
MANIFEST = "manifest.json"
OPTIONAL = ("every", "limit", "beside")
"""What a manifest has of a build only where it was asked for."""

DATASET_PARTS = (
    "data",
    "split",
    "raw",
    CHAT,
    "README.md",
    "rejected.jsonl",
    "rows.jsonl",
    "leakage.json",
    "plots",
    "licenses",
)
"""The parts of a dataset folder besides its manifest."""


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a dataset folder. Raises InputError if there is none."""
    document = read_json(folder / MANIFEST)
    if not isinstance(document, dict):
        raise InputError("expected a JSON object", source=folder / MANIFEST)
    return document


def is_complete(output: Path, manifest: Mapping[str, Any]) -> bool:
    """True if the folder already holds the dataset of this manifest.

    Raises InputError if the folder holds something else.
    """
    path = output / MANIFEST
    if path.exists():
        found = read_manifest(output)
        asked = [*manifest, *(key for key in OPTIONAL if key in found and key not in manifest)]
        changed = [key for key in asked if found.get(key) != manifest.get(key)]
        if changed:
            raise InputError(
                f"the folder holds a finished build with another {', '.join(changed)}; "
                "name another folder",
                source=output,
            )
        # A build that is killed after it has written its last file leaves this behind.
        shutil.rmtree(output / WORK_FOLDER, ignore_errors=True)
        return True
    if output.exists() and not output.is_dir():
        raise InputError("expected a folder", source=output)
    # A dataset of experts' kernels may lie in the folder.
    present = {p.name for p in output.iterdir()} - {EXPERT} if output.exists() else set()
    if present - {WORK_FOLDER}:
        strangers = present - {WORK_FOLDER, *DATASET_PARTS}
        if strangers or not (output / WORK_FOLDER).exists():
            raise InputError("the folder is not empty and holds no unfinished build", source=output)
    return False


def install(staging: Path, output: Path) -> None:
    """Moves a dataset from the working folder into place, the manifest last.

    `output` only ever holds whole parts. If this is interrupted, the next run
    replaces all of them.
    """
    for name in DATASET_PARTS:
        target = output / name
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)
        if (staging / name).exists():
            (staging / name).rename(target)
    (staging / MANIFEST).replace(output / MANIFEST)
