"""The dataset: its rows, their Parquet files, and where to find them."""

from verilocc_bench.dataset.parquet import read_parquet, write_parquet
from verilocc_bench.dataset.reader import (
    EMBEDDED,
    EXPERT,
    Dataset,
    default_architectures,
    embedded_path,
    is_local,
    iterate_rows,
    load_raw_row,
    load_raw_rows,
    load_rows,
    no_rows,
    split_config,
    split_name,
)
from verilocc_bench.dataset.rows import RawRow, Row, check_row, row_digest, rows_hash
from verilocc_bench.dataset.tight_budgets import BudgetChoice, tighten

__all__ = [
    "EMBEDDED",
    "EXPERT",
    "BudgetChoice",
    "Dataset",
    "RawRow",
    "Row",
    "check_row",
    "default_architectures",
    "embedded_path",
    "is_local",
    "iterate_rows",
    "load_raw_row",
    "load_raw_rows",
    "load_rows",
    "no_rows",
    "read_parquet",
    "row_digest",
    "rows_hash",
    "split_config",
    "split_name",
    "tighten",
    "write_parquet",
]
