"""The folder of a training run: whose it is, and what it was made with."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from verilocc_bench import __version__
from verilocc_bench.dataset import Row, is_local
from verilocc_bench.dataset.rows import rows_hash
from verilocc_bench.errors import InputError
from verilocc_bench.files import read_json, write_atomically

__all__ = ["claim_folder", "data_source", "versions"]

VERSIONED = ("torch", "transformers", "accelerate", "tokenizers", "numpy")


def versions() -> dict[str, str]:
    """Of this package, Python and the libraries that have a say in the weights."""
    return {
        "verilocc-bench": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in VERSIONED},
    }


def data_source(dataset: str, revision: str | None, rows: Sequence[Row]) -> dict[str, Any]:
    """Name, revision and hash of what is trained on; of a folder not where it lies."""
    name = Path(dataset).resolve().name if is_local(dataset) else dataset
    return {"name": name, "revision": revision, "hash": rows_hash(rows)}


def claim_folder(output: Path, told: Mapping[str, Any]) -> None:
    """Makes the folder of a run that `told` decides, or finds that it is of the same one.

    Raises InputError where it is another run's, or holds something else.
    """
    path = output / "run.json"
    told = json.loads(json.dumps(told))
    if path.exists():
        if read_json(path) != told:
            raise InputError(
                "the folder holds a run of another recipe, dataset or version; "
                "give another --output, or remove it",
                source=str(output),
            )
        return
    if output.exists() and any(output.iterdir()):
        raise InputError("the folder is not empty, and holds no run", source=str(output))
    output.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(told, indent=2) + "\n")
