"""The sections of a dataset card; those without anything to say are left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tabulate import tabulate

from dataset_builders.release.card_examples import usage
from dataset_builders.release.card_text import card_words
from dataset_builders.release.citation import bibtex, read_citation
from dataset_builders.release.duplicates import NEAR_DISTANCE
from dataset_builders.statistics import PLOTS, DatasetStatistics, tables
from dataset_builders.statistics.summary import in_order
from dataset_builders.sweeps.experts import EXPERT, EXPERT_RAW, EXPERT_SWEEPS
from dataset_builders.sweeps.fresh import FRESH, is_fresh
from dataset_builders.sweeps.splits import SPLITS
from verilocc_bench.dataset import EMBEDDED, default_architectures, split_config
from verilocc_bench.report.tables import Table
from verilocc_bench.targets import get_target
from verilocc_bench.views.chat import CHAT, chat_splits

FolderCounts = Mapping[tuple[str, str, str, str], int]
"""Rows by (track folder, architecture, family, split)."""


@dataclass(frozen=True, slots=True)
class CardFacts:
    """What a card is made of; `plots` are the names of files in the folder `plots`."""

    counts: FolderCounts
    manifest: Mapping[str, Any]
    statistics: DatasetStatistics
    plots: tuple[str, ...]
    repository: str

    @property
    def vendors(self) -> set[str]:
        """The vendors of the architectures."""
        return {get_target(key[1]).vendor for key in self.counts}

    @property
    def splits(self) -> list[str]:
        """The splits that have rows, in their order."""
        return in_order(SPLITS, {key[3] for key in self.counts})

    @property
    def is_expert(self) -> bool:
        """True if the rows are kernels of experts."""
        return self.manifest["sweep"] in EXPERT_SWEEPS

    @property
    def words(self) -> Mapping[str, Any]:
        """The card's texts by topic; those for experts' kernels go before the others."""
        words = card_words()
        return {**words, **words["experts"]} if self.is_expert else words

    @property
    def licenses(self) -> set[str]:
        """The SPDX identifiers of the rows."""
        return {row.license for row in self.statistics.rows} or {"Apache-2.0"}


def card_text(facts: CardFacts) -> str:
    """The card without its head."""
    sweep, about = facts.manifest["sweep"], facts.words["about"]
    what = ""
    if facts.is_expert:
        what = " that experts wrote"
    elif sweep == EMBEDDED:
        what = f": the dataset `{EMBEDDED}`"
    elif is_fresh(sweep) and "beside" in facts.manifest:
        what = " that no published split has"
    sections = [f"# Register allocation for GPU kernels{what}\n\n{about}"]
    for title, section in _SECTIONS.items():
        text = section(facts)
        if text:
            sections.append(f"## {title}\n\n{text.strip()}")
    return "\n\n".join(sections) + "\n"


def _configs(facts: CardFacts) -> str:
    if facts.is_expert:
        both = [(f"`{EXPERT}`", "all rows"), (f"`{EXPERT_RAW}`", "their code, by `id`")]
        return _names_table(both, ("config", "rows"))
    archs = {key[1] for key in facts.counts}
    usual = {*default_architectures(archs)}
    rows = [
        ("`default`", "the assign track: the compiler gave every virtual register one register"),
        (_codes({key[2] for key in facts.counts}), "the same by family"),
        (_codes(usual), "the same by architecture"),
    ]
    if any(key[0] == "split" for key in facts.counts):
        rows.append(
            ("`split`", "the split track: the compiler had to move or spill values; no label")
        )
    for arch in sorted(archs - usual):
        rows.append((f"`{arch}`", "an architecture by itself: no rows of it are in those above"))
        if any(key[:2] == ("split", arch) for key in facts.counts):
            rows.append((f"`{split_config(arch)}`", "its split track"))
    rows.append(("`raw`", "the compiler's machine IR or machine code of all rows, by `id`"))
    if chats := chat_splits(facts.counts):
        rows.append((f"`{CHAT}`", f"{_codes(set(chats))} as conversations to train on"))
    return _names_table(rows, ("config", "rows"))


def _columns(facts: CardFacts) -> str:
    table, raw = (
        _names_table([(f"`{name}`", text) for name, text in columns.items()], ("column", "holds"))
        for columns in (facts.words["columns"], facts.words["raw_columns"])
    )
    return f"{table}\n\nThose of the config `raw`:\n\n{raw}"


def _splits(facts: CardFacts) -> str:
    if facts.splits == ["test"]:
        return "All rows are `test`: this dataset is there to be evaluated on."
    rows = [(f"`{split}`", SPLITS.get(split, "")) for split in facts.splits]
    return f"{_names_table(rows, ('split', 'holds'))}\n\n{facts.words['groups']}"


def _counts(facts: CardFacts) -> str:
    counts = Counter[tuple[str, str, str, str]]()
    for (folder, *rest), count in facts.counts.items():
        counts["assign" if folder == "data" else folder, rest[0], rest[1], rest[2]] += count
    table = tables.count_table(counts, facts.splits)
    return tables.markdown_table(table) + _plot(facts, "splits.png")


def _sizes(facts: CardFacts) -> str:
    sizes, registers = tables.size_table(facts.statistics), tables.register_table(facts.statistics)
    types = tables.value_table(facts.statistics, "data type", lambda row: row.data_type)
    heads = tables.value_table(facts.statistics, "head dimension", lambda row: row.head_dimension)
    return "\n\n".join(
        [
            *(_explained(sizes) + _plot(facts, "sizes.png"), _explained(registers)),
            *map(_explained, (types, heads)),
            "All figures: `verilocc-bench dataset stats DIR`.",
        ]
    )


def _origin(facts: CardFacts) -> str:
    vendors = facts.words["vendors"].items()
    made = [text for vendor, text in vendors if vendor in facts.vendors]
    table = _explained(tables.kernel_table(facts.statistics))
    return "\n\n".join([facts.words["origin"], *made, table])


def _labels(facts: CardFacts) -> str:
    sources, quality = (
        _explained(table(facts.statistics)) for table in (tables.label_table, tables.quality_table)
    )
    return f"{facts.words['labels']}\n\n{sources}\n\n{quality}{_plot(facts, 'registers.png')}"


def _duplicates(facts: CardFacts) -> str:
    rows = facts.statistics.rows
    clusters = Counter(row.cluster or row.id for row in rows)
    shared = sum(count for count in clusters.values() if count > 1)
    sharing = f"{shared:,} rows share" if shared else "no row shares"
    text = (
        f"No two rows have the same normalized text. The {len(rows):,} rows are in "
        f"{len({row.group for row in rows}):,} sweep groups and {len(clusters):,} clusters, by "
        f"distances of at most {NEAR_DISTANCE}; {sharing} a cluster with others. "
        f"{facts.words['distance']}"
    )
    distances = tables.leakage_table(facts.statistics.leakage)
    if not distances.rows:
        return text
    return f"{text}\n\n{_explained(distances)}{_plot(facts, 'distances.png')}"


def _rejected(facts: CardFacts) -> str:
    manifest = facts.manifest
    made = "taken" if facts.is_expert else "compiled"
    points = f"{manifest['points']:,} points of the sweep `{manifest['sweep']}` were {made}"
    table = tables.rejected_table(facts.statistics.rejected)
    if not table.rows:
        return f"{points}, and every one gave a row."
    return f"{points}.\n\n{_explained(table)}"


def _uses(facts: CardFacts) -> str:
    words = facts.words
    intended, unintended = words["intended"], words["unintended"]
    if "train" in facts.splits:
        unintended += f" {words['choice']}"
    else:
        intended = words["intended_without_training"]
    return f"{intended}\n\n{unintended}\n\n{words['kept_out']}"


def _limits(facts: CardFacts) -> str:
    limits = card_words()["limits"] | (facts.words["limits"] if facts.is_expert else {})
    vendors = facts.words["vendors"].keys() - facts.vendors
    return "\n".join(
        f"- {text}".replace("\n", "\n  ") for topic, text in limits.items() if topic not in vendors
    )


def _rebuilding(facts: CardFacts) -> str:
    manifest, archs = facts.manifest, facts.manifest["archs"]
    sweep = manifest["sweep"]
    # Who has the seed of a fresh sweep puts it in.
    options = f"--sweep {f'{FRESH} --seed SEED' if is_fresh(sweep) else sweep}"
    options += f" --arch {','.join(archs)}"
    chosen = ("every", "limit")
    options += "".join(f" --{name} {manifest[name]}" for name in chosen if name in manifest)
    options += " --beside DATASET" if "beside" in manifest else ""
    needs = "the extra `build`"
    if facts.is_expert:
        needs = "the extra `expert`, the libraries (`make expert-archives`), g++"
    versions = ", ".join(
        f"{name} {number}" for name, number in sorted(manifest["versions"].items())
    )
    flags = [
        (f"`{name}`", f"`{' '.join(options)}`")
        for name, options in sorted(manifest["flags"].items())
    ]
    return f"""\
`verilocc-bench dataset rebuild DIR` compiles rows again and compares them with what is here. The
whole of it is built by

```
verilocc-bench build {options} --output DIR
```

which needs {needs} and no GPU. `manifest.json` has the hashes of all files, and of the
sources of the kernels; `rejected.jsonl` why a point of the sweep gave no row.

Versions: {versions}. Flags:

{_names_table(flags, ("stage", "flags"))}"""


def _licence(facts: CardFacts) -> str:
    names = " and ".join(sorted(facts.licenses))
    if facts.is_expert:
        text = "as the libraries: by row in the column `license`."
        return f"{names}, {text} {facts.words['notices']}"
    return (
        f"{names}, as the sources of the kernels: by kernel in the table of kernels, by row in the "
        "column `license`."
    )


def _citation(facts: CardFacts) -> str:
    citation = read_citation()
    doi = facts.manifest.get("doi") or citation.get("doi")
    return f"```bibtex\n{bibtex(citation, doi)}\n```"


_SECTIONS: dict[str, Callable[[CardFacts], str]] = {
    "Load": lambda facts: usage(facts.counts, facts.manifest["sweep"], facts.repository),
    "Configs": _configs,
    "Columns": _columns,
    "Splits": _splits,
    "Rows": _counts,
    "Sizes": _sizes,
    "Where rows come from": _origin,
    "Labels": _labels,
    "Verification": lambda facts: str(facts.words["verification"]),
    "Duplicates and leakage": _duplicates,
    "Rejected": _rejected,
    "Uses": _uses,
    "Known limits": _limits,
    "Rebuild": _rebuilding,
    "Licence": _licence,
    "Cite": _citation,
}


def _explained(table: Table) -> str:
    return f"{tables.markdown_table(table)}\n\n{table.meaning}"


def _plot(facts: CardFacts, name: str) -> str:
    if name not in facts.plots:
        return ""
    title, reading = PLOTS[name]
    return f"\n\n![{title}](plots/{name})\n\n*{title}: {reading}.*"


def _names_table(rows: list[tuple[str, str]], headers: tuple[str, str]) -> str:
    return tabulate(rows, headers, tablefmt="pipe", colalign=("left", "left"))


def _codes(names: set[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))
