"""What is known of one sample, one function, one run; and their forms in JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from verilocc_bench.allocators import Answer, FailureKind
from verilocc_bench.analysis.bank_conflicts import BankConflicts
from verilocc_bench.dataset import Row
from verilocc_bench.edits.findings import Verdict

_NUMBER = (int, float)
_SAMPLE_TYPES: dict[str, tuple[type, ...]] = {
    "index": (int,),
    "valid": (bool,),
    "failure": (str, type(None)),
    "message": (str, type(None)),
    "findings_count": (int,),
    "finding_kinds": (list,),
    "calls": (int,),
    "details": (dict,),
    "allocate_seconds": _NUMBER,
    "verify_seconds": _NUMBER,
    "traceback": (str, type(None)),
}

_SPENT = ("asks", "prompt_tokens", "completion_tokens")

INVALID = "invalid"
"""The kind of failure of an answer that is wrong."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample, judged.

    `failure` says why an answer is missing. `calls` counts the attempts,
    each judged once; only a guided run has more than one. Findings and failure
    come from the last attempt; `finding_kinds` begins with the first finding's
    kind. `allocate_seconds` and `verify_seconds` are sums over all attempts.
    `traceback` comes from an allocator in Python that crashed.
    """

    index: int
    valid: bool
    failure: FailureKind | None = None
    message: str | None = None
    findings_count: int = 0
    finding_kinds: tuple[str, ...] = ()
    calls: int = 1
    details: Mapping[str, Any] = field(default_factory=dict)
    allocate_seconds: float = 0.0
    verify_seconds: float = 0.0
    traceback: str | None = None

    @property
    def counted(self) -> bool:
        """True unless the infrastructure failed: such a sample says nothing of the allocator."""
        return self.failure is not FailureKind.INFRASTRUCTURE

    @property
    def kind(self) -> str | None:
        """The kind of failure; None if the sample is valid."""
        if self.valid:
            return None
        return INVALID if self.failure is None else self.failure.value

    def repeated(self, index: int) -> Sample:
        """This sample under another index, for an allocator that always says the same.

        It was not asked again, and took neither time nor tokens.
        """
        spent = {name: 0 for name in _SPENT if type(self.details.get(name)) is int}
        return replace(
            self,
            index=index,
            details={**self.details, **spent},
            allocate_seconds=0.0,
            verify_seconds=0.0,
        )

    def to_json(self) -> dict[str, Any]:
        """All fields by name; `traceback` only where it is set."""
        found = {**asdict(self), "finding_kinds": list(self.finding_kinds)}
        if self.traceback is None:
            del found["traceback"]
        return found

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Sample:
        """The inverse of to_json. Raises KeyError, TypeError or ValueError for another form."""
        document = {"traceback": None, **document}
        values = {each.name: document[each.name] for each in fields(cls)}
        for name, kinds in _SAMPLE_TYPES.items():
            if type(values[name]) not in kinds:
                raise TypeError(f"{name} is of another type")
        values["finding_kinds"] = tuple(map(str, values["finding_kinds"]))
        if values["failure"] is not None:
            values["failure"] = FailureKind(values["failure"])
        sample = cls(**values)
        invalid = sample.failure is None and not sample.valid
        if sample.index < 0 or sample.calls < 1 or not sample.counted:
            raise ValueError("no sample that a ledger keeps")
        if (sample.valid and sample.failure) or invalid != bool(sample.finding_kinds):
            raise ValueError("a sample that contradicts itself")
        return sample


@dataclass(frozen=True, slots=True)
class Judged:
    """A sample with its answer and its verdict, which keeps only the first findings."""

    sample: Sample
    answer: Answer | None
    verdict: Verdict | None

    @property
    def valid(self) -> bool:
        """True if there is an answer and it is right."""
        return self.sample.valid


@dataclass(frozen=True, slots=True)
class Outcome:
    """The quality of the first valid sample of a function, which is number `sample`.

    `label_registers` and `label_occupancy` are None without a label.
    `spill_cost` and `move_cost` are None on the assign track, `occupancy_at_bound` on the other.
    """

    sample: int
    registers: int
    label_registers: int | None
    bound: int
    occupancy: int
    label_occupancy: int | None
    identity_copies: int
    bank_conflicts: BankConflicts
    spill_cost: int | None = None
    move_cost: int | None = None
    occupancy_at_bound: int | None = None

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Outcome:
        """The inverse of asdict. Raises KeyError or TypeError for another form."""
        values = {each.name: document[each.name] for each in fields(cls)}
        conflicts = BankConflicts(**values.pop("bank_conflicts"))
        numbers = [*values.values(), conflicts.any, conflicts.all]
        if not all(number is None or type(number) is int for number in numbers):
            raise TypeError("expected whole numbers")
        return cls(**values, bank_conflicts=conflicts)


@dataclass(frozen=True, slots=True)
class RowResult:
    """All samples of one function in order, and the quality of the first valid one."""

    row: Row
    split: str
    samples: tuple[Sample, ...]
    outcome: Outcome | None

    @property
    def task(self) -> str:
        """Architecture and family."""
        return f"{self.row.arch}/{self.row.family}"

    @property
    def counted(self) -> tuple[Sample, ...]:
        """The samples that were not lost to the infrastructure."""
        return tuple(sample for sample in self.samples if sample.counted)


@dataclass(slots=True)
class Timing:
    """Where the time of a run went: seconds, summed over processes.

    `prepare` is parsing, analysing and judging labels; `measure` is the quality
    of valid answers. Samples that were resumed add nothing.
    """

    prepare_seconds: float = 0.0
    measure_seconds: float = 0.0

    def to_json(self, results: Sequence[RowResult], wall_seconds: float) -> dict[str, float]:
        """All times. Resumed samples count, too."""
        samples = [sample for result in results for sample in result.samples]
        return {
            "prepare_seconds": self.prepare_seconds,
            "allocate_seconds": sum(sample.allocate_seconds for sample in samples),
            "verify_seconds": sum(sample.verify_seconds for sample in samples),
            "measure_seconds": self.measure_seconds,
            "wall_seconds": wall_seconds,
        }

    def add(self, other: Timing) -> None:
        """Adds what another process took."""
        self.prepare_seconds += other.prepare_seconds
        self.measure_seconds += other.measure_seconds
