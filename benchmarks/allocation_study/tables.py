"""The tables of the document, as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.allocation_study.figures import Spread, cells, solved_share, spread, total, worth
from benchmarks.allocation_study.questions import BEST, QUICK, TIGHT
from benchmarks.allocation_study.records import Measurement, Measurements
from verilocc_bench.backends.nvidia.write_back import RunVerdict

ALLOCATORS = ("compiler", "llvm-basic", *QUICK, "best")


def markdown(headers: Sequence[str], rows: Iterable[Sequence[object]], texts: int = 1) -> str:
    """A table whose first `texts` columns are text, the others numbers."""
    lines = [headers, ["---"] * texts + ["---:"] * (len(headers) - texts), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def share(part: int, whole: int) -> str:
    """A share in per cent; it has decimals only if it would wrongly round to 0 or 100."""
    if not whole:
        return "–"
    value = 100 * part / whole
    digits = 1 if 0 < value < 1 or 99 < value < 100 else 0
    return f"{value:.{digits}f} %"


def _groups(measurements: Measurements) -> list[tuple[str, str, list[Measurement]]]:
    found = [(arch, family, own) for (arch, family), own in cells(measurements).items()]
    return [*found, ("all", "", list(measurements))]


def optimality_table(measurements: Measurements) -> str:
    """By architecture and family."""
    rows = []
    for arch, family, own in _groups(measurements):
        compiler, best = worth(own, "compiler"), worth(own, "best")
        assert compiler is not None
        assert best is not None
        rows.append(
            (
                *(arch, family, best.kernels),
                share(compiler.optimal, compiler.valid),
                share(best.optimal, best.valid),
                share(best.fewer, best.valid),
                f"{compiler.gap:.2f}",
                f"{best.gap:.2f}",
                best.most_saved,
                share(best.higher, best.valid),
            )
        )
    headers = (
        *("kernels", "compiler optimal", "`best` optimal", "fewer", "compiler's gap"),
        *("`best`'s gap", "most saved", "occupancy up"),
    )
    return markdown(("architecture", "family", *headers), rows, 2)


def allocator_table(measurements: Measurements) -> str:
    """Every allocator against the compiler, by compiler."""
    rows = []
    for vendor, own in _vendors(measurements).items():
        for name in ALLOCATORS:
            found = worth(own, name)
            if found is not None:
                rows.append(
                    (
                        vendor,
                        f"`{name}`",
                        found.kernels,
                        *(share(n, found.kernels) for n in (found.fewer, found.more)),
                        share(found.kernels - found.valid, found.kernels),
                        share(found.optimal, found.kernels),
                        f"{found.gap:.2f}",
                    )
                )
    headers = ("kernels", "fewer", "more", "no answer", "optimal", "gap, mean")
    return markdown(("compiler", "allocator", *headers), rows, 2)


def _vendors(measurements: Measurements) -> Mapping[str, Measurements]:
    """By the compiler that made the labels."""
    found: dict[str, list[Measurement]] = {}
    for each in sorted(measurements, key=lambda each: each.arch):
        found.setdefault(each.label_source, []).append(each)
    return found


def bound_table(measurements: Measurements) -> str:
    """How the lower bounds are proved, and their distance from pressure."""
    rows = []
    for arch in sorted({each.arch for each in measurements}):
        own = [each for each in measurements if each.arch == arch]
        kinds = Counter(each.bound_kind for each in own)
        for kind, count in sorted(kinds.items()):
            more = sum(e.bound - e.pressure for e in own if e.bound_kind == kind)
            best = [e.answers["best"].registers == e.bound for e in own if e.bound_kind == kind]
            cells_of_row = (count, f"{more / count:.2f}", share(sum(best), count))
            rows.append((arch, kind.replace("_", " "), *cells_of_row))
    headers = ("architecture", "proof", "kernels", "above pressure, mean", "met by `best`")
    return markdown(headers, rows, 2)


def conflict_table(measurements: Measurements) -> str:
    """Weighted bank conflicts of the compiler, best, and best for bank conflicts."""
    rows = []
    names = ("best", "best bank-conflicts")
    for arch, family, found in _groups(measurements):
        own = [e for e in found if _has(e, names)]
        some = (total(own, name, lambda m: m.conflicts) for name in ("compiler", *names))
        had = sum((e.answers["compiler"].conflicts or 0) > 0 for e in own)
        rows.append((arch, family, had, *(f"{n:,}" for n in some)))
    headers = ("architecture", "family", "kernels with some", "compiler", "`best`", "for conflicts")
    return markdown(headers, rows, 2)


def _has(each: Measurement, names: Iterable[str]) -> bool:
    return all(name in each.answers and each.answers[name].valid for name in names)


def copy_table(measurements: Measurements) -> str:
    """Identity copies by objective, and the registers that each objective costs."""
    own = [e for e in measurements if _has(e, BEST)]
    rows = []
    for name in ("compiler", *BEST):
        found = worth(own, name)
        saved = "–" if found is None else f"{found.saved:.1f}"
        rows.append((f"`{name}`", f"{total(own, name, lambda m: m.copies):,}", saved))
    return markdown(("answers", "identity copies", "registers saved, mean"), rows)


def seconds_text(seconds: float) -> str:
    """Seconds with two or three significant digits."""
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def time_table(measurements: Measurements) -> str:
    """Median seconds by allocator and architecture, and the most."""
    rows = []
    archs = sorted({each.arch for each in measurements})
    for name in (*QUICK, *BEST):
        asked = [e for e in measurements if name in e.answers]
        found = [_seconds([e for e in asked if e.arch == arch], name) for arch in archs]
        every = _seconds(asked, name)
        largest = "–" if every is None else seconds_text(every.largest)
        medians = ("–" if each is None else seconds_text(each.median) for each in found)
        rows.append((f"`{name}`", *medians, largest))
    return markdown(("allocator", *archs, "most"), rows)


def _seconds(own: Measurements, name: str) -> Spread | None:
    seconds = (each.answers[name].seconds for each in own)
    return spread(s for s in seconds if s is not None)


def compiler_time_table(
    records: Sequence[Mapping[str, Any]], study: Mapping[str, Measurement]
) -> str:
    """LLVM's allocation and `best`, each with its analysis, by architecture."""
    rows = []
    for arch in sorted({each["arch"] for each in records}):
        own = [each for each in records if each["arch"] == arch]
        ours = [
            study[each["id"]].prepare_seconds + (study[each["id"]].answers["best"].seconds or 0.0)
            for each in own
        ]
        theirs = [each["allocation_seconds"] for each in own]
        ratios = spread(a / b for a, b in zip(ours, theirs, strict=True))
        spreads = [spread(each["greedy_seconds"] for each in own), spread(theirs), spread(ours)]
        medians = [seconds_text(found.median) for found in spreads if found is not None]
        assert ratios is not None
        times = (f"{ratios.median:,.0f}", f"{ratios.ninetieth:,.0f}")
        rows.append((arch, len(own), *medians, *times))
    headers = (
        *("architecture", "kernels", "LLVM's greedy passes", "with its analyses"),
        *("`best` with its analyses", "ratio, median", "90 %"),
    )
    return markdown(headers, rows)


def tight_table(measurements: Measurements) -> str:
    """Shares solved at tight budgets, of all kernels asked and of those known to have an answer."""
    headers = ["allocator"]
    rows = [[f"`{name}`"] for name in QUICK]
    for budget in TIGHT:
        asked = [e for e in measurements if budget in e.budgets]
        possible = [e for e in asked if _is_possible(e, budget)]
        headers += [f"`{budget}`, {len(asked)} kernels", "of possible"]
        for name, row in zip(QUICK, rows, strict=True):
            row += [share(*solved_share(own, budget, name)[:2]) for own in (asked, possible)]
    return markdown(headers, rows)


def _is_possible(each: Measurement, budget: str) -> bool:
    """True if an answer at the budget is known, from `best` or from any allocator asked there."""
    tight = each.budgets[budget]
    registers = each.answers["best"].registers
    return bool(tight.solved) or (registers is not None and registers <= tight.registers)


Records = Sequence[Mapping[str, Any]]

_HEADERS = (
    *("family", "kernels", "ptxas", "`best`", "`best --runnable`", "as many as `best`", "more"),
    *("fewer than ptxas", "more", "hazards of `best`", "of `--runnable`"),
    *("run by the compiler's own rules", "values destroyed: `best`", "`--runnable`"),
)


def runnable_table(records: Records, study: Mapping[str, Measurement]) -> str:
    """Registers and verdicts of `best` and of `best --runnable`, beside ptxas's, by family."""
    families = sorted({study[each["id"]].family for each in records})
    groups = [(name, [e for e in records if study[e["id"]].family == name]) for name in families]
    return markdown(_HEADERS, [_runnable(*group) for group in (*groups, ("all", records))])


def _runnable(family: str, own: Records) -> tuple[object, ...]:
    by_rules = RunVerdict.BY_THE_RULES.value, RunVerdict.COMPILERS_OWN.value
    return (
        family,
        len(own),
        *(f"{sum(each[key] for each in own):,}" for key in ("compiler", "plain", "runnable")),
        sum(each["runnable"] == each["plain"] for each in own),
        sum(each["runnable"] > each["plain"] for each in own),
        sum(each["runnable"] < each["compiler"] for each in own),
        sum(each["runnable"] > each["compiler"] for each in own),
        f"{sum(each['plain_hazards'] for each in own):,}",
        sum(each["hazards"] for each in own),
        sum(each["verdict"] in by_rules for each in own),
        f"{sum(each['plain_destroyed'] for each in own):,}",
        sum(each["destroyed"] for each in own),
    )
