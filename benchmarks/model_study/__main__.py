"""The commands of the study; see the package."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import benchmarks.model_study as study
from benchmarks.commands import run_command
from benchmarks.model_study.configurations import (
    BASELINES,
    REFERENCE,
    REFERENCE_TEXT,
    TEXT,
    WHOLE,
)
from verilocc_bench.cli.argument_types import positive


def main(arguments: list[str] | None = None) -> int:
    return run_command(_parser(), arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="model_study", description=study.__doc__)
    commands = parser.add_subparsers(required=True)
    run = commands.add_parser("run", help="ask in every configuration")
    run.add_argument("--dataset", required=True, help="mini, a folder, or an id on the Hub")
    run.add_argument("--output", type=Path, required=True, help="the folder of the study")
    run.add_argument("--limit", type=positive, help="only the first functions of each task")
    run.add_argument("--jobs", type=positive, default=1)
    run.add_argument(
        "--model",
        action="append",
        type=_named,
        default=[],
        metavar="NAME=FOLDER",
        help=f"a further model; {REFERENCE}=FOLDER stands for the one that comes along, "
        f"{REFERENCE_TEXT} and what begins with {TEXT} are asked in `window`, "
        f"what begins with {WHOLE} in `whole`",
    )
    run.add_argument(
        "--only",
        type=_names,
        default=[],
        metavar="NAME,…",
        help="only these folders or keys, such as reference/state-free",
    )
    run.set_defaults(action=_run)
    train = commands.add_parser("train", help="train the models that are compared")
    train.add_argument("--dataset", required=True, help="a folder, or an id on the Hub")
    train.add_argument("--output", type=Path, required=True, help="the folder of the study")
    train.add_argument("--jobs", type=positive, default=1, help="processes that make examples")
    train.add_argument(
        "--only", type=_names, default=[], metavar="NAME,…", help="only these, such as all-short"
    )
    train.set_defaults(action=_train)
    render = commands.add_parser("render", help="write the tables of the document")
    render.add_argument("--output", type=Path, required=True, help="the folder of the study")
    render.add_argument("--document", type=Path, required=True, help="a Markdown file with markers")
    render.add_argument(
        "--images", type=Path, help="the folder of pictures (default: images, beside the document)"
    )
    render.add_argument(
        "--only", type=_names, default=[], metavar="BLOCK,…", help="only these, such as variants"
    )
    render.set_defaults(action=_render)
    return parser


def _names(text: str) -> list[str]:
    return text.split(",")


def _named(text: str) -> tuple[str, str]:
    name, separator, folder = text.partition("=")
    usual = name.replace("-", "").replace("_", "").isalnum() and name != BASELINES
    if not separator or not folder or not usual:
        raise argparse.ArgumentTypeError("expected NAME=FOLDER, NAME of letters, digits and -")
    return name, folder


def _run(options: argparse.Namespace) -> None:
    from benchmarks.model_study.running import run

    run(
        options.dataset,
        options.output,
        dict(options.model),
        limit=options.limit,
        jobs=options.jobs,
        only=options.only,
    )


def _train(options: argparse.Namespace) -> None:
    from benchmarks.model_study.variants import train_variants

    train_variants(options.dataset, options.output, only=options.only, jobs=options.jobs)


def _render(options: argparse.Namespace) -> None:
    from benchmarks.model_study.document import render

    render(options.output, options.document, options.images, only=options.only)


if __name__ == "__main__":
    sys.exit(main())
