"""Links an object file to the code object that a driver loads: by lld, or by Triton's own."""

from __future__ import annotations

import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path

from verilocc_bench.errors import InputError
from verilocc_bench.files import write_atomically
from verilocc_bench.tool_process import run_tool

_SECONDS = 60


def check_linker() -> None:
    """Raises InputError if there is no linker."""
    if _lld() is None and find_spec("triton") is None:
        raise InputError(
            "a loadable code object needs a linker: install lld (Debian: lld-22), or Triton "
            "(the extra 'build')"
        )


def linked(object_file: bytes) -> bytes:
    """The code object of an object file. Raises InputError if there is no linker, or it fails."""
    check_linker()
    lld = _lld()
    with tempfile.TemporaryDirectory() as name:
        source, output = Path(name, "kernel.o"), Path(name, "kernel.hsaco")
        write_atomically(source, object_file)
        if lld is None:
            from triton._C.libtriton import amd

            amd.link_hsaco(str(source), str(output))
        else:
            arguments = ["-shared", str(source), "-o", str(output)]
            done = run_tool(Path(lld), arguments, Path(name), _SECONDS)
            if done.returncode:
                raise InputError(f"lld: {done.stderr.decode().strip()[:200]}")
        return output.read_bytes()


def _lld() -> str | None:
    return next(filter(None, map(shutil.which, ("ld.lld-22", "ld.lld"))), None)
