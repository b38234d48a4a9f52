"""The tables of the document, as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace

from benchmarks.allocation_study.tables import markdown
from benchmarks.model_study.cells import REGISTERS, change, interval, of_kernels
from benchmarks.model_study.configurations import BASELINES, MAIN, SPLIT, WHOLE
from benchmarks.model_study.figures import SIZES, against, figures, of_size, passed
from benchmarks.model_study.records import KernelResult, StudyRun
from benchmarks.model_study.variants import unseen_by
from verilocc_bench.evaluation.table import NONE, number, percent
from verilocc_bench.model.prompts import get_prompt_format

Runs = Sequence[StudyRun]

COMPILER = "compiler"


def _main(runs: Runs) -> list[StudyRun]:
    """The runs of MAIN's models and of the baselines, over their own split."""
    return [run for run in _usual(runs) if run.configuration.folder in MAIN]


def _usual(runs: Runs) -> list[StudyRun]:
    """The runs that have no table of their own, over their own split."""
    told = ((run, run.configuration) for run in runs)
    return [run for run, each in told if each.split == SPLIT and each.width is None]


def _whole(runs: Runs) -> list[StudyRun]:
    """The runs of models that read whole functions."""
    return [run for run in _usual(runs) if _reads_whole(run)]


def _reads_whole(run: StudyRun) -> bool:
    return run.configuration.folder.startswith(WHOLE)


def overall_table(runs: Runs) -> str:
    """Every configuration: validity with its interval, registers, occupancy."""
    rows = []
    for run in _main(runs):
        value, low, high = passed(run.kernels, 1, run.seed)
        head = (run.configuration.title, number(len(run.kernels)), percent(value))
        rows.append((*head, interval(low, high), *of_kernels(run.kernels)))
    return markdown(("asked", "kernels", "valid", "95 % interval", *REGISTERS), rows)


def code_table(runs: Runs) -> str:
    """Bank conflicts and needless copies beside the compiler's on the same kernels."""
    compiler = _compiler(runs)
    rows = []
    for run in _main(runs):
        if run.configuration.key == COMPILER:
            continue
        cells: list[str] = []
        for measure in ("bank_conflicts", "identity_copies"):
            found = against(run.kernels, compiler, measure)
            cells += (NONE, NONE, NONE) if found is None else _beside(*found)
        rows.append((run.configuration.title, *cells))
    conflicts = ("bank conflicts", "the compiler's", "change")
    copies = ("copies removed", "the compiler's", "change")
    return markdown(("asked", *conflicts, *copies), rows)


def _beside(own: int, other: int) -> tuple[str, str, str]:
    return f"{own:,}", f"{other:,}", change(own, other)


def _compiler(runs: Runs) -> Mapping[str, KernelResult]:
    own = [
        r for r in runs if (r.configuration.folder, r.configuration.key) == (BASELINES, COMPILER)
    ]
    return {kernel.id: kernel for run in own for kernel in run.kernels}


def _by_task(runs: Runs, cell: Callable[[Sequence[KernelResult]], str]) -> str:
    tasks = sorted({task for run in _main(runs) for task in run.tasks})
    rows = []
    for run in _main(runs):
        own = run.tasks
        cells = [cell(own[task]) if task in own else NONE for task in tasks]
        rows.append((run.configuration.title, *cells, cell(run.kernels)))
    return markdown(("asked", *(task.replace("/", " ") for task in tasks), "all"), rows)


def validity_table(runs: Runs) -> str:
    """pass@1 by architecture and family."""
    return _by_task(runs, _validity_cell)


def _validity_cell(kernels: Sequence[KernelResult]) -> str:
    return percent(passed(kernels, 1)[0])


def registers_table(runs: Runs) -> str:
    """Registers over the compiler's by architecture and family."""
    return _by_task(runs, _registers_cell)


def _registers_cell(kernels: Sequence[KernelResult]) -> str:
    return number(figures(kernels).ratio, 3)


def conflicts_table(runs: Runs) -> str:
    """Change of bank conflicts against the compiler by architecture and family."""
    return _by_task(runs, _conflicts_cell(runs))


def _conflicts_cell(runs: Runs) -> Callable[[Sequence[KernelResult]], str]:
    compiler = _compiler(runs)

    def cell(kernels: Sequence[KernelResult]) -> str:
        found = against(kernels, compiler, "bank_conflicts")
        return NONE if found is None else change(*found)

    return cell


def size_table(runs: Runs) -> str:
    """Validity and registers by the number of virtual registers."""
    rows = []
    for run in _main(runs):
        cells = []
        for size in SIZES:
            own = of_size(run.kernels, size)
            cells += [f"{len(own):,}", percent(passed(own, 1)[0]), number(figures(own).ratio, 3)]
        rows.append((run.configuration.title, *cells))
    headers = [part for size in SIZES for part in (_size_name(size), "valid", "registers")]
    return markdown(("asked", *headers), rows)


def _size_name(size: tuple[int, int | None]) -> str:
    first, end = size
    if end is None:
        return f"above {first - 1:,}"
    return f"below {end:,}" if first == 1 else f"{first:,} to {end - 1:,}"


def failure_table(runs: Runs) -> str:
    """Samples without a valid answer, by kind, and what was wrong with them."""
    shown = _main(runs)
    kinds = sorted({kind for run in shown for kind in run.failures})
    rows = []
    for run in shown:
        counts = [number(run.failures.get(kind, 0)) for kind in kinds]
        samples = sum(kernel.samples for kernel in run.kernels)
        wrong = (_counted(run.findings), _counted(run.unparsable))
        rows.append((run.configuration.title, *wrong, f"{samples:,}", *counts))
    headers = ("asked", "samples in which the verifier found", "unparsable because", "samples")
    return markdown((*headers, *(kind.replace("_", " ") for kind in kinds)), rows, 3)


def _counted(counts: Mapping[str, int]) -> str:
    """Names with their counts, the most frequent first."""
    found = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in found) or NONE


def dead_end_table(runs: Runs) -> str:
    """The dead ends at which room was made."""
    rows = []
    for run in _main(runs):
        counts = [k.dead_ends for k in run.kernels if k.dead_ends is not None]
        if counts:
            some = sum(count > 0 for count in counts) / len(counts)
            figures_of = (percent(some), f"{sum(counts):,}", f"{max(counts):,}")
            rows.append((run.configuration.title, f"{len(counts):,}", *figures_of))
    headers = ("asked", "kernels", "with a dead end", "dead ends", "most in one kernel")
    return markdown(headers, rows)


def cost_table(runs: Runs) -> str:
    """Tokens and seconds a kernel."""
    rows = []
    for run in _main(runs):
        kernels, samples = run.kernels, sum(kernel.samples for kernel in run.kernels)
        tokens = sum(kernel.tokens for kernel in kernels) / samples
        seconds = sum(kernel.seconds for kernel in kernels) / samples
        told = NONE if run.prompt is None else f"{tokens:,.0f}"
        cells = (f"{samples:,}", told, f"{seconds:.2f}", number(run.calls, 2))
        rows.append((run.configuration.title, *cells))
    headers = ("asked", "samples", "tokens a sample", "seconds a sample", "attempts, if valid")
    return markdown(headers, rows)


def sample_table(runs: Runs) -> str:
    """pass@k of the configurations with several samples."""
    rows = []
    for run in runs:
        if len(run.ks) > 1:
            for k in run.ks:
                value, low, high = passed(run.kernels, k, run.seed)
                head = (run.configuration.title, f"{len(run.kernels):,}", k)
                rows.append((*head, percent(value), interval(low, high)))
    return markdown(("asked", "kernels", "k", "pass@k", "95 % interval"), rows)


def split_table(runs: Runs) -> str:
    """The generalization splits beside the usual one, asked in the same way."""
    other = [r for r in runs if r.configuration.split != SPLIT]
    titles = {r.configuration.title for r in other}
    usual = [r for r in _main(runs) if r.configuration.title in titles]
    rows = []
    for run in [*usual, *other]:
        head = (f"`{run.configuration.split}`", run.configuration.title)
        valid = percent(passed(run.kernels, 1)[0])
        rows.append((*head, f"{len(run.kernels):,}", valid, *of_kernels(run.kernels)))
    return markdown(("split", "asked", "kernels", "valid", *REGISTERS), rows, 2)


def width_table(runs: Runs) -> str:
    """The results of windows with more or fewer new virtual registers."""
    rows = []
    for run in runs:
        if run.configuration.width is not None:
            value, low, high = passed(run.kernels, 1, run.seed)
            tokens = sum(kernel.tokens for kernel in run.kernels) / len(run.kernels)
            head = (run.configuration.title, f"{len(run.kernels):,}", f"{tokens:,.0f}")
            ratio = number(figures(run.kernels).ratio, 3)
            rows.append((*head, percent(value), interval(low, high), ratio))
    headers = ("asked", "kernels", "tokens a kernel", "valid", "95 % interval", "registers")
    return markdown(headers, rows)


def whole_table(runs: Runs) -> str:
    """The results of functions that are read whole, and the faults of their answers."""
    rows = []
    for run in _whole(runs):
        value, low, high = passed(run.kernels, 1, run.seed)
        tokens = sum(kernel.tokens for kernel in run.kernels) / len(run.kernels)
        wrong = (_counted(each) for each in (run.failures, run.findings, run.unparsable))
        told = (f"{len(run.kernels):,}", f"{tokens:,.0f}", percent(value), interval(low, high))
        ratio = number(figures(run.kernels).ratio, 3)
        rows.append((run.configuration.title, *wrong, *told, ratio))
    why = ("not valid", "the verifier found", "unparsable because")
    headers = ("kernels", "tokens a kernel", "valid", "95 % interval", "registers")
    return markdown(("asked", *why, *headers), rows, 4)


def model_table(runs: Runs) -> str:
    """Validity and registers of further models by architecture, beside those of MAIN."""
    return _by_model(runs, {"valid": _validity_cell, "registers": _registers_cell})


def model_conflicts_table(runs: Runs) -> str:
    """The same for the change of bank conflicts against the compiler."""
    return _by_model(runs, {"conflicts": _conflicts_cell(runs)})


ModelCells = Mapping[str, Callable[[Sequence[KernelResult]], str]]


def _by_model(runs: Runs, cells: ModelCells) -> str:
    """A table of the questions to further models, by model; those of MAIN come first."""
    usual = [run for run in _usual(runs) if run.prompt is not None and not _reads_whole(run)]
    further = [run for run in usual if run.configuration.folder not in MAIN]
    keys = dict.fromkeys(run.configuration.key for run in further)
    archs = sorted({arch for run in further for arch in run.architectures})
    rows = []
    for key in keys:
        same = [run for run in usual if run.configuration.key == key]
        others = (run for run in same if run.configuration.folder not in MAIN)
        asked = set.intersection(*({kernel.id for kernel in run.kernels} for run in others))
        rows += [_of_model(_only(run, asked), archs, cells) for run in same]
    headers = [f"{name}, {arch}" for name in cells for arch in (*archs, "all")]
    return markdown(("asked", "kernels", *headers), rows)


def _only(run: StudyRun, asked: Container[str]) -> StudyRun:
    """A run restricted to some of its functions."""
    return replace(run, kernels=tuple(kernel for kernel in run.kernels if kernel.id in asked))


def _of_model(run: StudyRun, archs: Sequence[str], cells: ModelCells) -> tuple[str, ...]:
    own, unseen = run.architectures, unseen_by(run.configuration.folder)
    told = [
        text
        for cell in cells.values()
        for text in (
            *(cell(own.get(arch, [])) + (" *" if arch == unseen else "") for arch in archs),
            cell(run.kernels),
        )
    ]
    return run.configuration.title, f"{len(run.kernels):,}", *told


PAPER = (
    "VeriLocc, as its paper says",
    "machine IR as text",
    NONE,
    "85–99 %",
    "near 100 %, k = 100",
)
"""From arXiv 2506.17506: what the model sees, kernels, single shot, many samples."""


def paper_table(runs: Runs) -> str:
    """The share of valid answers beside the paper's. The tasks are different ones."""
    rows = [PAPER]
    for run in (*[run for run in _main(runs) if run.prompt is not None], *_whole(runs)):
        assert run.prompt is not None
        most = max(run.ks)
        value = percent(passed(run.kernels, most)[0])
        many = f"{value}, k = {most}" if most > 1 else NONE
        shown = get_prompt_format(run.prompt["format"]).shows
        head = (run.configuration.title, shown, f"{len(run.kernels):,}")
        rows.append((*head, percent(passed(run.kernels, 1)[0]), many))
    return markdown(("", "the model is shown", "kernels", "one sample", "k samples"), rows, 2)


TABLES: Mapping[str, Callable[[Runs], str]] = {
    "overall": overall_table,
    "code": code_table,
    "validity": validity_table,
    "registers": registers_table,
    "conflicts": conflicts_table,
    "sizes": size_table,
    "failures": failure_table,
    "dead-ends": dead_end_table,
    "cost": cost_table,
    "samples": sample_table,
    "splits": split_table,
    "widths": width_table,
    "whole": whole_table,
    "models": model_table,
    "models-conflicts": model_conflicts_table,
    "paper": paper_table,
}
"""The tables by the names in the document's markers. A table without rows is its head alone."""
