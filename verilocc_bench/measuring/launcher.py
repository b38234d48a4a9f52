"""Measures the kernels of a folder on this machine's GPU.

    python run.py [--minutes N] [--jobs N] [--rounds N] [--launches N] [--results FILE]

Needs Python 3.11, numpy and the driver; nothing is installed, and no setting of the GPU
changes. In this order: what each side computes, against the compiler's own code and against
the reference; times of the sides that are right; torch's own kernels beside them; and, last,
the sides that are expected to break. Each result is a line of results.jsonl as soon as it
is there. Started again, it goes on.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import platform
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

from verilocc_bench.measurement import CONTROL, DOCUMENT, OWN, RESULTS, Line, is_right, verdict_of

START_SECONDS = 60.0
"""The most for a process to start, and to prepare the inputs of a kernel."""
SHARES = {"bits": 0.6, "times": 0.9, "libraries": 0.95, "controls": 1.0}
"""The part of the time after which each part ends."""


class Run:
    """A run on this machine; `worker` starts a process that does a part."""

    def __init__(self, folder: Path, options: argparse.Namespace, worker: Sequence[str]) -> None:
        self.folder, self.options, self.worker = folder, options, worker
        text = (folder / DOCUMENT).read_bytes()
        self.document = json.loads(text)
        self.hash = hashlib.sha256(text).hexdigest()
        self.started, self.lock = time.monotonic(), threading.Lock()
        self.results: Path = options.results or folder / RESULTS
        self.lines = self._known()
        self.work = ""

    def _known(self) -> list[Line]:
        if not self.results.exists():
            return []
        data = self.results.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        lines: list[Line] = []
        for number, line in enumerate(whole.splitlines(), 1):
            found: Any = None
            with contextlib.suppress(ValueError):
                found = json.loads(line)
            if isinstance(found, dict) and "part" in found:
                lines.append(found)
            else:
                sys.exit(f"run.py: {self.results}:{number}: expected a line of results: remove it")
        if lines and lines[0].get("measurement_sha256") != self.hash:
            sys.exit(f"run.py: {self.results} has results of another {DOCUMENT}: move it away")
        # A line that was not finished goes, in place: the others must not be lost.
        os.truncate(self.results, len(whole))
        return lines

    def keep(self, **line: Any) -> None:
        """Adds a line to the results."""
        with self.lock:
            self.lines.append(line)
            with self.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")

    def found(self, part: str) -> dict[tuple[str, str | None], Line]:
        """The results of a part by kernel and side."""
        return {
            (line["kernel"], line.get("side")): line for line in self.lines if line["part"] == part
        }

    def left(self, part: str) -> float:
        """The seconds that are left for a part."""
        share = SHARES[part] * float(self.options.minutes) * 60
        return share - (time.monotonic() - self.started)

    def everything(self) -> int:
        """Does all parts; the status is 1 if a side that should compute right does not."""
        with tempfile.TemporaryDirectory(prefix="measure-") as self.work:
            self._parts()
        return self.report()

    def _parts(self) -> None:
        ((_, device),) = self.batch("device", [{}], START_SECONDS, 2 * START_SECONDS)
        if "failed" in device:
            sys.exit(f"run.py: {device['failed']}")
        if self.lines and not device.items() <= self.lines[0].items():
            sys.exit(f"run.py: {self.results} is of another GPU or driver: move it away")
        if not self.lines:
            self.keep(
                part="machine", measurement_sha256=self.hash, **device, clocks=clocks(),
                host=platform.platform(), date=time.strftime("%Y-%m-%d", time.gmtime()),
            )  # fmt: skip
        self.sides("bits")
        self.times()
        self.libraries()
        self.sides("controls")
        self.keep(part="end", clocks=clocks(), seconds=round(time.monotonic() - self.started, 1))

    def sides(self, part: str) -> None:
        """What sides compute: a process a kernel, several at once; controls one process each."""
        known = self.found(part)
        batches: list[list[Line]] = []
        for kernel in self.document["kernels"]:
            items = [
                {"kernel": kernel["key"], "side": side["name"]}
                for side in kernel["sides"]
                if (side["role"] == CONTROL) == (part == "controls")
                and (kernel["key"], side["name"]) not in known
            ]
            batches += [[item] for item in items] if part == "controls" else [items]

        def work(items: list[Line]) -> None:
            for item, result in self.batch(part, items, self.options.seconds, self.left(part)):
                self.keep(part=part, **item, **result)

        with ThreadPoolExecutor(self.options.jobs) as pool:
            list(pool.map(work, filter(None, batches)))

    def times(self) -> None:
        """Times of the sides that are right, a kernel alone on the machine."""
        known, bits = self.found("times"), self.found("bits")
        for kernel in self.document["kernels"]:
            key = kernel["key"]
            own = bits.get((key, kernel["sides"][0]["name"]))
            if (key, None) in known or own is None or not is_right(own, own, OWN):
                continue
            sides = [
                side["name"]
                for side in kernel["sides"]
                for found in (bits.get((key, side["name"])),)
                if found is not None and is_right(found, own, side["role"])
            ]
            item = {"kernel": key, "sides": sides}
            limit = self.options.seconds * 3
            for _, result in self.batch("times", [item], limit, self.left("times")):
                self.keep(part="times", kernel=key, **result)

    def libraries(self) -> None:
        """torch's own kernels, all in one process: it takes long to start."""
        known = self.found("libraries")
        items = [
            {"kernel": key}
            for key, _ in self.found("times")
            if (key, None) not in known and self._reference(key) in {"gemm", "mha_forward"}
        ]
        limit, left = START_SECONDS, self.left("libraries")
        for item, result in self.batch("libraries", items, limit, left):
            self.keep(part="libraries", **item, **result)

    def _reference(self, key: str) -> str | None:
        (kernel,) = (each for each in self.document["kernels"] if each["key"] == key)
        return None if kernel["reference"] is None else str(kernel["reference"]["kernel"])

    def batch(
        self, part: str, items: list[Line], seconds: float, left: float
    ) -> Iterator[tuple[Line, Line]]:
        """Each item with its result; `seconds` for one, `left` for all, which may cut the rest.

        A process does one after the other. If it dies or hangs, that item has failed, and
        another process does the others.
        """
        end = time.monotonic() + left
        while items and time.monotonic() < end:
            request = {"part": part, "items": items, "work": self.work,
                       "device": self.options.device, "rounds": self.options.rounds,
                       "launches": self.options.launches, "slack": self.options.slack}  # fmt: skip
            with Child([*self.worker, json.dumps(request)], self.options.jobs) as child:
                limit = START_SECONDS
                while items:
                    line = child.line(min(limit, end - time.monotonic()))
                    if line is None and time.monotonic() >= end:
                        return
                    if line is not None and "begin" in line:
                        limit = seconds
                        continue
                    failed = line is None or "failed" in line
                    yield items[0], {"failed": child.ending(limit)} if line is None else line.get(
                        "result", line)  # fmt: skip
                    items, limit = items[1:], START_SECONDS
                    if failed:
                        break

    def report(self) -> int:
        """Prints what is not right; see `everything`."""
        bits, status = {**self.found("bits"), **self.found("controls")}, 0
        counts: dict[tuple[str, str], int] = {}
        for kernel in self.document["kernels"]:
            own = bits.get((kernel["key"], kernel["sides"][0]["name"]))
            for side in kernel["sides"]:
                found = bits.get((kernel["key"], side["name"]))
                if found is None:
                    continue
                verdict = verdict_of(found, own)
                counts[side["role"], verdict] = counts.get((side["role"], verdict), 0) + 1
                if side["role"] != CONTROL and not is_right(found, own or found, side["role"]):
                    status = 1
                    why = "; ".join(found.get("wrong", ()))
                    print(f"{kernel['key']} {side['name']}: {verdict} {why}")
        for (role, verdict), count in sorted(counts.items()):
            print(f"{count:5} {role}: {verdict}")
        print(f"{len(self.found('times'))} kernels timed; wrote {self.results}")
        return status


class Child:
    """A process of a part, and its lines."""

    def __init__(self, command: Sequence[str], jobs: int) -> None:
        threads = str(max(1, (os.cpu_count() or 1) // jobs))
        environment = {**os.environ, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115  closed in __exit__
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self.errors, text=True, env=environment
        )
        self.queue: queue.Queue[Line | None] = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for text in self.process.stdout:
            if text.startswith("{"):
                self.queue.put(json.loads(text))
        self.queue.put(None)

    def line(self, seconds: float) -> Line | None:
        """The next line; None if the process has ended, or says nothing for so long."""
        try:
            return self.queue.get(timeout=max(seconds, 0.0))
        except queue.Empty:
            return None

    def ending(self, limit: float) -> str:
        """Why there is no line."""
        try:
            status = self.process.wait(1)
        except subprocess.TimeoutExpired:
            return f"no result in {limit:.0f} s"
        self.errors.seek(0)
        said = self.errors.read().decode(errors="replace").strip().splitlines()
        return ": ".join([f"its process ended with status {status}", *said[-1:]])[:300]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # it may hang in the driver
            self.process.wait(5)
        self.reader.join(5)
        self.errors.close()
        if self.process.stdout is not None and not self.reader.is_alive():
            self.process.stdout.close()


def clocks() -> str | None:
    """The card, its driver, clocks, temperature and power as nvidia-smi reads them."""
    fields = "name,driver_version,clocks.sm,clocks.mem,temperature.gpu,power.draw"
    command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def main(folder: Path, arguments: list[str] | None = None, worker: Sequence[str] = ()) -> int:
    """See the module; `worker` is the command of a process that does a part."""
    shown = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, prog="run.py", formatter_class=shown)
    parser.add_argument("--minutes", type=float, default=60.0, help="the most for all parts")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once, but for times")
    parser.add_argument("--rounds", type=int, default=40, help="times that each side is measured")
    parser.add_argument("--launches", type=int, default=6, help="launches that are compared")
    parser.add_argument("--seconds", type=float, default=20.0, help="the most for one side")
    parser.add_argument(
        "--slack", type=float, default=1.0, help="how many times the tolerance numbers may err"
    )
    parser.add_argument("--device", type=int, default=0, help="number of the GPU")
    parser.add_argument("--results", type=Path, help=f"the file of results (default: {RESULTS})")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker is not None:
        from verilocc_bench.measuring import worker as worker_module

        worker_module.main(folder, json.loads(options.worker))
        return 0
    command = worker or [sys.executable, str(folder / "run.py"), "--worker"]
    return Run(folder, options, command).everything()
