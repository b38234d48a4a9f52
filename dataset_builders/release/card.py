"""The dataset card: a head for the Hub, and a datasheet for readers.

It is a function of the dataset's figures and its manifest, without dates: equal
input gives equal text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from dataset_builders.release.card_sections import CardFacts, FolderCounts, card_text
from dataset_builders.statistics import DatasetStatistics, draw_plots, statistics_of
from dataset_builders.statistics.summary import in_order
from dataset_builders.sweeps.experts import EXPERT, EXPERT_RAW
from dataset_builders.sweeps.splits import SPLITS
from verilocc_bench.dataset import default_architectures, split_config
from verilocc_bench.errors import InputError
from verilocc_bench.files import write_atomically
from verilocc_bench.targets import PUBLISHED
from verilocc_bench.views.chat import CHAT, chat_splits

CARD = "README.md"
PLOT_FOLDER = "plots"
HUB_NAME = "verilocc/regalloc"
FEWEST_ROWS_FOR_PLOTS = 200

_SIZE_CATEGORIES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"))


def write_card(folder: Path, manifest: Mapping[str, Any], repository: str = HUB_NAME) -> list[Path]:
    """Writes the card of a dataset folder, and its plots if there are at least 200 rows.

    All files but the manifest must exist. Returns the written files, relative
    to the folder. Raises MissingExtraError if plots need matplotlib.
    """
    statistics = statistics_of(folder)
    plots: list[str] = []
    if len(statistics.rows) >= FEWEST_ROWS_FOR_PLOTS:
        plots = draw_plots(statistics, folder / PLOT_FOLDER)
    counts = Counter(
        ("data" if r.track == "assign" else r.track, r.arch, r.family, r.split)
        for r in statistics.rows
    )
    text = dataset_card(counts, manifest, statistics=statistics, plots=plots, repository=repository)
    write_atomically(folder / CARD, text)
    return [*(Path(PLOT_FOLDER, name) for name in plots), Path(CARD)]


def dataset_card(
    rows: FolderCounts,
    manifest: Mapping[str, Any],
    *,
    statistics: DatasetStatistics,
    plots: Sequence[str] = (),
    repository: str = HUB_NAME,
) -> str:
    """The README.md of a dataset folder: YAML head and text.

    `rows` counts by (track folder, architecture, family, split). `plots` are the names
    of files in the folder `plots`. `repository` is the dataset's id on the Hub.
    """
    facts = CardFacts(rows, manifest, statistics, tuple(plots), repository)
    head = yaml.safe_dump(_head(facts), sort_keys=False)
    return f"---\n{head}---\n\n{card_text(facts)}"


def _head(facts: CardFacts) -> dict[str, Any]:
    licenses = sorted(name.lower() for name in facts.licenses)
    count = sum(facts.counts.values())
    return {
        "license": licenses[0] if len(licenses) == 1 else licenses,
        "pretty_name": "Register allocation for GPU kernels"
        + (", written by experts" if facts.is_expert else ""),
        "language": ["code"],
        "annotations_creators": ["machine-generated"],
        "source_datasets": ["original"],
        "size_categories": [
            next((name for limit, name in _SIZE_CATEGORIES if count < limit), "100K<n<1M")
        ],
        "task_categories": ["text-generation"],
        "tags": [
            *("code", "compilers", "register-allocation", "gpu", "machine-ir"),
            *(() if facts.is_expert else ("triton",)),
            *("amdgpu", "cuda", "benchmark"),
        ],
        "configs": list(
            expert_configs(facts.counts) if facts.is_expert else card_configs(facts.counts)
        ),
    }


def card_configs(rows: FolderCounts) -> Iterator[dict[str, Any]]:
    """The configs of a card's head, for rows counted by (track folder, arch, family, split).

    Architectures that are not published have configs of their own alone.
    """
    archs = sorted({key[1] for key in rows})
    families = sorted({key[2] for key in rows})
    usual = default_architectures(archs)
    shared = ["*"] if usual == archs else usual
    selections: list[tuple[str, list[tuple[str, str, str]]]] = [
        ("default", [("data", arch, "*") for arch in shared]),
        *((family, [("data", arch, family) for arch in shared]) for family in families),
        *((arch, [("data", arch, "*")]) for arch in archs),
        ("split", [("split", arch, "*") for arch in shared]),
        *((split_config(arch), [("split", arch, "*")]) for arch in archs if arch not in PUBLISHED),
        ("raw", [("raw/data", "*", "*"), ("raw/split", "*", "*")]),
    ]
    for name, patterns in selections:
        files = []
        for split in in_order(SPLITS, {key[3] for key in rows}):
            paths = [
                f"{folder}/{arch}/{family}/{split}-*.parquet"
                for folder, arch, family in patterns
                if any(
                    key[0] == folder.removeprefix("raw/")
                    and arch in ("*", key[1])
                    and family in ("*", key[2])
                    and key[3] == split
                    for key in rows
                )
            ]
            if paths:
                files.append({"split": split, "path": paths if len(paths) > 1 else paths[0]})
        if files:
            config: dict[str, Any] = {"config_name": name, "data_files": files}
            yield config | ({"default": True} if name == "default" else {})
    if chats := chat_splits(rows):
        files = [{"split": split, "path": f"{CHAT}/*/*/{split}-*.parquet"} for split in chats]
        yield {"config_name": CHAT, "data_files": files}


def expert_configs(rows: FolderCounts, place: str = "") -> Iterator[dict[str, Any]]:
    """The configs of experts' kernels, for rows counted as for `card_configs`.

    `place` is the path of their folder in the repository, with a slash. No
    such config is the default, so that nobody trains on it by accident.
    """
    for name, folder in ((EXPERT, "data"), (EXPERT_RAW, "raw/data")):
        for split in in_order(SPLITS, {key[3] for key in rows}):
            path = f"{place}{folder}/*/*/{split}-*.parquet"
            yield {"config_name": name, "data_files": [{"split": split, "path": path}]}


def with_configs(card: str, configs: Sequence[Mapping[str, Any]]) -> str:
    """A card with these configs behind the configs of its head, in place of equal names.

    Raises InputError for a card whose head does not describe a dataset.
    """
    parts = card.split("---\n", 2)
    head = yaml.safe_load(parts[1]) if len(parts) == 3 and not parts[0] else None
    if not isinstance(head, dict) or not isinstance(head.get("configs"), list):
        raise InputError("expected a YAML head with a list of configs", source=CARD)
    names = {config["config_name"] for config in configs}
    kept = [each for each in head["configs"] if each.get("config_name") not in names]
    head["configs"] = [*kept, *map(dict, configs)]
    return f"---\n{yaml.safe_dump(head, sort_keys=False)}---\n{parts[2]}"
