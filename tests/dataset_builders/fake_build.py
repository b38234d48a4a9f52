"""`verilocc-bench build` with a quick compiler and a plain release step, for tests of builds.

python -m tests.dataset_builders.fake_build SECONDS BUILD_OPTION…
"""

from __future__ import annotations

import hashlib
import json
import resource
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from dataset_builders.building import build
from dataset_builders.journal.journal import Journal
from dataset_builders.release.writer import ReleaseSummary
from dataset_builders.sweeps import SweepPoint
from tests.dataset_builders.fake_compilers import compile_fake
from verilocc_bench.__main__ import main
from verilocc_bench.files import write_atomically


def write_plainly(
    points: Sequence[SweepPoint],
    journal: Journal,
    output: Path,
    manifest: Mapping[str, Any],
    **_options: Any,
) -> ReleaseSummary:
    """Every result, in order, in one file."""
    summary = ReleaseSummary()
    lines = []
    for point in points:
        found = journal.load(point.key)
        row, raw = (None if each is None else asdict(each) for each in (found.row, found.raw))
        lines.append(json.dumps([point.key, row, raw, found.rejection]) + "\n")
        summary.rows["data", point.arch, point.family, "train"] += found.row is not None
        if found.rejection is not None:
            summary.rejected[found.rejection[0]] += 1
    text = "".join(lines)
    write_atomically(output / "rows.jsonl", text)
    write_atomically(output / "README.md", hashlib.sha256(text.encode()).hexdigest())
    write_atomically(output / "manifest.json", json.dumps(dict(manifest), sort_keys=True))
    return summary


def results_of(output: Path) -> dict[str, Any]:
    """Row, raw row and rejection by point, of a finished build."""
    lines = (output / "rows.jsonl").read_text().splitlines()
    return {key: rest for key, *rest in map(json.loads, lines)}


def use_fakes(compiler: build.PointCompiler) -> None:
    """From now on `build` compiles so, and writes plainly."""
    build.write_dataset = write_plainly  # type: ignore[assignment]
    build.build_dataset = partial(build.build_dataset, compiler=compiler)  # type: ignore[assignment]


def run() -> None:
    """The command: SECONDS of each kernel, the most bytes of a file or 0, options of `build`."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    seconds, most_bytes = float(sys.argv[1]), int(sys.argv[2])
    if most_bytes:
        _, highest = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, highest))
    use_fakes(partial(compile_fake, seconds=seconds))
    sys.argv[1:3] = ["build", "--sweep", "small", "--arch", "gfx942"]
    sys.exit(main())
