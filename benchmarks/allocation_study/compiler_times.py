"""The time that LLVM's own allocation takes, by llc's own timers."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from pathlib import Path

from tqdm import tqdm

from benchmarks.machine_code import read
from verilocc_bench.backends.amdgpu.tools import find_llc
from verilocc_bench.dataset import RawRow
from verilocc_bench.dataset.parquet import iterate_parquet
from verilocc_bench.errors import InputError

RUNS = 3
"""llc runs so often; the least time counts."""

GREEDY = "Greedy Register Allocator"
_OPTIONS = (
    *("-mtriple=amdgcn-amd-amdhsa", "-O3", "-start-before=greedy"),
    *("-stop-after=virtregrewriter,2", "-time-passes"),
)
_NOT_ALLOCATION = ("MIR Printing Pass", "Free MachineFunction")
_TIME = re.compile(r"(\d+\.\d+) \( *\d+\.\d+%\)")


def pass_seconds(report: str) -> dict[str, float]:
    """Seconds of processor time by pass, from what llc prints for `-time-passes`.

    Passes that run several times add up. Raises ValueError for any other text.
    """
    _, found, rest = report.partition("Pass execution timing report")
    seconds: dict[str, float] = {}
    for line in rest.splitlines():
        name = line.rsplit(")", 1)[-1].strip()
        times = _TIME.findall(line)
        if not times:
            continue
        if name == "Total":
            break
        # Of user, system, both and wall, llc leaves out columns of zeros; wall is the last.
        name = name.split(" #")[0]
        seconds[name] = seconds.get(name, 0.0) + float(times[-2])
    if not found or not seconds:
        raise ValueError("expected llc's report of -time-passes")
    return seconds


def measure_compiler(folder: Path, output: Path) -> None:
    """Writes a line for each AMD kernel of a copied sample: id, seconds of greedy and of all.

    Goes on with the file. Raises InputError without llc, or for code that llc refuses.
    """
    llc = find_llc()
    known = {each["id"] for each in read(output)}
    paths = sorted(folder.glob("raw/data/gfx*/*/*.parquet"))
    if not paths:
        raise InputError("expected raw/data/gfx942/…: a folder that `copy` has made", source=folder)
    with output.open("a", encoding="utf-8") as file:
        for path in tqdm(paths, unit="kernel", disable=None):
            arch = path.parts[-3]
            for raw in iterate_parquet(path, RawRow):
                if raw.format == "mir" and raw.id not in known:
                    times = _least(llc, arch, raw)
                    file.write(json.dumps({"id": raw.id, "arch": arch, **times}) + "\n")
                    file.flush()


def _least(llc: Path, arch: str, raw: RawRow) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        source = Path(name, "kernel.mir")
        source.write_text(raw.content, encoding="utf-8")
        command = [str(llc), f"-mcpu={arch}", *_OPTIONS, "-o", f"{name}/out.mir", str(source)]
        runs = []
        for _ in range(RUNS):
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            if done.returncode:
                reason = (done.stderr.strip().splitlines() or ["it failed"])[0]
                raise InputError(f"llc: {reason}", source=f"row {raw.id}")
            runs.append(pass_seconds(done.stderr))
    greedy = min(seconds[GREEDY] for seconds in runs)
    whole = min(sum(t for n, t in seconds.items() if n not in _NOT_ALLOCATION) for seconds in runs)
    return {"greedy_seconds": greedy, "allocation_seconds": whole}
