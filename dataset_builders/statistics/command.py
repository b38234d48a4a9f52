"""`verilocc-bench dataset stats`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from dataset_builders.statistics.document import statistics_document
from dataset_builders.statistics.plots import draw_plots
from dataset_builders.statistics.summary import statistics_of
from dataset_builders.statistics.tables import plain_table, statistics_tables
from verilocc_bench.dataset import EMBEDDED, embedded_path

__all__ = ["run_stats"]


def run_stats(options: argparse.Namespace) -> int:
    """Prints the figures of a dataset folder as tables or JSON; draws them if asked.

    `folder` is a path or `mini`; `plots` is None or a folder for PNG files.
    """
    named = str(options.folder) == EMBEDDED
    statistics = statistics_of(embedded_path() if named else Path(options.folder))
    if options.plots is not None:
        draw_plots(statistics, options.plots)
    if options.json:
        print(json.dumps(statistics_document(statistics), indent=2, sort_keys=True))
    else:
        print("\n".join(map(plain_table, statistics_tables(statistics))), end="")
    return 0
