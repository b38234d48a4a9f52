"""The options of `build`, `dataset`, `publish` and `submit`. Nothing heavy is imported here."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from verilocc_bench.cli.argument_types import HelpFormatter, names, natural, output_folder, positive


def add_build_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `build`."""
    parser.add_argument("--sweep", required=True, help="a sweep (see: list sweeps)")
    parser.add_argument(
        "--seed", help="with the sweep fresh: draws its points, of which no published split has any"
    )
    parser.add_argument("--arch", type=names, metavar="A,…", help="only these architectures")
    parser.add_argument("--limit", type=positive, help="only the first points of the sweep")
    parser.add_argument(
        "--every",
        type=positive,
        default=1,
        metavar="N",
        help="every N-th point of the sweep alone: a sample of it",
    )
    parser.add_argument(
        "--output", type=output_folder, required=True, metavar="DIR", help="the dataset"
    )
    parser.add_argument("--jobs", type=positive, default=os.cpu_count() or 1, help="processes")
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="compile on the workers of this Dask scheduler (tcp://…) instead of here",
    )
    parser.add_argument(
        "--beside",
        type=Path,
        metavar="DATASET",
        help="with the sweeps fresh and expert: leave out kernels that are near a function of this "
        "folder",
    )
    parser.add_argument(
        "--time-limit",
        type=positive,
        default=600,
        metavar="SECONDS",
        help="how long one kernel may take before it is rejected, without waiting for a processor",
    )


def add_dataset_actions(parser: argparse.ArgumentParser) -> None:
    """Adds the actions of `dataset` with their options."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

    def add(name: str, help_text: str) -> argparse.ArgumentParser:
        return actions.add_parser(
            name,
            help=help_text,
            description=help_text[0].upper() + help_text[1:] + ".",
            formatter_class=HelpFormatter,
        )

    check = add("check", "look for everything that can be wrong with a dataset")
    check.add_argument("folder", metavar="DATASET", help="mini, a folder, or an id on the Hub")
    check.add_argument(
        "--no-labels", dest="labels", action="store_false", help="verify no assignments"
    )
    check.add_argument(
        "--execute",
        type=natural,
        default=0,
        metavar="N",
        help="run the machine code of N rows of gfx90a and gfx942 (needs llc of LLVM 22)",
    )
    stats = add("stats", "count and measure the rows of a dataset")
    stats.add_argument("folder", metavar="DATASET", help="mini or a folder")
    stats.add_argument("--plots", type=output_folder, metavar="DIR", help="write pictures there")
    rebuild = add("rebuild", "compile rows of a dataset again and compare every byte")
    rebuild.add_argument("folder", metavar="DATASET", help="mini or a folder")
    rebuild.add_argument("--sample", type=positive, metavar="N", help="only N rows")
    rebuild.add_argument("--seed", type=natural, default=0, help="which rows are in the sample")
    rebuild.add_argument(
        "--id", dest="ids", action="append", metavar="ID", help="this row; several times for more"
    )
    for each in (check, rebuild):
        each.add_argument("--jobs", type=positive, default=os.cpu_count() or 1, help="processes")
    for each in (check, stats, rebuild):
        each.add_argument("--json", action="store_true", help="print one JSON document")


def add_publish_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `publish`."""
    parser.add_argument("folder", metavar="DIR", type=Path, help="the folder of a dataset")
    parser.add_argument(
        "--repo-id", required=True, metavar="OWNER/NAME", help="the dataset's id on the Hub"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would change there, and change nothing"
    )
    parser.add_argument(
        "--create-pr", action="store_true", help="open a pull request in place of a commit"
    )
    parser.add_argument(
        "--private", action="store_true", help="make a new dataset private, never one that is there"
    )
    parser.add_argument(
        "--revision",
        default="main",
        metavar="BRANCH",
        help="a branch, which is made if need be, or a pull request as refs/pr/N",
    )
    parser.add_argument(
        "--message", default="Publish the dataset", metavar="M", help="message of the commit"
    )
    parser.add_argument("--tag", metavar="NAME", help="tag the commit, for a release")
    parser.add_argument(
        "--jobs", type=positive, default=os.cpu_count() or 1, help="processes and connections"
    )


def add_submit_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `submit`."""
    parser.add_argument("folder", metavar="DIR", type=Path, help="the folder of a submission")
    parser.add_argument(
        "--from-run",
        type=Path,
        metavar="RUN",
        help="begin it: write DIR from the folder of a run of evaluate, and send nothing",
    )
    parser.add_argument(
        "--measured",
        type=Path,
        nargs="+",
        default=[],
        metavar="MEASUREMENT",
        help="add what was measured of its answers, from folders of measure, and send nothing; "
        "shown as not verified",
    )
    parser.add_argument(
        "--repo-id",
        default="verilocc/submissions",
        metavar="OWNER/NAME",
        help="the submissions dataset on the Hub",
    )
    parser.add_argument("--dataset", help="a copy of the board's dataset (default: its name)")
    parser.add_argument("--revision", help="a branch, tag or commit of it on the Hub")
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="only check it, verify every answer, and compare claims with what is found",
    )
    parser.add_argument(
        "--output", type=output_folder, metavar="FOLDER", help="write it there, and send nothing"
    )
