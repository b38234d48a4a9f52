"""Triton's own linker for AMD's code objects."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from verilocc_bench.errors import InputError


def link_code_object(source: Path, output: Path) -> None:
    """Links an object file to a code object. Raises InputError without Triton."""
    if find_spec("triton") is None:
        raise InputError(
            "a loadable code object needs a linker: install lld (Debian: lld-22), or Triton "
            "(the extra 'build')"
        )
    from triton._C.libtriton import amd

    amd.link_hsaco(str(source), str(output))
