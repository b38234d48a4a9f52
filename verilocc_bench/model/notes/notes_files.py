"""A network that keeps notes as a folder: config.json and model.safetensors.

Nothing in the folder is code. config.json names the format's version, which decides the
words; a folder of another version is refused.
"""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verilocc_bench.errors import InputError
from verilocc_bench.files import revision_of, write_atomically
from verilocc_bench.model.notes.notes_format import FORMAT, MODEL_TYPE
from verilocc_bench.model.notes.notes_words import vocabulary
from verilocc_bench.model.shipped import shipped_folder

if TYPE_CHECKING:
    from verilocc_bench.model.notes.notes_network import NotesNetwork

CONFIGURATION, WEIGHTS = "config.json", "model.safetensors"


def notes_folder(name: str) -> Path | None:
    """The folder of a model of this format; None where the name means something else."""
    folder = shipped_folder(name) or Path(name).expanduser()
    path = folder / CONFIGURATION
    if not path.is_file():
        return None
    try:
        configuration = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None  # who loads it says what is wrong
    return folder if _is_of_notes(configuration) else None


def _is_of_notes(configuration: object) -> bool:
    return isinstance(configuration, dict) and configuration.get("model_type") == MODEL_TYPE


def save_network(network: NotesNetwork, folder: Path) -> None:
    """Writes both files."""
    from safetensors.torch import save

    configuration = {
        "model_type": MODEL_TYPE,
        "format_version": FORMAT.version,
        "words": len(vocabulary()),
        "network": network.configuration.as_json(),
    }
    write_atomically(
        folder / CONFIGURATION, json.dumps(configuration, indent=2, sort_keys=True) + "\n"
    )
    tensors = {name: tensor.contiguous() for name, tensor in network.state_dict().items()}
    write_atomically(folder / WEIGHTS, save(tensors, metadata={"format": "pt"}))


def load_network(folder: Path) -> tuple[NotesNetwork, str]:
    """The network of a folder, and the SHA-256 of its files.

    Raises InputError where the extra `model` is missing, or the folder is not of this version.
    """
    try:
        from safetensors.torch import load_file

        from verilocc_bench.model.notes.notes_network import NotesConfiguration, NotesNetwork
    except ImportError as error:
        raise InputError(
            "a language model needs the extra `model`: pip install 'verilocc-bench[model]'"
        ) from error
    configuration: dict[str, Any] = json.loads((folder / CONFIGURATION).read_text("utf-8"))
    if not _is_of_notes(configuration):
        raise InputError("config.json is not of a model that keeps notes", source=str(folder))
    version, words = configuration.get("format_version"), configuration.get("words")
    expected_words = len(vocabulary())
    if version != FORMAT.version or words != expected_words:
        raise InputError(
            f"config.json: expected version {FORMAT.version} of the format "
            f"{FORMAT.name} with {expected_words} words, not version {version} with {words}",
            source=str(folder),
        )
    sizes = configuration.get("network")
    names = {field.name for field in fields(NotesConfiguration)}
    if not isinstance(sizes, dict) or sizes.keys() != names:
        expected = ", ".join(sorted(names))
        raise InputError(f"config.json: network: expected {expected}", source=str(folder))
    path = folder / WEIGHTS
    if not path.is_file():
        raise InputError(f"expected {WEIGHTS}", source=str(folder))
    network = NotesNetwork(NotesConfiguration(**sizes))
    tensors = load_file(str(path))
    wanted = {name: tensor.shape for name, tensor in network.state_dict().items()}
    if {name: tensor.shape for name, tensor in tensors.items()} != wanted:
        raise InputError("the weights do not fit config.json", source=str(path))
    network.load_state_dict(tensors)
    return network.eval(), revision_of(folder / name for name in (CONFIGURATION, WEIGHTS))
