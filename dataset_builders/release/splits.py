"""Which split a row belongs to: a function of its sweep group alone.

Whole groups go to one split, so that a kernel in `test` has no near twin in
`train`; and a group goes to the same split in every sweep and architecture.
"""

from __future__ import annotations

import hashlib

__all__ = ["SPLITS", "split_of"]

SPLITS = ("train", "validation", "test")
_TENTHS = {8: "validation", 9: "test"}


def split_of(sweep_name: str, group: str) -> str:
    """The split of a group: 80 % train, 10 % validation, 10 % test, by hash.

    The sweep `mini` is all `test`: it is there to be evaluated on.
    """
    if sweep_name == "mini":
        return "test"
    digest = hashlib.sha256(f"split of {group}".encode()).digest()
    return _TENTHS.get(int.from_bytes(digest[:8], "big") % 10, "train")
