"""Checks the configs of a card: each must name exactly its files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from dataset_builders.building.install import MANIFEST
from dataset_builders.inspection.findings import CheckKind, Findings
from dataset_builders.inspection.layout import CARD, ParquetPlace, files_in, parquet_place
from dataset_builders.sweeps.experts import EXPERT, EXPERT_RAW
from verilocc_bench.dataset import default_architectures, split_config
from verilocc_bench.errors import InputError
from verilocc_bench.files import read_text
from verilocc_bench.views.chat import CHAT

_Config = dict[str, set[str]]
"""Files by split."""


def check_card(
    folder: Path, places: Sequence[ParquetPlace], findings: Findings, *, expert: bool = False
) -> None:
    """Compares the configs in the YAML head of the card with the existing Parquet files.

    `expert` says that the rows are kernels of experts, which have no default config.
    The card of a published dataset also has the configs of experts' kernels that lie in it.
    """
    if not (folder / CARD).is_file():
        return  # another check reports it

    def add(message: str) -> None:
        findings.add(CheckKind.CARD, CARD, message)

    try:
        head = _yaml_head(read_text(folder / CARD))
        inner = _inner_places(folder)
        chats = [file for file in files_in(folder) if file.startswith(f"{CHAT}/")]
        configs = _configs(head, [*(place.file for place in (*places, *inner)), *chats])
        default = [each["config_name"] for each in head["configs"] if each.get("default")]
    except InputError as error:
        add(error.message)
        return
    wanted = [] if expert else ["default"]
    if default != wanted:
        add(f"the default config is {default}, expected {wanted}")
    expected = _expected(places, expert=expert)
    if inner and EXPERT in configs:
        expected |= _expected(inner, expert=True)
    for file in chats:
        split = Path(file).name.partition("-")[0]
        expected.setdefault(CHAT, {}).setdefault(split, set()).add(file)
    for name in sorted(expected.keys() - configs.keys()):
        add(f"there is no config {name!r}")
    for name, config in configs.items():
        if name not in expected:
            add(f"there is a config {name!r}, which stands for no rows")
            continue
        for message in _differences(config, expected[name]):
            add(f"config {name!r}, {message}")


def _inner_places(folder: Path) -> list[ParquetPlace]:
    """The files of rows in the folder of experts' kernels, with paths from the outer folder."""
    inner = folder / EXPERT
    if not (inner / MANIFEST).is_file():
        return []
    places = [parquet_place(file) for file in files_in(inner)]
    return [replace(place, file=f"{EXPERT}/{place.file}") for place in places if place is not None]


def _yaml_head(text: str) -> dict[str, Any]:
    import yaml

    parts = text.split("---\n", 2)
    if parts[0] or len(parts) < 3:
        raise InputError("expected a YAML head between two lines ---")
    try:
        head = yaml.safe_load(parts[1])
    except yaml.YAMLError as error:
        raise InputError(f"the head is not YAML: {error}") from None
    if not isinstance(head, dict) or not isinstance(head.get("configs"), list):
        raise InputError("the head must have a list of configs")
    return head


def _configs(head: dict[str, Any], files: Sequence[str]) -> dict[str, _Config]:
    """Configs by name, with their patterns resolved. Raises InputError for another form."""
    configs: dict[str, _Config] = {}
    for each in head["configs"]:
        if not isinstance(each, dict) or not isinstance(each.get("data_files"), list):
            raise InputError("every config must have a list of data_files")
        name = str(each.get("config_name"))
        if name in configs:
            raise InputError(f"the config {name!r} stands twice")
        configs[name] = {}
        for entry in each["data_files"]:
            if not isinstance(entry, dict) or not {"split", "path"} <= entry.keys():
                raise InputError(f"config {name!r}: expected a split and a path of data_files")
            split, paths = str(entry["split"]), entry["path"]
            if split in configs[name]:
                raise InputError(f"config {name!r}: the split {split!r} stands twice")
            patterns = paths if isinstance(paths, list) else [paths]
            configs[name][split] = set(_resolved(map(str, patterns), files))
    return configs


def _resolved(patterns: Iterable[str], files: Sequence[str]) -> Iterable[str]:
    """The files that match patterns. As on the Hub, `*` does not match a slash."""
    for pattern in patterns:
        parts = pattern.split("/")
        for file in files:
            names = file.split("/")
            if len(names) == len(parts) and all(map(fnmatchcase, names, parts)):
                yield file


def _expected(places: Sequence[ParquetPlace], *, expert: bool) -> dict[str, _Config]:
    """The assign track as a whole, by family and by architecture; the split track; raw rows.

    Kernels of experts are all in one config, and those of an architecture that is not
    published in configs of its own.
    """
    configs: dict[str, _Config] = {}
    usual = default_architectures({place.arch for place in places})
    for place in places:
        if expert:
            names = {EXPERT_RAW if place.raw else EXPERT}
        elif place.raw:
            names = {"raw"}
        elif place.track == "split":
            names = {split_config(place.arch), *(["split"] if place.arch in usual else [])}
        else:
            names = {place.arch, *(["default", place.family] if place.arch in usual else [])}
        for name in names:
            configs.setdefault(name, {}).setdefault(place.split, set()).add(place.file)
    return configs


def _differences(found: _Config, expected: _Config) -> Iterable[str]:
    for split in sorted(expected.keys() - found.keys()):
        yield f"split {split!r}: it is missing, expected {len(expected[split])} files"
    for split in sorted(found.keys() - expected.keys()):
        yield f"split {split!r}: there are no such rows"
    for split in sorted(found.keys() & expected.keys()):
        for file in sorted(expected[split] - found[split]):
            yield f"split {split!r}: its patterns miss {file}"
        for file in sorted(found[split] - expected[split]):
            yield f"split {split!r}: its patterns take {file}, which belongs to another"
