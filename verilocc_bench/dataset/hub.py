"""Datasets on the Hugging Face Hub, or in the local cache of earlier loads.

A first request asks if the Hub can be reached and has the dataset. So without a
network no request is repeated.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

from verilocc_bench.dataset.hub_requests import quiet, without_secrets
from verilocc_bench.dataset.parquet import RowType, iterate_parquet, rows_from_table
from verilocc_bench.dataset.parquet_batches import MemoryBudget, check_parquet
from verilocc_bench.errors import InputError

TIMEOUT_SECONDS = 10.0
WAITS_SECONDS = (1.0, 2.0)
REASON_LENGTH = 300
ROWS_AT_ONCE = 64
ROWS_OF_A_GROUP = 256
"""The rows of a row group in the files that this project publishes."""

Result = TypeVar("Result")


def read_hub(
    name: str, config: str, split: str, revision: str | None, row_type: type[RowType]
) -> list[RowType]:
    """The rows of one split of one config, through the local cache.

    If the Hub cannot be reached, or HF_HUB_OFFLINE is set, the rows come from the
    cache: the latest ones, or the rows of `revision` (a commit, or a branch or tag
    that an earlier load asked for). Raises InputError if it has none.
    """
    with _quiet():
        builder = _builder(name, config, revision)
        loaded = _loaded(name, config, split, builder)
    table = loaded.data.table
    MemoryBudget().spend(table.nbytes, name)
    return rows_from_table(table, row_type, name)


def stream_hub(
    name: str, config: str, split: str, revision: str | None, row_type: type[RowType]
) -> Iterator[RowType]:
    """The rows of one split of one config, read from the Hub one by one.

    It fetches one file at a time and keeps nothing in memory or on disk. Raises
    InputError like read_hub.
    """
    with _quiet():
        builder = _builder(name, config, revision)
    if _is_parquet(builder):
        present = dict(builder.config.data_files or {})
        if split not in present:
            raise _no_split(name, config, split, list(present))
        for url in present[split]:
            yield from _rows_of_url(name, str(url), row_type)
        return
    with _quiet():
        batches = iter(_streamed(name, config, split, builder))
    while (table := _next_batch(name, batches)) is not None:
        yield from rows_from_table(table, row_type, name)


def _builder(name: str, config: str, revision: str | None) -> Any:
    if not _ask(name, revision):
        return _cached(name, config, revision)
    import datasets

    try:
        return _patiently(lambda: datasets.load_dataset_builder(name, config, revision=revision))
    except Exception as error:  # noqa: BLE001  the client raises errors of many libraries
        raise _failed(name, error) from None


def _ask(name: str, revision: str | None) -> bool:
    """True if the Hub can be reached. Raises InputError if it has no such dataset."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        _patiently(lambda: HfApi().dataset_info(name, revision=revision, timeout=TIMEOUT_SECONDS))
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


def _patiently(request: Callable[[], Result]) -> Result:
    """The result of a request, which is repeated while the Hub is busy."""
    for wait in WAITS_SECONDS:
        try:
            return request()
        except Exception as error:  # the client raises errors of many libraries
            if not _is_passing(error):
                raise
        time.sleep(wait)
    return request()


def _is_passing(error: BaseException | None) -> bool:
    """True if an error or one of its causes says that the Hub was busy (429) or failed itself."""
    while error is not None:
        status = getattr(getattr(error, "response", None), "status_code", 0)
        if status == 429 or status >= 500:
            return True
        error = error.__cause__
    return False


def _cached(name: str, config: str, revision: str | None) -> Any:
    """The dataset in the local cache, whose folders are named by commits."""
    latest = _latest_in_cache(name, config)
    if latest is not None and revision in (None, latest.hash):
        return latest
    found = None if latest is None or revision is None else _of_commit(name, latest, revision)
    if found is not None:
        return found
    of_it = "" if latest is None else f"its revision {revision!r} is "
    raise InputError(
        f"{of_it or 'no such folder, '}not in the Hub's local cache, and the Hub cannot be "
        "reached (no connection, or HF_HUB_OFFLINE is set)"
        + ("; the cache knows full commits, and what was loaded by name" if of_it else ""),
        source=name,
    )


def _latest_in_cache(name: str, config: str) -> Any:
    import datasets

    before, datasets.config.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE, True
    try:
        return datasets.load_dataset_builder(name, config)
    except Exception:  # noqa: BLE001  the client raises errors of many libraries
        return None
    finally:
        datasets.config.HF_HUB_OFFLINE = before


def _of_commit(name: str, latest: Any, revision: str) -> Any:
    """The cached dataset of a commit, or of the last known commit of a branch or tag."""
    from huggingface_hub import try_to_load_from_cache

    # The card of a branch or tag lies in the folder of its last known commit.
    card = try_to_load_from_cache(name, "README.md", repo_type="dataset", revision=revision)
    commit = Path(card).parent.name if isinstance(card, str) else revision
    versions = Path(latest.cache_dir).parent
    if not (versions / commit).is_dir():
        return None
    return type(latest)(
        repo_id=name,
        dataset_name=latest.dataset_name,
        config_name=latest.config.name,
        version=versions.name,
        hash=commit,
    )


def _is_parquet(builder: Any) -> bool:
    """True if a dataset is read from Parquet files, not from the cache or other files."""
    from datasets.packaged_modules.parquet.parquet import Parquet

    return isinstance(builder, Parquet)


def _rows_of_url(name: str, url: str, row_type: type[RowType]) -> Iterator[RowType]:
    """The rows of one file, which is on disk meanwhile."""
    import fsspec

    with tempfile.TemporaryDirectory(prefix="verilocc-bench-") as folder:
        path = Path(folder) / "rows.parquet"
        with _quiet():
            try:
                system, place = fsspec.core.url_to_fs(url)
                _patiently(lambda: system.get_file(place, str(path)))
            except Exception as error:  # noqa: BLE001  the client raises errors of many libraries
                raise _failed(name, error) from None
        try:
            yield from iterate_parquet(path, row_type)
        except InputError as error:
            raise InputError(f"{Path(url).name}: {error.message}", source=name) from None


def _loaded(name: str, config: str, split: str, builder: Any) -> Any:
    # A missing split is reported before anything is fetched.
    present = list(builder.config.data_files or ())
    if present and split not in present:
        raise _no_split(name, config, split, present)
    try:
        manager = _checking_manager(name, builder) if _is_parquet(builder) else None
        _patiently(lambda: builder.download_and_prepare(dl_manager=manager))
        present = list(builder.info.splits or ())
        if split in present:
            return builder.as_dataset(split=split)
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001  the client raises errors of many libraries
        raise _failed(name, error) from None
    raise _no_split(name, config, split, present)


def _checking_manager(name: str, builder: Any) -> Any:
    """A download manager that checks files before the builder reads them.

    The builder unpacks a whole row group of a file at once.
    """
    from datasets import DownloadConfig, DownloadManager

    class Checking(DownloadManager):  # type: ignore[misc]
        def download(self, url_or_urls: Any) -> Any:
            found = super().download(url_or_urls)
            rows = ROWS_OF_A_GROUP
            for path in (Path(each) for paths in found.values() for each in paths):
                try:
                    rows = min(rows, check_parquet(path))
                except InputError as error:
                    raise InputError(f"{path.name}: {error.message}", source=name) from None
            builder.config.batch_size = rows
            return found

    return Checking(
        dataset_name=builder.dataset_name,
        download_config=DownloadConfig(
            use_etag=False, token=builder.token, storage_options=builder.storage_options
        ),
        base_path=builder.base_path,
        record_checksums=False,
    )


def _streamed(name: str, config: str, split: str, builder: Any) -> Any:
    try:
        splits = builder.as_streaming_dataset()
        if split in splits:
            return splits[split].with_format("arrow").iter(ROWS_AT_ONCE)
    except Exception as error:  # noqa: BLE001  the client raises errors of many libraries
        raise _failed(name, error) from None
    raise _no_split(name, config, split, list(splits))


def _next_batch(name: str, batches: Iterator[Any]) -> Any:
    """The next Arrow table, or None after the last."""
    with _quiet():
        try:
            return next(batches, None)
        except Exception as error:  # noqa: BLE001  the client raises errors of many libraries
            raise _failed(name, error) from None


def _no_split(name: str, config: str, split: str, present: list[Any]) -> InputError:
    return InputError(
        f"there is no split {split!r} of the config {config!r} there; "
        f"splits: {', '.join(map(str, present)) or 'none'}",
        source=name,
    )


def _failed(name: str, error: Exception) -> InputError:
    reason = without_secrets(" ".join(str(error).split()))[:REASON_LENGTH]
    return InputError(f"cannot be loaded from the Hub: {reason}", source=name)


def _quiet() -> AbstractContextManager[None]:
    import datasets
    import huggingface_hub

    return quiet(datasets, huggingface_hub)
