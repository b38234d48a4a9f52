"""Datasets on the Hugging Face Hub, or what earlier loads have left of them in the local cache.

One request asks first whether the Hub is there and has the dataset, so that
without a network nothing is tried again and again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from verilocc_bench.dataset.rows import RowType, rows_from_table
from verilocc_bench.errors import InputError

__all__ = ["read_hub"]

TIMEOUT_SECONDS = 10.0
REASON_LENGTH = 300


def read_hub(
    name: str, config: str, split: str, revision: str | None, row_type: type[RowType]
) -> list[RowType]:
    """The rows of one split of one config.

    Where the Hub cannot be reached, or HF_HUB_OFFLINE is set, they are those of
    the local cache: the latest, or for a `revision` those of that commit.
    Raises InputError where there are none.
    """
    with _quiet():
        reachable = _ask(name, revision)
        builder = _builder(name, config, revision) if reachable else _cached(name, config, revision)
        loaded = _loaded(name, config, split, builder)
    return rows_from_table(loaded.data.table, row_type, name)


def _ask(name: str, revision: str | None) -> bool:
    """Whether the Hub can be reached. Raises InputError where it has no such dataset."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        HfApi().dataset_info(name, revision=revision, timeout=TIMEOUT_SECONDS)
    except HFValidationError:
        raise InputError(
            "neither a folder nor a Hub id such as `owner/name`", source=name
        ) from None
    except GatedRepoError:
        message = "this dataset is gated: accept its terms on the Hub and log in"
        raise InputError(message, source=name) from None
    except RevisionNotFoundError:
        raise InputError(f"the Hub has no revision {revision!r} of it", source=name) from None
    except RepositoryNotFoundError:
        raise InputError("no such folder, and no such dataset on the Hub", source=name) from None
    except HfHubHTTPError as error:
        raise _failed(name, error) from None
    except Exception:  # noqa: BLE001  whatever the HTTP library raises that the client stands on
        return False
    return True


def _builder(name: str, config: str, revision: str | None) -> Any:
    import datasets

    try:
        return datasets.load_dataset_builder(name, config, revision=revision)
    except Exception as error:  # noqa: BLE001  the client raises errors of many libraries
        raise _failed(name, error) from None


def _cached(name: str, config: str, revision: str | None) -> Any:
    """What is in the local cache, whose folders are named by commits."""
    import datasets

    before, datasets.config.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE, True
    try:
        builder = datasets.load_dataset_builder(name, config)
    except Exception:  # noqa: BLE001  the client raises errors of many libraries
        builder = None
    finally:
        datasets.config.HF_HUB_OFFLINE = before
    if builder is None or revision not in (None, builder.hash):
        of_it = "" if builder is None else f"its revision {revision!r} is "
        raise InputError(
            f"{of_it or 'no such folder, '}not in the Hub's local cache, and the Hub cannot be "
            "reached (no connection, or HF_HUB_OFFLINE is set)"
            + ("; the cache knows a revision by its full commit alone" if of_it else ""),
            source=name,
        )
    return builder


def _loaded(name: str, config: str, split: str, builder: Any) -> Any:
    try:
        builder.download_and_prepare()
        present = list(builder.info.splits or ())
        if split in present:
            return builder.as_dataset(split=split)
    except Exception as error:  # noqa: BLE001  the client raises errors of many libraries
        raise _failed(name, error) from None
    raise InputError(
        f"there is no split {split!r} of the config {config!r} there; "
        f"splits: {', '.join(map(str, present)) or 'none'}",
        source=name,
    )


def _failed(name: str, error: Exception) -> InputError:
    reason = " ".join(str(error).split())[:REASON_LENGTH]
    return InputError(f"cannot be loaded from the Hub: {reason}", source=name)


@contextmanager
def _quiet() -> Iterator[None]:
    """No log lines of the libraries meanwhile: errors say what there is to say."""
    import datasets
    import huggingface_hub

    # They set their levels when they are imported, which therefore comes first.
    loggers = [logging.getLogger(library.__name__) for library in (datasets, huggingface_hub)]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
