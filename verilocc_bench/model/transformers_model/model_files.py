"""The files of a model: where they are, whether they will do, and what identifies them."""

from __future__ import annotations

import re
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path

from verilocc_bench.errors import InputError
from verilocc_bench.files import revision_of
from verilocc_bench.model.shipped import shipped_folder

WEIGHTS = ("*.safetensors", "*.safetensors.index.json")
TOKENIZER = (
    "tokenizer*",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab*",
    "merges.txt",
    "chat_template*",
    "spiece.model",
    "*.tiktoken",
)
CONFIGURATION = ("config.json", "generation_config.json")
CODE = ("*.py",)
OTHER_WEIGHTS = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.h5", "*.msgpack", "*.gguf")
TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "*.tiktoken")

_COMMIT = re.compile(r"[0-9a-f]{40}")


def find_model_folder(name: str, revision: str | None, with_code: bool) -> tuple[Path, str]:
    """(folder, revision) of a model by folder or Hub id.

    From the Hub it is the snapshot in the local cache, fetched first where
    that is needed and allowed (HF_HUB_OFFLINE), and its commit. Raises
    InputError if there is no such model, or files are missing.
    """
    folder = check_model_folder(name, revision)
    if folder is not None:
        return folder, folder_revision(folder)
    folder = _snapshot(name, revision, with_code)
    _check_files(folder, name)
    return folder, folder.name


def check_model_folder(name: str, revision: str | None) -> Path | None:
    """The folder of a model that is here; None for an id on the Hub.

    Raises InputError if files are missing, and for a path that is not a folder.
    """
    folder = shipped_folder(name) or Path(name).expanduser()
    if folder.is_dir():
        if revision is not None:
            raise InputError("a folder has no revisions: leave the revision out", source=name)
        _check_files(folder, name)
        return folder
    if folder.exists() or name.startswith((".", "/", "~")):
        raise InputError("expected a folder with a language model, or a Hub id", source=name)
    return None


def folder_revision(folder: Path) -> str:
    """SHA-256, in hex, over names and contents of a folder's model and tokenizer files.

    Other files, such as a README or a training state, do not count. Files
    are read in pieces: their size does not matter.
    """
    return revision_of(_files(folder, (*WEIGHTS, *TOKENIZER, *CONFIGURATION, *CODE)))


def _files(folder: Path, patterns: tuple[str, ...]) -> list[Path]:
    return sorted(
        path
        for path in folder.iterdir()
        if path.is_file() and any(fnmatch(path.name, pattern) for pattern in patterns)
    )


def _check_files(folder: Path, source: str) -> None:
    if not (folder / "config.json").is_file():
        raise InputError("no config.json: not a model of transformers", source=source)
    if not _files(folder, ("*.safetensors",)):
        if other := _files(folder, OTHER_WEIGHTS):
            raise InputError(
                f"the weights are in {other[0].name}: only safetensors files of a folder are "
                "read, for others can run code when they are loaded; convert them first, or give a "
                ".gguf file itself",
                source=source,
            )
        raise InputError(
            "no weights: expected a .safetensors file (no other kind is read)", source=source
        )
    if not _files(folder, TOKENIZER_FILES):
        raise InputError("no tokenizer: expected tokenizer.json or the like", source=source)


def _snapshot(name: str, revision: str | None, with_code: bool) -> Path:
    """The folder of a Hub model in the cache; nothing in sub-folders is fetched."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    patterns = [*WEIGHTS, *TOKENIZER, *CONFIGURATION]
    patterns += CODE if with_code else ()

    def fetch(local_only: bool) -> Path:
        found = snapshot_download(
            name,
            revision=revision,
            allow_patterns=patterns,
            ignore_patterns=["*/*", "consolidated*"],
            local_files_only=local_only,
        )
        return Path(found)

    try:
        if revision is not None and _COMMIT.fullmatch(revision):
            with suppress(LocalEntryNotFoundError):
                return fetch(True)  # a commit never changes: no need to ask for it again
        return fetch(False)
    except HFValidationError as error:
        raise InputError(
            "neither a folder nor a Hub id such as `owner/name`", source=name
        ) from error
    except GatedRepoError as error:
        raise InputError(
            "this model is gated: accept its terms on the Hub and log in", source=name
        ) from error
    except RevisionNotFoundError as error:
        raise InputError(f"the Hub has no revision {revision!r} of it", source=name) from error
    except RepositoryNotFoundError as error:
        raise InputError("no such folder, and no such model on the Hub", source=name) from error
    except LocalEntryNotFoundError as error:
        raise InputError(
            "no such folder, not in the Hub's local cache, and the Hub cannot be reached "
            "(no connection, or HF_HUB_OFFLINE is set)",
            source=name,
        ) from error
    except (HfHubHTTPError, OSError) as error:
        raise InputError(f"the Hub does not deliver it: {error}", source=name) from error
