"""Rows as a stream: of the embedded dataset, a folder, or a dataset on the Hub."""

from __future__ import annotations

from pathlib import Path

from datasets import IterableDataset, load_dataset

from verilocc_bench.dataset import embedded_path


def rows_of(name: str, config: str, split: str) -> IterableDataset:
    """The rows of one split: nothing is copied, and no download has to end first.

    `name` is `mini`, a folder that `verilocc-bench build` wrote, or a dataset
    on the Hub; `config` is `default`, or an architecture.
    """
    folder = embedded_path() if name == "mini" else Path(name)
    if not folder.is_dir():
        return load_dataset(name, config, split=split, streaming=True)
    pattern = "*/*" if config == "default" else f"{config}/*"
    paths = folder.glob(f"data/{pattern}/{split}-*.parquet")
    # As on the Hub, sm_90 is a config of its own.
    files = sorted(str(path) for path in paths if config == "sm_90" or "sm_90" not in path.parts)
    if not files:
        raise SystemExit(f"{folder} has no files data/{pattern}/{split}-*.parquet")
    return load_dataset("parquet", data_files={split: files}, split=split, streaming=True)
