"""Reads back what was measured on a user's machine. Nobody has verified it: all words say so."""

from __future__ import annotations

import hashlib
import math
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verilocc_bench.edits import Answer
from verilocc_bench.edits.answer_files import read_answer
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.metrics import bootstrap_interval, geometric_mean
from verilocc_bench.files import parse_json, read_data, read_json

FORMAT = "verilocc-bench measurement 1"
DOCUMENT = "measure.json"
RESULTS = "results.json"
UNVERIFIED = "measured by whoever ran run.py, and not verified"
_SEED = 0
_FEWEST_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class GpuMeasurement:
    """Times of two codes on one machine.

    `milliseconds` has the times of each side, one a round. `ratio` is the geometric mean,
    over rounds, of the answer's time over the other's, with an interval of 95 % by
    bootstrap over rounds.
    """

    folder: Path
    document: dict[str, Any]
    results: dict[str, Any]
    milliseconds: dict[str, list[float]]
    ratio: float
    interval: tuple[float, float]

    @property
    def names(self) -> tuple[str, str]:
        """The names of both sides."""
        sides = self.document["sides"]
        return sides["answer"]["name"], sides["other"]["name"]

    def to_json(self) -> dict[str, Any]:
        """The figures, marked as unverified."""
        return {
            "verified": False,
            "id": self.document["id"],
            "kernel": self.document["kernel"],
            "device": self.results["device"],
            "driver_version": self.results["driver_version"],
            "grid": self.document["grid"],
            "rounds": len(self.milliseconds["answer"]),
            "median_milliseconds": {
                side: statistics.median(times) for side, times in self.milliseconds.items()
            },
            "ratio": self.ratio,
            "ratio_low": self.interval[0],
            "ratio_high": self.interval[1],
            "same_bits": self.results["same_bits"],
        }

    def lines(self) -> list[str]:
        """The figures for people."""
        medians = self.to_json()["median_milliseconds"]
        grid = " × ".join(map(str, self.document["grid"]))
        named = zip(self.names, medians.values(), strict=True)
        times = ", ".join(f"{name} {value:.6f} ms" for name, value in named)
        return [
            f"{self.document['kernel']} on {self.results['device']}, grid {grid}: {times}",
            f"time of {self.names[0]} / {self.names[1]}: {self.ratio:.4f} "
            f"[{self.interval[0]:.4f}, {self.interval[1]:.4f}] over "
            f"{len(self.milliseconds['answer'])} rounds; {UNVERIFIED}",
        ]

    def check_answers(self, identifier: str, answer: Answer) -> None:
        """Raises InputError if the measurement is of another function or another answer."""
        if self.document["id"] != identifier:
            raise InputError(
                f"the measurement is of {self.document['id']!r}, not of {identifier!r}",
                source=self.folder,
            )
        _, measured = read_answer(self.folder / "answer" / "answer.json")
        if measured != answer:
            raise InputError("the measurement is of another answer", source=self.folder)


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
    results = read_json(place)
    try:
        if results["measurement_sha256"] != hashlib.sha256(text).hexdigest():
            raise InputError(f"the results are of another {DOCUMENT}", source=place)
        if results["milliseconds"] is None:
            raise InputError(
                "a side computed wrong numbers, or wrote nothing: nothing was measured",
                source=place,
            )
        times = {side: _times(results["milliseconds"][side], place) for side in document["sides"]}
        str(results["device"]), int(results["driver_version"]), bool(results["same_bits"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"not as run.py writes it: {error!r}", source=place) from None
    if len(times["answer"]) != len(times["other"]) or len(times["answer"]) < _FEWEST_ROUNDS:
        raise InputError(f"expected at least {_FEWEST_ROUNDS} rounds of both sides", source=place)
    ratios = [a / b for a, b in zip(times["answer"], times["other"], strict=True)]
    ratio, interval = geometric_mean(ratios), bootstrap_interval(ratios, _SEED, geometric_mean)
    assert ratio is not None
    assert interval[0] is not None
    return GpuMeasurement(folder, document, results, times, ratio, interval)


def _times(values: Any, source: Path) -> list[float]:
    times = [float(value) for value in values]
    if not all(math.isfinite(time) and time > 0 for time in times):
        raise InputError("expected times above 0", source=source)
    return times
