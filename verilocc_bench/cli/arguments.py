"""The options of every command. Nothing heavy is imported here."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from verilocc_bench.cli.argument_types import (
    HelpFormatter,
    add_other,
    add_output,
    budget,
    names,
    natural,
    numbers,
    output_file,
    output_folder,
    positive,
    threads,
)
from verilocc_bench.cli.compiler_arguments import add_capture_options, add_measure_options
from verilocc_bench.cli.dataset_arguments import (
    add_build_options,
    add_dataset_actions,
    add_publish_options,
    add_submit_options,
)
from verilocc_bench.cli.run_arguments import add_run_options, add_tiles_option
from verilocc_bench.cli.selftest_arguments import add_selftest_options
from verilocc_bench.cli.train_arguments import add_train_options
from verilocc_bench.settings.command_line import add_settings
from verilocc_bench.settings.judges import ALL, JUDGES, MACHINE_CODE, judge_named


def add_commands(commands: Any) -> None:
    """Adds all commands to the parser's subparsers."""
    for name, (help_text, add_options) in _COMMANDS.items():
        parser = commands.add_parser(
            name,
            help=help_text,
            description=help_text[0].upper() + help_text[1:] + ".",
            formatter_class=HelpFormatter,
        )
        parser.set_defaults(module=f"verilocc_bench.cli.{name}_command")
        add_options(parser)


def _add_dataset(parser: argparse.ArgumentParser, *, several_splits: bool = False) -> None:
    parser.add_argument(
        "--dataset", default="mini", help="mini, a folder, or a dataset id on the Hub"
    )
    parser.add_argument("--revision", help="revision of a dataset on the Hub")
    if several_splits:
        parser.add_argument(
            "--split", type=names, default=("test",), metavar="S,…", help="splits of the dataset"
        )
    else:
        parser.add_argument("--split", default="test", help="split of the dataset")


def _add_instance(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "instance",
        metavar="KERNEL",
        help="an id of the dataset, or a file: a row as JSON, normalized text, LLVM IR (.ll), "
        "machine IR (.mir), PTX or cubin",
    )
    _add_dataset(parser)
    _add_machine_ir(parser)


def _add_code_and_answer(parser: argparse.ArgumentParser) -> None:
    help_text = "an id of the dataset, or a file: .ll, .mir, PTX or cubin"
    parser.add_argument("instance", metavar="KERNEL", help=help_text)
    _add_dataset(parser)
    _add_machine_ir(parser)
    parser.add_argument("answer", metavar="ANSWER", type=Path, help="a file with one answer")


def _add_machine_ir(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--arch", help="architecture, for .mir and .ll (a cubin or PTX says its own)"
    )
    parser.add_argument("--function", help="function, where a file has several")
    parser.add_argument(
        "--max-threads",
        type=threads,
        help="largest work-group size, from which the register budget follows; "
        "by default the file's own, else 1024 for machine IR",
    )


def _evaluate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model",
        action="append",
        required=True,
        metavar="M",
        help="an allocator (see: list models); may be given several times",
    )
    _add_dataset(parser, several_splits=True)
    parser.add_argument("--track", choices=("assign", "split"), default="assign", help="track")
    parser.add_argument("--arch", type=names, metavar="A,…", help="only these architectures")
    parser.add_argument("--family", type=names, metavar="F,…", help="only these families")
    parser.add_argument(
        "--budget",
        type=budget,
        default="full",
        metavar="full|bound|bound+1|occupancy",
        help="how many vector registers a function may use: its own budget, the lower bound, one "
        "more, or the most that give a higher occupancy than the label has",
    )
    parser.add_argument("--samples", type=positive, default=1, help="answers for each function")
    parser.add_argument(
        "--k", type=numbers, default=(1,), metavar="K,…", help="k of pass@k; 1 is always there"
    )
    parser.add_argument("--limit", type=positive, help="only the first functions of each task")
    parser.add_argument("--seed", type=natural, default=0, help="seed")
    parser.add_argument("--jobs", type=positive, default=1, help="processes")
    parser.add_argument(
        "--output-path",
        type=output_folder,
        metavar="DIR",
        help="keep every sample there, go on from there, and write results and answers there",
    )
    parser.add_argument(
        "--no-resume",
        dest="resume",
        action="store_false",
        help="throw away the samples of earlier runs in --output-path",
    )
    parser.add_argument(
        "--machine-code",
        action="store_true",
        help="compare the machine code of valid answers and labels (needs --output-path, llc 22)",
    )
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="print results.json, and nothing else")
    shown.add_argument(
        "--wide",
        action="store_true",
        help="print every column; by default as many as the terminal, or 80 characters, have "
        "room for",
    )
    shown.add_argument(
        "--columns", type=names, metavar="C,…", help="print these columns, named by their headings"
    )
    add_settings(parser)


def _verify(parser: argparse.ArgumentParser) -> None:
    _add_instance(parser)
    parser.add_argument("answer", metavar="ANSWER", type=Path, help="a file with one answer")
    parser.add_argument(
        "--judge",
        type=judge_named,
        choices=(*JUDGES, MACHINE_CODE, ALL),
        help="ask this judge, or all of them but `machine-code`, which runs the machine code of a "
        "dataset's row; by default the fast check, with edits the independent checker",
    )
    add_tiles_option(parser)
    parser.add_argument("--json", action="store_true", help="print the verdict as JSON")


def _problem(parser: argparse.ArgumentParser) -> None:
    _add_instance(parser)
    add_output(parser, "write the problem there, with the compiler's answer, as a row in JSON")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _bound(parser: argparse.ArgumentParser) -> None:
    _add_instance(parser)
    parser.add_argument(
        "--no-solver",
        dest="solver",
        action="store_false",
        help="only what takes milliseconds: one program point, no solver (extra: exact)",
    )
    parser.add_argument("--check", type=Path, metavar="FILE", help="check this proof instead")
    add_output(parser, "the proof as JSON")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _allocate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", required=True, metavar="M", help="an allocator")
    _add_instance(parser)
    parser.add_argument("--seed", type=natural, default=0, help="seed")
    add_output(parser, "write the answer there")
    add_settings(parser)


def _prompt(parser: argparse.ArgumentParser) -> None:
    _add_instance(parser)
    parser.add_argument("--model", metavar="M", help="a language model, whose tokens are counted")
    add_settings(parser)


def _normalize(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help=".ll, .mir, PTX or a cubin")
    _add_machine_ir(parser)
    parser.add_argument(
        "--map", type=output_file, metavar="FILE", help="write the original names there"
    )
    parser.add_argument(
        "--list",
        action="store_true",
        help="say instead which functions of the file can be read, and of the others why not",
    )
    add_output(parser, "write the text there")


def _lower(parser: argparse.ArgumentParser) -> None:
    _add_code_and_answer(parser)
    add_output(
        parser,
        "write there: a cubin for sm_80, sm_89 and sm_90; for gfx90a and gfx942 assembly (.s), "
        "an object file (.o) or a code object (.co, .hsaco), which llc of LLVM 22 makes, or the "
        "machine IR with the answer in it (.mir)",
        required=True,
    )
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")


def _run(parser: argparse.ArgumentParser) -> None:
    _add_instance(parser)
    add_run_options(parser)


def _compare(parser: argparse.ArgumentParser) -> None:
    _add_code_and_answer(parser)
    add_other(parser)
    add_output(
        parser,
        "write both kernels, the answers, the comparison and the commands there",
        folder=True,
    )
    parser.add_argument(
        "--execute",
        action="store_true",
        help="run both, and count executed instructions (ids of gfx90a and gfx942)",
    )
    parser.add_argument(
        "--measured",
        type=Path,
        metavar="DIR",
        help="add the times of a measurement of these two, from the folder of `measure`",
    )
    parser.add_argument("--json", action="store_true", help="print the comparison as JSON")


def _measure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "instance",
        metavar="KERNEL|DIR",
        help="an id of the dataset or a file with code; or a folder that this command wrote, to "
        "read what run.py measured there",
    )
    _add_dataset(parser)
    _add_machine_ir(parser)
    add_measure_options(parser)


def _show(parser: argparse.ArgumentParser) -> None:
    _add_instance(parser)
    parser.add_argument(
        "answer",
        metavar="ANSWER",
        type=Path,
        nargs="?",
        help="a file with one answer; by default the row's label, else linear-scan's answer",
    )
    parser.add_argument(
        "other", metavar="OTHER", type=Path, nargs="?", help="a file with another, to stand beside"
    )
    add_output(
        parser, "a picture (.png, .svg, .pdf), or a page to look around in (.html)", required=True
    )


def _failures(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", metavar="DIR", type=Path, help="the --output-path of evaluate, with its files"
    )
    parser.add_argument("--id", help="only the failures on this function")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")


def _report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folders",
        metavar="DIR",
        nargs="+",
        type=Path,
        help="a folder that evaluate wrote, or a folder of such",
    )
    parser.add_argument(
        "--format",
        choices=("markdown", "html", "eval-results"),
        default="markdown",
        help="for people; or for the repository of a model on the Hub (eval-results)",
    )
    parser.add_argument(
        "--dataset-id",
        metavar="OWNER/NAME",
        help="the dataset's id on the Hub, for eval-results",
    )
    add_output(parser, "write there")


def _completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))


def _list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=("models", "datasets", "sweeps"))
    parser.add_argument("--json", action="store_true", help="print JSON")


_COMMANDS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None]]] = {
    "evaluate": ("score allocators on a dataset, every answer verified", _evaluate),
    "verify": ("say whether an answer is right, and what is wrong where", _verify),
    "allocate": ("ask an allocator for an answer", _allocate),
    "prompt": ("print what a language model would be shown of a kernel", _prompt),
    "capture": (
        "run a script with Triton kernels without a GPU, and make a dataset of what it compiles",
        add_capture_options,
    ),
    "problem": ("say what a file holds, and what the compiler's own answer is", _problem),
    "bound": ("say how few registers a function can do with, with a proof", _bound),
    "normalize": ("turn machine IR, LLVM IR, PTX or a cubin into normalized text", _normalize),
    "lower": ("write an answer back into the machine code of its kernel", _lower),
    "run": ("execute an answer as machine code, on the CPU", _run),
    "compare": ("compare two assignments of one kernel by their machine code", _compare),
    "measure": ("prepare a measurement on one's own GPU, or read its results", _measure),
    "show": ("draw live intervals on registers", _show),
    "build": ("compile a sweep of kernels into a dataset", add_build_options),
    "dataset": ("check, count or rebuild datasets", add_dataset_actions),
    "publish": ("publish a dataset folder on the Hub, in one commit", add_publish_options),
    "submit": ("send a submission to the leaderboard", add_submit_options),
    "train": ("train a language model by a recipe", add_train_options),
    "report": ("compare runs side by side", _report),
    "failures": ("say of a run's failures what was wrong, with tracebacks", _failures),
    "selftest": ("corrupt answers and set the judges against each other", add_selftest_options),
    "list": ("list models, datasets or sweeps", _list),
    "completion": ("print what a shell needs to complete commands", _completion),
}
