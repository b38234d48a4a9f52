"""Reads back what was measured on a user's machine. Nobody has verified it: all words say so."""

from __future__ import annotations

import hashlib
import json
import math
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tabulate import tabulate

from verilocc_bench.edits import Answer
from verilocc_bench.edits.answer_files import read_answer
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.metrics import bootstrap_interval, geometric_mean
from verilocc_bench.files import parse_json, read_data, read_text
from verilocc_bench.measurement import CONTROL, DOCUMENT, FORMAT, RESULTS, Line, verdict_of

UNVERIFIED = "measured by whoever ran run.py, and not verified"
_SEED = 0
_FEWEST_ROUNDS = 5


@dataclass(frozen=True)
class GpuMeasurement:
    """The results in a folder: of each kernel, what each side leaves, and its times."""

    folder: Path
    document: dict[str, Any]
    lines: list[Line]

    @property
    def machine(self) -> Line:
        """The device, its driver, and what else was read of the machine."""
        return self.lines[0]

    @cached_property
    def _found(self) -> dict[tuple[str, str, str | None], Line]:
        return {
            (line["part"] if line["part"] != "controls" else "bits", line["kernel"],
             line.get("side")): line
            for line in self.lines
            if "kernel" in line
        }  # fmt: skip

    def kernels(self) -> list[dict[str, Any]]:
        """The figures of each kernel and side, beside the kernel's first side."""
        return [self._figures(kernel) for kernel in self.document["kernels"]]

    def _figures(self, kernel: dict[str, Any]) -> dict[str, Any]:
        first = kernel["sides"][0]["name"]
        own = self._found.get(("bits", kernel["key"], first))
        timed = self._found.get(("times", kernel["key"], None), {}).get("milliseconds", {})
        sides = []
        for side in kernel["sides"]:
            known = {key: side[key] for key in ("name", "title", "role")}
            found = self._found.get(("bits", kernel["key"], side["name"]))
            if found is not None:
                known["verdict"] = verdict_of(found, own)
                known |= {key: found[key] for key in ("registers", "blocks", "local_bytes",
                                                      "errors") if key in found}  # fmt: skip
                known |= {f"said_{key}": side[key] for key in ("registers", "blocks", "runnable")
                          if key in side}  # fmt: skip
            if side["name"] in timed and first in timed:
                known |= _ratio(timed[side["name"]], timed[first])
            sides.append(known)
        library = self._found.get(("libraries", kernel["key"], None))
        if library is not None and "milliseconds" in library:
            (own_times, times) = library["milliseconds"].values()
            library = {"name": library["library"], "error": library["error"],
                       **_ratio(times, own_times)}  # fmt: skip
        elif library is not None:
            library = {"skipped": library.get("skipped") or library.get("failed")}
        named = {key: kernel[key] for key in ("key", "id", "arch", "grid")}
        return {**named, "sides": sides, "library": library}

    def to_json(self) -> dict[str, Any]:
        """All figures, marked as unverified."""
        machine = {key: value for key, value in self.machine.items() if key != "part"}
        return {"verified": False, **machine, "kernels": self.kernels()}

    def text(self) -> str:
        """The figures for people: of each side for a few kernels, and by the sides' names."""
        kernels = self.kernels()
        lines = [f"{self.machine['device']}, driver {self.machine['driver_version']}, "
                 f"{self.machine.get('date', 'no date')}; {UNVERIFIED}"]  # fmt: skip
        for kernel in kernels if len(kernels) <= 4 else ():
            lines += ["", f"{kernel['key']}, grid {' × '.join(map(str, kernel['grid']))}"]
            lines.append(_table([_row(side) for side in kernel["sides"]], _HEADERS))
            if kernel["library"] is not None:
                lines.append(f"library: {kernel['library']}")
        lines += ["", _table(_by_name(kernels), _SUMMARY_HEADERS)]
        return "\n".join(lines)

    def figure(self, identifier: str | None = None, answer: Answer | None = None) -> dict[str, Any]:
        """The figure of an answer beside the first side of its kernel.

        Without arguments it is the only answer in the folder. Raises InputError if the
        answer was not measured, with the reason.
        """
        sides = self._answers(identifier, answer)
        if len(sides) != 1 and (answer is None or not sides):
            wanted = "of another answer" if answer is not None else "of several answers, or none"
            raise InputError(f"the measurement is {wanted}", source=self.folder)
        return self._figure_of(*sides[0])

    def figures(self) -> list[dict[str, Any]]:
        """The figure of each answer that was timed, beside the first side of its kernel."""
        return [
            self._figure_of(kernel, side)
            for kernel, side in self._answers(None, None)
            for figure in self._figures(kernel)["sides"]
            if figure["name"] == side["name"] and "ratio" in figure
        ]

    def _answers(
        self, identifier: str | None, answer: Answer | None
    ) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """The sides that are answers, with their kernels: all but a kernel's first side."""
        kernels = self.document["kernels"]
        found = [each for each in kernels if identifier in (None, each["id"])]
        if not found:
            ids = ", ".join(sorted({each["id"] for each in kernels}))
            raise InputError(f"the measurement is of {ids}, not of {identifier!r}",
                             source=self.folder)  # fmt: skip
        return [
            (kernel, side)
            for kernel in found
            for side in kernel["sides"][1:]
            if "answer" in side and answer in (None, self.answer_of(side))
        ]

    def _figure_of(self, kernel: dict[str, Any], side: dict[str, Any]) -> dict[str, Any]:
        figures = self._figures(kernel)
        own, measured = (next(each for each in figures["sides"] if each["name"] == name)
                         for name in (kernel["sides"][0]["name"], side["name"]))  # fmt: skip
        if "ratio" not in measured:
            verdict = f"{side['name']}: {measured.get('verdict', 'no result yet')}"
            raise InputError(f"{verdict}: nothing was measured", source=self.folder)
        return {
            "verified": False,
            "id": kernel["id"],
            "kernel": kernel["function"],
            "names": [measured["title"], own["title"]],
            "answer": side["answer"],
            "device": self.machine["device"],
            "driver_version": self.machine["driver_version"],
            "grid": kernel["grid"],
            "rounds": measured["rounds"],
            "median_milliseconds": {
                "answer": measured["milliseconds"], "other": own["milliseconds"]
            },
            **{key: measured[key] for key in ("ratio", "ratio_low", "ratio_high")},
            "same_bits": measured["verdict"] == "same bits",
        }  # fmt: skip

    def answer_of(self, side: dict[str, Any]) -> Answer:
        """The answer whose code a side is. Raises InputError for a file outside of the folder."""
        path = self.folder / side["answer"]
        if not path.resolve().is_relative_to(self.folder.resolve()):
            raise InputError(f"expected a file in the folder, not {path}", source=self.folder)
        _, answer = read_answer(path)
        return answer


_HEADERS = ("", "verdict", "registers", "blocks", "ms", "ratio", "interval")
_SUMMARY_HEADERS = ("side", "kernels", "verdicts", "timed", "ratio", "least", "most", "faster",
                    "slower")  # fmt: skip


def _row(side: dict[str, Any]) -> tuple[object, ...]:
    def beside(name: str) -> str:
        found, said = side.get(name), side.get(f"said_{name}")
        return f"{found}" if said in (None, found) else f"{found}, not {said}"

    times = ("", "", "") if "ratio" not in side else (
        f"{side['milliseconds']:.4f}", f"{side['ratio']:.4f}",
        f"[{side['ratio_low']:.4f}, {side['ratio_high']:.4f}]",
    )  # fmt: skip
    return side["name"], side.get("verdict", "–"), beside("registers"), beside("blocks"), *times


def _by_name(kernels: list[dict[str, Any]]) -> list[tuple[object, ...]]:
    """A row for each kind of side: its name without a number at the end."""
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for kernel in kernels:
        for side in kernel["sides"]:
            kind = re.sub(r"-\d+$", "", side["name"])
            groups[f"{kind} (control)" if side["role"] == CONTROL else kind].append(side)
        if kernel["library"] is not None and "ratio" in kernel["library"]:
            groups[kernel["library"]["name"]].append({"verdict": "", **kernel["library"]})
    rows: list[tuple[object, ...]] = []
    for kind, sides in groups.items():
        said = Counter(re.sub(r"\d+", "N", side["verdict"]) for side in sides if "verdict" in side)
        words = ", ".join(f"{count} {what[:60]}" for what, count in said.most_common())
        timed = [side for side in sides if "ratio" in side]
        ratios = [side["ratio"] for side in timed]
        figures = (
            (f"{geometric_mean(ratios):.3f}", f"{min(ratios):.3f}", f"{max(ratios):.3f}",
             sum(side["ratio_high"] < 1 for side in timed),
             sum(side["ratio_low"] > 1 for side in timed))
            if ratios else ("",) * 5
        )  # fmt: skip
        rows.append((kind, len(sides), words, len(timed), *figures))
    return rows


def _table(rows: list[tuple[object, ...]], headers: tuple[str, ...]) -> str:
    return tabulate(rows, headers, disable_numparse=True)


def _ratio(times: Sequence[float], against: Sequence[float]) -> dict[str, Any]:
    ratios = [a / b for a, b in zip(times, against, strict=True)]
    low, high = bootstrap_interval(ratios, _SEED, statistics.median)
    return {
        "milliseconds": statistics.median(times), "rounds": len(ratios),
        "ratio": statistics.median(ratios), "ratio_low": low, "ratio_high": high,
    }  # fmt: skip


def is_measurement(path: Path) -> bool:
    """True for a folder that `measure` wrote."""
    return (path / DOCUMENT).is_file()


def read_measurement(folder: Path) -> GpuMeasurement:
    """The results in a folder. Raises InputError without results, or if they do not fit it."""
    source = folder / DOCUMENT
    text = read_data(source)
    document = parse_json(text.decode(errors="replace"), source)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InputError(f"expected {FORMAT!r}", source=source)
    place = folder / RESULTS
    if not place.is_file():
        raise InputError(
            f"there is no {RESULTS} yet: run `python run.py` there on a machine with a GPU",
            source=folder,
        )
    whole, _, _ = read_text(place).rpartition("\n")
    lines: list[Line] = []
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            lines.append(json.loads(line))
            _check_line(lines[-1])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            message = f"not as run.py writes it: {error!r}"
            raise InputError(message, source=place, line=number) from None
    if not lines or lines[0].get("measurement_sha256") != hashlib.sha256(text).hexdigest():
        raise InputError(f"the results are of another {DOCUMENT}", source=place)
    found = GpuMeasurement(folder, document, lines)
    try:
        found.text(), found.to_json(), found.figures()
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise InputError(f"not as measure writes it: {error!r}", source=source) from None
    return found


def _check_line(line: Line) -> None:
    if line["part"] == "machine":
        str(line["device"]), int(line["driver_version"])
    if "digests" in line:
        list(line["digests"]), list(line["wrong"]), dict(line["errors"])
    every = list(line.get("milliseconds", {}).values())
    if not all(math.isfinite(time) and time > 0 for times in every for time in times):
        raise ValueError("expected times above 0")
    if every and (len(set(map(len, every))) > 1 or len(every[0]) < _FEWEST_ROUNDS):
        raise ValueError(f"expected at least {_FEWEST_ROUNDS} rounds of each side")
