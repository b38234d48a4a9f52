"""A network that keeps notes as a folder: config.json and model.safetensors.

Nothing in the folder is code. The words are those of the format's version, which
config.json names; a folder of another version is refused.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verilocc_bench.errors import InputError
from verilocc_bench.files import write_atomically
from verilocc_bench.model.notes.formats import NOTES_FORMATS, NotesFormat
from verilocc_bench.model.shipped import shipped_folder

if TYPE_CHECKING:
    from verilocc_bench.model.notes.network import NotesNetwork

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
    return None if _format_of(configuration) is None else folder


def _format_of(configuration: object) -> NotesFormat | None:
    """The format of a config.json."""
    if not isinstance(configuration, dict):
        return None
    of_type = {each.model_type: each for each in NOTES_FORMATS.values()}
    return of_type.get(configuration.get("model_type", ""))


def save_network(network: NotesNetwork, folder: Path) -> None:
    """Writes both files."""
    from safetensors.torch import save

    configuration = {
        "model_type": network.prompt_format.model_type,
        "format_version": network.prompt_format.version,
        "words": len(network.prompt_format.vocabulary()),
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

        from verilocc_bench.model.notes.network import NotesConfiguration, NotesNetwork
    except ImportError as error:
        raise InputError(
            "a language model needs the extra `model`: pip install 'verilocc-bench[model]'"
        ) from error
    configuration: dict[str, Any] = json.loads((folder / CONFIGURATION).read_text("utf-8"))
    prompt_format = _format_of(configuration)
    if prompt_format is None:
        raise InputError("config.json is not of a model that keeps notes", source=str(folder))
    version, words = configuration.get("format_version"), configuration.get("words")
    expected_words = len(prompt_format.vocabulary())
    if version != prompt_format.version or words != expected_words:
        raise InputError(
            f"config.json: expected version {prompt_format.version} of the format "
            f"{prompt_format.name} with {expected_words} words, not version {version} with {words}",
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
    network = NotesNetwork(NotesConfiguration(**sizes), prompt_format=prompt_format)
    tensors = load_file(str(path))
    wanted = {name: tensor.shape for name, tensor in network.state_dict().items()}
    if {name: tensor.shape for name, tensor in tensors.items()} != wanted:
        raise InputError("the weights do not fit config.json", source=str(path))
    network.load_state_dict(tensors)
    return network.eval(), _hash_of(folder)


def _hash_of(folder: Path) -> str:
    total = hashlib.sha256()
    for name in (CONFIGURATION, WEIGHTS):
        total.update(
            f"{name}\n{hashlib.sha256((folder / name).read_bytes()).hexdigest()}\n".encode()
        )
    return total.hexdigest()
