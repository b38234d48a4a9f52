"""`verilocc-bench run` of a code object: a kernel of one's own, with its arguments in a file."""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import zipfile
import zlib
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.cli.run_arguments import FOR_TRACES, refuse_options
from verilocc_bench.errors import InputError
from verilocc_bench.execution import MachineExecution, load_kernel
from verilocc_bench.files import opened_to_write, read_data

DIGEST_LENGTH = 16

_DAMAGE = (
    AttributeError,
    EOFError,
    KeyError,
    MemoryError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What numpy and zipfile raise about damaged archives."""


def is_code_object(path: Path) -> bool:
    """True for the name of a file that AMD's tools or `lower` make. (A cubin is ELF, too.)"""
    return path.suffix in {".o", ".hsaco", ".co"}


def run_code_object(options: argparse.Namespace) -> int:
    """Executes a kernel of a code object and prints a digest of every array afterwards."""
    path = Path(options.instance)
    if options.arguments is None or options.grid is None:
        raise InputError("a code object needs --arguments and --grid", source=path)
    if options.answer is not None:
        raise InputError("an answer is for an id of a dataset, this is a code object", source=path)
    refuse_options(options, ("trace", *FOR_TRACES, "tiles"), "is for an id of a dataset")
    arrays = read_arrays(options.arguments)
    if wrong := sorted(arrays.keys() & {"file", "allow_pickle"}):
        raise InputError(f"numpy saves no array called {wrong[0]!r}", source=options.arguments)
    try:
        kernel = load_kernel(read_data(path), options.function)
        done = kernel.run(
            list(arrays.values()), options.grid, block=options.block, asynchronous=not options.fast
        )
    except InputError as error:
        raise error.located(path) from None
    buffers = {
        name: buffer
        for name, buffer in zip(arrays, done.buffers, strict=True)
        if buffer is not None
    }
    if options.output is not None:
        with opened_to_write(options.output) as file:
            np.savez(file, **cast("Any", buffers))
    document = _document(kernel.code.name, arrays, buffers, done)
    if options.json:
        print(json.dumps(document, indent=2))
        return 0
    print(f"{kernel.code.name}: {done.wave_instructions:,} wave instructions")
    for each in document["buffers"]:
        changed = "changed" if each["changed"] else "as before"
        print(f"  {each['name']} {each['dtype']} {each['shape']}: {each['sha256']} {changed}")
    if done.event_count:
        print(f"{done.event_count:,} registers read or written too soon; the first:")
        for event in done.events[:5]:
            print(f"  {event}")
    return 0


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz file, in its order. Raises InputError for another file."""
    try:
        found = np.load(io.BytesIO(read_data(path)), allow_pickle=False)
        if isinstance(found, np.ndarray):
            raise InputError("expected an .npz file of arrays by name, not one array", source=path)
        with found as file:
            return {name: file[name] for name in file.files}
    except _DAMAGE as error:
        message = f"expected an .npz file of arrays ({type(error).__name__}: {str(error)[:80]})"
        raise InputError(message, source=path) from None


def _document(
    name: str,
    before: dict[str, NDArray[Any]],
    after: dict[str, NDArray[Any]],
    done: MachineExecution,
) -> dict[str, Any]:
    return {
        "kernel": name,
        "wave_instructions": done.wave_instructions,
        "buffers": [
            {
                "name": each,
                "dtype": str(buffer.dtype),
                "shape": list(buffer.shape),
                "sha256": hashlib.sha256(buffer.tobytes()).hexdigest()[:DIGEST_LENGTH],
                "changed": buffer.tobytes() != before[each].tobytes(),
            }
            for each, buffer in after.items()
        ],
        "events": done.event_count,
        "first_events": [str(event) for event in done.events[:10]],
    }
