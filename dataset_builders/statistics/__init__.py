"""A dataset folder in figures: facts of rows, tables, plots."""

from dataset_builders.statistics.plots import PLOTS, draw_plots
from dataset_builders.statistics.summary import DatasetStatistics, statistics_of

__all__ = ["PLOTS", "DatasetStatistics", "draw_plots", "statistics_of"]
