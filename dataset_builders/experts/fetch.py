"""Fetches the archives of all libraries, after it has said how large they are.

python -m dataset_builders.experts.fetch [LIBRARY …]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from dataset_builders.experts.archives import fetch
from dataset_builders.experts.registry import SOURCES
from verilocc_bench.errors import InputError


def main(names: Sequence[str]) -> int:
    """Fetches the archives of these libraries, or of all, and prints their paths."""
    try:
        for name in names:
            if name not in SOURCES:
                raise InputError(f"unknown library {name!r}; known are {', '.join(SOURCES)}")
        archives = [SOURCES[name].archive for name in names or SOURCES]
        total = sum(archive.size_bytes for archive in archives) / 1e6
        print(f"archives: {len(archives)}, {total:.1f} MB together", file=sys.stderr)
        for path in fetch(archives):
            print(path)
    except InputError as error:
        print(f"fetch: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
