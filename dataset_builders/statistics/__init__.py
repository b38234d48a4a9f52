"""A dataset folder in figures: facts of rows, tables, plots."""

from dataset_builders.statistics.plots import PLOTS, draw_plots
from dataset_builders.statistics.row_facts import RowFacts, read_facts
from dataset_builders.statistics.summary import (
    DatasetStatistics,
    Leakage,
    read_leakage,
    statistics_of,
)

__all__ = [
    "PLOTS",
    "DatasetStatistics",
    "Leakage",
    "RowFacts",
    "draw_plots",
    "read_facts",
    "read_leakage",
    "statistics_of",
]
