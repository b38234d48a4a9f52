"""The tables of the document, as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from benchmarks.allocation_study.tables import markdown
from benchmarks.model_study.configurations import BASELINES, REFERENCE, SPLIT
from benchmarks.model_study.figures import SIZES, against, figures, of_size, passed
from benchmarks.model_study.records import Kernel, Run

__all__ = ["TABLES"]

Runs = Sequence[Run]

NONE = "–"
COMPILER = "compiler"


def _main(runs: Runs) -> list[Run]:
    """The runs of the reference model and of what needs none, over the split that is theirs."""
    folders = (REFERENCE, BASELINES)
    return [r for r in runs if r.configuration.split == SPLIT and r.configuration.folder in folders]


def _asked(runs: Runs) -> list[Run]:
    return [run for run in _main(runs) if run.prompt is not None]


def _share(value: float | None) -> str:
    return NONE if value is None else f"{100 * value:.1f} %"


def _number(value: float | None, digits: int = 0) -> str:
    return NONE if value is None else f"{value:,.{digits}f}"


def _of_kernels(kernels: Sequence[Kernel]) -> tuple[str, ...]:
    found = figures(kernels)
    return (
        _number(found.ratio, 3),
        *map(_share, (found.better, found.equal, found.worse)),
        _number(found.gap, 2),
        f"+{found.gained} −{found.lost}",
    )


_REGISTERS = ("registers", "fewer", "equal", "more", "above bound", "occupancy")


def overall_table(runs: Runs) -> str:
    """Every configuration: validity with its interval, registers, occupancy."""
    rows = []
    for run in _main(runs):
        value, low, high = passed(run.kernels, 1, run.seed)
        interval = NONE if low is None or high is None else f"{100 * low:.1f}–{100 * high:.1f} %"
        head = (run.configuration.title, _number(len(run.kernels)), _share(value), interval)
        rows.append((*head, *_of_kernels(run.kernels)))
    return markdown(("asked", "kernels", "valid", "95 % interval", *_REGISTERS), rows)


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
            cells += (NONE, NONE, NONE) if found is None else _change(*found)
        rows.append((run.configuration.title, *cells))
    conflicts = ("bank conflicts", "the compiler's", "change")
    copies = ("copies removed", "the compiler's", "change")
    return markdown(("asked", *conflicts, *copies), rows)


def _compiler(runs: Runs) -> Mapping[str, Kernel]:
    own = [
        r for r in runs if (r.configuration.folder, r.configuration.key) == (BASELINES, COMPILER)
    ]
    return {kernel.id: kernel for run in own for kernel in run.kernels}


def _change(own: int, other: int) -> tuple[str, str, str]:
    change = f"{100 * (own - other) / other:+.1f} %".replace("-", "−") if other else NONE
    return f"{own:,}", f"{other:,}", change


def _by_task(runs: Runs, cell: Callable[[Sequence[Kernel]], str]) -> str:
    tasks = sorted({task for run in _main(runs) for task in run.tasks})
    rows = []
    for run in _main(runs):
        own = run.tasks
        cells = [cell(own[task]) if task in own else NONE for task in tasks]
        rows.append((run.configuration.title, *cells, cell(run.kernels)))
    return markdown(("asked", *(task.replace("/", " ") for task in tasks), "all"), rows)


def validity_table(runs: Runs) -> str:
    """pass@1 by architecture and family."""
    return _by_task(runs, lambda kernels: _share(passed(kernels, 1)[0]))


def registers_table(runs: Runs) -> str:
    """Registers over the compiler's by architecture and family."""
    return _by_task(runs, lambda kernels: _number(figures(kernels).ratio, 3))


def conflicts_table(runs: Runs) -> str:
    """Change of bank conflicts against the compiler by architecture and family."""
    compiler = _compiler(runs)

    def cell(kernels: Sequence[Kernel]) -> str:
        found = against(kernels, compiler, "bank_conflicts")
        return NONE if found is None else _change(*found)[2]

    return _by_task(runs, cell)


def size_table(runs: Runs) -> str:
    """Validity and registers by the number of virtual registers."""
    rows = []
    for run in _main(runs):
        cells = []
        for size in SIZES:
            own = of_size(run.kernels, size)
            cells += [f"{len(own):,}", _share(passed(own, 1)[0]), _number(figures(own).ratio, 3)]
        rows.append((run.configuration.title, *cells))
    headers = [part for size in SIZES for part in (_size_name(size), "valid", "registers")]
    return markdown(("asked", *headers), rows)


def _size_name(size: tuple[int, int | None]) -> str:
    first, end = size
    if end is None:
        return f"above {first - 1:,}"
    return f"below {end:,}" if first == 1 else f"{first:,} to {end - 1:,}"


def failure_table(runs: Runs) -> str:
    """Samples without a valid answer, by kind; wrong answers by what the verifier found."""
    shown = _main(runs)
    kinds = sorted({kind for run in shown for kind in run.failures})
    rows = []
    for run in shown:
        counts = [_number(run.failures.get(kind, 0)) for kind in kinds]
        found = sorted(run.findings.items(), key=lambda item: (-item[1], item[0]))
        named = ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in found)
        samples = sum(kernel.samples for kernel in run.kernels)
        rows.append((run.configuration.title, named or NONE, f"{samples:,}", *counts))
    headers = ("asked", "samples in which the verifier found", "samples")
    return markdown((*headers, *(kind.replace("_", " ") for kind in kinds)), rows, 2)


def dead_end_table(runs: Runs) -> str:
    """Dead ends that room was made for."""
    rows = []
    for run in _main(runs):
        counts = [k.dead_ends for k in run.kernels if k.dead_ends is not None]
        if counts:
            some = sum(count > 0 for count in counts) / len(counts)
            figures_of = (_share(some), f"{sum(counts):,}", f"{max(counts):,}")
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
        cells = (f"{samples:,}", told, f"{seconds:.2f}", _number(run.calls, 2))
        rows.append((run.configuration.title, *cells))
    headers = ("asked", "samples", "tokens a sample", "seconds a sample", "attempts, if valid")
    return markdown(headers, rows)


def sample_table(runs: Runs) -> str:
    """pass@k where several samples were asked for."""
    rows = []
    for run in runs:
        if len(run.ks) > 1:
            for k in run.ks:
                value, low, high = passed(run.kernels, k, run.seed)
                told = (
                    NONE if low is None or high is None else f"{100 * low:.1f}–{100 * high:.1f} %"
                )
                title = run.configuration.title
                rows.append((title, f"{len(run.kernels):,}", k, _share(value), told))
    return markdown(("asked", "kernels", "k", "pass@k", "95 % interval"), rows)


def split_table(runs: Runs) -> str:
    """The splits that hold something back, beside the usual one, asked in the same way."""
    other = [r for r in runs if r.configuration.split != SPLIT]
    titles = {r.configuration.title for r in other}
    usual = [r for r in _main(runs) if r.configuration.title in titles]
    rows = []
    for run in [*usual, *other]:
        head = (f"`{run.configuration.split}`", run.configuration.title)
        valid = _share(passed(run.kernels, 1)[0])
        rows.append((*head, f"{len(run.kernels):,}", valid, *_of_kernels(run.kernels)))
    return markdown(("split", "asked", "kernels", "valid", *_REGISTERS), rows, 2)


def model_table(runs: Runs) -> str:
    """Further models, each beside the reference model asked in the same way, by architecture."""
    own = {r.configuration.key: r for r in runs if r.configuration.folder == REFERENCE}
    rows = []
    for run in runs:
        told = run.configuration
        if told.folder in (REFERENCE, BASELINES):
            continue
        for each in filter(None, [own.get(told.key), run]):
            rows += [(each.configuration.title, *line) for line in _by_architecture(each.kernels)]
    return markdown(("asked", "architecture", "kernels", "valid", *_REGISTERS), rows, 2)


def _by_architecture(kernels: Sequence[Kernel]) -> Iterable[tuple[str, ...]]:
    for arch in sorted({kernel.task.split("/")[0] for kernel in kernels}):
        own = [kernel for kernel in kernels if kernel.task.split("/")[0] == arch]
        yield arch, f"{len(own):,}", _share(passed(own, 1)[0]), *_of_kernels(own)


PAPER = ("VeriLocc, as its paper says", "machine IR as text", "85–99 %", "near 100 %, k = 100")
"""Of arXiv 2506.17506: what is shown, single shot, many samples."""

_SHOWN = {"text": "machine IR as text", "state": "the state", "candidates": "legal candidates"}


def paper_table(runs: Runs) -> str:
    """The share of valid answers beside the paper's. The tasks are different ones."""
    rows = [PAPER]
    for run in _asked(runs):
        assert run.prompt is not None
        most = max(run.ks)
        value = _share(passed(run.kernels, most)[0])
        many = f"{value}, k = {most}" if most > 1 else NONE
        shown = _SHOWN.get(run.prompt["format"], _SHOWN["text"])
        rows.append((run.configuration.title, shown, _share(passed(run.kernels, 1)[0]), many))
    return markdown(("", "the model is shown", "one sample", "k samples"), rows, 2)


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
    "models": model_table,
    "paper": paper_table,
}
"""By name, as the document's markers call them. A table without rows is its head alone."""
