"""Our registers in Triton's own compile, beside Triton's own code, kernel by kernel.

python benchmarks/triton_plugin.py [--arch A] [--model M] [--objective O] [--output FILE]

The kernels are those of the sweep `mini`: GEMM and attention. Each is compiled by Triton
alone, and with the plug-in. Both code objects of gfx90a and gfx942 are executed on the
CPU, with loads that land as late as the waits allow, and every buffer is compared, bit
for bit. Cubins are not executed; they run by the compiler's own rules, or are not used.
Times are processor time, with the compilers' processes. One line of JSON a kernel; at the
end a table in Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tabulate import tabulate

from dataset_builders.compilers.triton_compiler import triton_source
from dataset_builders.sweeps.point import SweepPoint
from dataset_builders.sweeps.registry import sweep_named
from verilocc_bench.errors import InputError
from verilocc_bench.machine.execution import load_kernel
from verilocc_bench.references import Buffer, launch_for
from verilocc_bench.triton import TritonAllocator, allocator

FIGURES = ("waves", "registers", "waits", "bank_conflicts", "instructions")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arch", default="gfx90a,gfx942,sm_80")
    parser.add_argument("--model", default="best")
    parser.add_argument("--objective")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--output", type=Path, help="one line of JSON a kernel; goes on from there")
    options = parser.parse_args()
    settings = {} if options.objective is None else {"objective": options.objective}
    done = {each["point"]: each for each in _read(options.output)}
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TRITON_CACHE_DIR"] = cache
        os.environ["TRITON_DISABLE_LINE_INFO"] = "1"
        registers = allocator(options.model, tell=lambda _: None, **settings)
        for point in _points(options.arch.split(","), options.limit):
            if point.key not in done:
                done[point.key] = measure(point, registers)
                line = json.dumps(done[point.key])
                print(line, flush=True)
                if options.output is not None:
                    with options.output.open("a") as file:
                        file.write(line + "\n")
    print(table(list(done.values())))


def measure(point: SweepPoint, registers: TritonAllocator) -> dict[str, Any]:
    """Both compiles of a point, and what execution says of the two codes."""
    import triton

    source, target, asked = triton_source(point)
    asked = {name: value for name, value in asked.items() if value or name != "maxnreg"}
    started = _processor_seconds()
    own = triton.compile(source, target=target, options=asked)
    seconds = _processor_seconds() - started
    with registers:
        started = _processor_seconds()
        ours = triton.compile(source, target=target, options=asked)
        our_seconds = _processor_seconds() - started
    report = registers.report().kernels[-1]
    found = {
        "point": point.key,
        "arch": point.arch,
        **report.to_json(),
        "triton_seconds": seconds,
        "plugin_seconds": our_seconds,
        "same_bits": None,
    }
    if report.replaced and "hsaco" in ours.asm:
        found["same_bits"] = same_bits(point, own.asm["hsaco"], ours.asm["hsaco"])
    return found


def _processor_seconds() -> float:
    """Of this process and of the compilers that it has started and that have ended."""
    return sum(os.times()[:4])


def same_bits(point: SweepPoint, own: bytes, ours: bytes) -> bool:
    """True if both code objects leave the same bits in every buffer."""
    launch = launch_for(point.kernel, json.loads(point.parameters_json))
    arguments = [
        each.initial
        if isinstance(each, Buffer)
        else np.float32(each.value)
        if each.element == "fp32"
        else np.int32(each.value)
        for each in launch.arguments
    ]
    contents = []
    for code in (own, ours):
        done = load_kernel(code, point.kernel).run(arguments, launch.grid, asynchronous=True)
        contents.append([each.tobytes() for each in done.buffers if each is not None])
    return contents[0] == contents[1]


def table(rows: list[dict[str, Any]]) -> str:
    """The table of docs/triton.md."""
    lines = []
    for row in rows:
        own, ours = row["own"] or {}, row["ours"] or {}
        figures = [f"{_shown(own.get(name))} → {_shown(ours.get(name))}" for name in FIGURES]
        bits = {True: "same", False: "DIFFERENT", None: "–"}[row["same_bits"]]
        times = f"{row['triton_seconds']:.1f} / {row['plugin_seconds']:.1f}"
        lines.append((row["kernel"], row["arch"], *figures, times, row["reason"] or "ours", bits))
    head = (
        "kernel",
        "arch",
        *(name.replace("_", " ") for name in FIGURES),
        "CPU seconds",
        "code",
        "bits",
    )
    return tabulate(lines, head, tablefmt="github", disable_numparse=True)


def _shown(value: int | None) -> str:
    return "–" if value is None else str(value)


def _points(archs: list[str], limit: int | None) -> Iterator[SweepPoint]:
    for arch in archs:
        points = [point for point in sweep_named("mini").points((arch,)) if point.arch == arch]
        if not points:
            raise InputError(f"no point of the sweep mini is for {arch!r}")
        yield from points[:limit]


def _read(path: Path | None) -> list[dict[str, Any]]:
    if path is None or not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


if __name__ == "__main__":
    main()
