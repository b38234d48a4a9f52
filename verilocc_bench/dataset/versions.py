"""Named versions of datasets: `regalloc@1.0` stands for splits with known hashes.

versions.json has the hash of each frozen split (`Dataset.hash`) with its version.
What changes a version is said in docs/dataset.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from verilocc_bench.errors import InputError

_VERSIONED = re.compile(r"(?P<name>.+)@(?P<number>\d+\.\d+)")


@cache
def known_versions() -> Mapping[str, str]:
    """The version of each frozen split, by its hash."""
    text = (files("verilocc_bench.dataset") / "versions.json").read_text("utf-8")
    found: Mapping[str, str] = json.loads(text)
    return found


def split_version(name: str) -> tuple[str, str | None]:
    """A dataset's name and the number behind its `@`; None without one."""
    match = _VERSIONED.fullmatch(name)
    return (name, None) if match is None else (match["name"], match["number"])


def tag_of(name: str) -> str | None:
    """The tag of a name's version in a repository on the Hub; None without a version."""
    number = split_version(name)[1]
    return None if number is None else f"v{number}"


def check_version(name: str, split: str, found: str) -> None:
    """Raises InputError if the name has a version and the split's hash is not of that version.

    A folder, or a copy on the Hub, may have any name; a dataset's own name must be the version's.
    """
    plain, number = split_version(name)
    if number is None:
        return
    dataset = plain.rpartition("/")[2].partition(":")[0]
    own = {each.rpartition("@")[0] for each in known_versions().values()}
    version = known_versions().get(found)
    known, _, known_number = (version or "").rpartition("@")
    if known_number != number or (dataset in own and dataset != known):
        there = "is of no known version" if version is None else f"is of {version}"
        raise InputError(
            f"the split {split!r} with the hash {found[:16]}… {there}; known are "
            f"{', '.join(sorted(set(known_versions().values())))}",
            source=name,
        )
