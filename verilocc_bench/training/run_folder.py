"""The folder of a training run, and the record of what decides its weights."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from verilocc_bench import __version__
from verilocc_bench.dataset import Row, is_local
from verilocc_bench.dataset.rows import best_hash, rows_hash
from verilocc_bench.errors import InputError
from verilocc_bench.files import read_json, write_atomically

VERSIONED = ("torch", "transformers", "accelerate", "peft", "trl", "tokenizers", "numpy")


def versions() -> dict[str, str]:
    """The versions of this package, Python and the libraries that influence the weights."""
    return {
        "verilocc-bench": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in VERSIONED},
    }


def data_source(dataset: str, revision: str | None, rows: Sequence[Row]) -> dict[str, Any]:
    """The name, revision and hashes of the rows. A folder's name stands without its path.

    `best_hash`, of the columns about better labels, is there if the rows have any.
    """
    name = Path(dataset).resolve().name if is_local(dataset) else dataset
    found = {"name": name, "revision": revision, "hash": rows_hash(rows)}
    best = best_hash(rows)
    return found if best is None else {**found, "best_hash": best}


def claim_folder(output: Path, told: Mapping[str, Any]) -> None:
    """Makes the folder of a run, or checks that it belongs to the same run.

    `told` is what decides the weights; run.json holds it. Raises InputError if
    the folder belongs to another run, or holds something else.
    """
    path = output / "run.json"
    told = json.loads(json.dumps(told))
    try:
        if path.exists():
            if read_json(path) != told:
                raise InputError(
                    "the folder holds a run of another recipe, dataset or version; "
                    "give another --output, or remove it",
                    source=str(output),
                )
        elif output.exists() and any(output.iterdir()):
            raise InputError("the folder is not empty, and holds no run", source=str(output))
        else:
            output.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json.dumps(told, indent=2) + "\n")
    except OSError as error:
        reason = error.strerror or error
        message = f"expected a folder that can be written: {reason}"
        raise InputError(message, source=str(output)) from None
