"""Reads `submission.yaml` and checks it field by field.

docs/leaderboard.md describes the form. Every wrong field is named, not only
the first. No field decides a number on the leaderboard; claims are compared
with the figures that revalidation finds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from leaderboard.folder import SUBMISSION, read_small
from leaderboard.measured import MOST_MEASURED, MeasuredFigure, read_figure
from leaderboard.shown_text import NAME, looks_like, text_problem, url_problem
from leaderboard.strict_yaml import LIMIT_BYTES, parse_yaml
from verilocc_bench.allocators import Assistance
from verilocc_bench.settings.allocator import Decoding
from verilocc_bench.targets import TARGETS

FORMAT = 1
MOST_SAMPLES = 100
"""The most answers to a function in a submission."""

MOST_VERIFIER_CALLS = 100
MOST_AUTHORS = 50
MOST_CLAIMS = 50
MOST_STRANGE = 10
MOST_PARAMETERS = 10**14
MOST_FUNCTIONS = 10**6
MOST_TOKENS = 10**15
LICENCES = ("apache-2.0", "cc0-1.0", "cc-by-4.0", "mit")
LINKS = ("code", "paper", "model")
TRACKS = ("assign", "split")
CLAIMED = ("pass@1", "pass@10", "pass@100", "registers_ratio", "bank_conflicts", "spill_cost")
SELDOM = ("limit", "measured", "prompt_tokens", "completion_tokens", "cost")
OWN = "The verilocc-bench authors"
FIRST_YEAR = 2020
_TASK = re.compile(r"overall|[a-z0-9_]{1,20}/[a-z0-9_]{1,20}", re.ASCII)
_EMAIL = re.compile(
    r"[^@\s<>\"'(),:;\[\]\\]{1,64}@[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})+", re.ASCII
)
_HASH = re.compile(r"[0-9a-f]{16,64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Refusal:
    """One reason to refuse a submission: its kind, the fault, and the place."""

    kind: str
    message: str
    place: str


@dataclass(frozen=True, slots=True)
class Submission:
    """A submission's description of itself.

    `date` is the day of the run, as YYYY-MM-DD, if it is stated.
    `parameters` is None without a model or a count. `samples` is the
    number of answers to each function, `verifier_calls` the most attempts at
    each of them, `architectures` the architectures that it answers. `limit` is
    the board's limit, or None. Nobody verifies what was `measured`, nor the tokens of all
    prompts and completions together, and their `cost`.
    """

    name: str
    authors: tuple[str, ...]
    contact: str
    training_data: str
    hardware: str
    licence: str
    command: str
    dataset: str
    dataset_hash: str
    track: str
    architectures: tuple[str, ...]
    assistance: str
    decoding: str
    samples: int
    verifier_calls: int
    limit: int | None = None
    parameters: int | None = None
    base: str | None = None
    description: str | None = None
    date: str | None = None
    links: Mapping[str, str] = field(default_factory=dict)
    claims: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    measured: tuple[MeasuredFigure, ...] = ()
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None

    def to_json(self) -> dict[str, Any]:
        """All fields by name; those of SELDOM only where there is something."""
        document = {
            **asdict(self),
            "authors": list(self.authors),
            "architectures": list(self.architectures),
            "measured": [asdict(each) | {"grid": list(each.grid)} for each in self.measured],
        }
        return {
            key: each
            for key, each in document.items()
            if key not in SELDOM or each not in (None, [])
        }


def read_submission(folder: Path, *, own: bool = False) -> tuple[Submission | None, list[Refusal]]:
    """The fields of submission.yaml, or a refusal for each wrong one.

    Raises InputError for a file that is not YAML of the accepted kind.
    """
    path = folder / SUBMISSION
    document = parse_yaml(read_small(path, LIMIT_BYTES), path)
    reader = _ManifestReader(document)
    submission = reader.submission(own)
    return (None if reader.refusals else submission), reader.refusals


@cache
def own_entries() -> tuple[str, ...]:
    """The names of the leaderboard's own entries, which no other entry may have."""
    text = Path(__file__).with_name("seeds.yaml").read_text("utf-8")
    return tuple(each["name"] for each in yaml.safe_load(text)["entries"])


class _ManifestReader:
    """Takes fields out of a document, and notes their faults."""

    def __init__(self, document: Any) -> None:
        self.refusals: list[Refusal] = []
        self._document: dict[str, Any] = document if isinstance(document, dict) else {}
        self._seen: set[str] = set()
        if not isinstance(document, dict):
            self._refuse("", "expected a mapping of fields")

    def submission(self, own: bool) -> Submission:
        version = self._take("format", required=True)
        if version is not None and (type(version) is not int or version != FORMAT):
            self._refuse("format", f"expected {FORMAT}")
        found = Submission(
            name=self._name(),
            authors=self._authors(),
            contact=self._checked("contact", _contact_problem),
            training_data=self._text("training_data", 2_000),
            hardware=self._text("hardware", 300),
            licence=self._one_of("licence", LICENCES),
            command=self._text("command", 1_000),
            dataset=self._text("dataset", 100),
            dataset_hash=self._checked("dataset_hash", _hash_problem),
            track=self._one_of("track", TRACKS, default="assign"),
            architectures=self._architectures(),
            assistance=self._one_of("assistance", [each.value for each in Assistance]),
            decoding=self._one_of("decoding", [each.value for each in Decoding]),
            samples=self._number("samples", 1, MOST_SAMPLES, default=1) or 1,
            verifier_calls=self._number("verifier_calls", 1, MOST_VERIFIER_CALLS, default=1) or 1,
            limit=self._number("limit", 1, MOST_FUNCTIONS, default=None),
            parameters=self._number("parameters", 1, MOST_PARAMETERS, default=None),
            base=self._text("base", 100, required=False) or None,
            description=self._text("description", 500, required=False) or None,
            date=self._checked("date", _date_problem, required=False) or None,
            links=self._links(),
            claims=self._claims(),
            measured=self._measured(),
            prompt_tokens=self._number("prompt_tokens", 0, MOST_TOKENS, default=None),
            completion_tokens=self._number("completion_tokens", 0, MOST_TOKENS, default=None),
            cost=self._cost(),
        )
        if found.decoding != Decoding.GUIDED and found.verifier_calls != 1:
            self._refuse("verifier_calls", "only guided decoding may call the verifier: expected 1")
        if not own and any(looks_like(found.name, each) for each in own_entries()):
            self._refuse(
                "name", f"{found.name} is an entry of the leaderboard's own: expected another"
            )
        if not own and any(
            looks_like(each, OWN) for each in (*found.authors, "".join(found.authors))
        ):
            self._refuse("authors", f"{OWN!r} are those of the leaderboard's own entries")
        strange = sorted(self._document.keys() - self._seen)
        for key in strange[:MOST_STRANGE]:
            self._refuse(str(key)[:40], "there is no such field")
        if len(strange) > MOST_STRANGE:
            self._refuse("", f"{len(strange) - MOST_STRANGE:,} more fields that there are not")
        return found

    def _refuse(self, place: str, message: str) -> None:
        self.refusals.append(Refusal("submission", message, f"{SUBMISSION}: {place}".rstrip(": ")))

    def _take(self, key: str, *, required: bool) -> Any:
        self._seen.add(key)
        value = self._document.get(key)
        if value is None and required:
            self._refuse(key, "this field is missing")
        return value

    def _checked(
        self, key: str, problem_of: Callable[[Any], str | None], *, required: bool = True
    ) -> str:
        value = self._take(key, required=required)
        if value is None:
            return ""
        problem = problem_of(value)
        if problem is not None:
            self._refuse(key, problem)
            return ""
        return str(value)

    def _text(self, key: str, limit: int, *, required: bool = True) -> str:
        return self._checked(key, lambda value: text_problem(value, limit), required=required)

    def _name(self) -> str:
        def problem(value: Any) -> str | None:
            if isinstance(value, str) and NAME.fullmatch(value) and value == value.strip():
                return None
            return "expected up to 60 of A-Z a-z 0-9 space . _ + ( ) -, the first a letter or digit"

        return self._checked("name", problem)

    def _one_of(self, key: str, values: Any, default: str | None = None) -> str:
        value = self._take(key, required=default is None)
        if value is None:
            return default or ""
        if value not in values:
            self._refuse(key, f"expected one of {', '.join(values)}")
            return ""
        return str(value)

    def _number(self, key: str, low: int, high: int, default: int | None) -> int | None:
        value = self._take(key, required=False)
        if value is None:
            return default
        if type(value) is not int or not low <= value <= high:
            self._refuse(key, f"expected a whole number from {low:,} to {high:,}")
            return default
        return value

    def _cost(self) -> float | None:
        value = self._take("cost", required=False)
        if type(value) in (int, float) and 0 <= value <= MOST_TOKENS:
            return abs(float(value))  # not -0.0
        if value is not None:
            self._refuse("cost", f"expected a number from 0 to {MOST_TOKENS:,}")
        return None

    def _authors(self) -> tuple[str, ...]:
        value = self._take("authors", required=True)
        if value is None:
            return ()
        if not isinstance(value, list) or not 1 <= len(value) <= MOST_AUTHORS:
            self._refuse("authors", f"expected a list of 1 to {MOST_AUTHORS} names")
            return ()
        problems = [text_problem(author, 80) for author in value]
        for number, problem in enumerate(problems, 1):
            if problem is not None:
                self._refuse(f"authors, {number}", problem)
        return () if any(problems) else tuple(value)

    def _architectures(self) -> tuple[str, ...]:
        value = self._take("architectures", required=False)
        if value is None:
            return ()
        names = value if isinstance(value, list) else []
        wrong = [each for each in names if not isinstance(each, str) or each not in TARGETS]
        if not names or wrong or len(set(names)) < len(names):
            self._refuse("architectures", f"expected a list of {', '.join(TARGETS)}, each once")
            return ()
        return tuple(name for name in TARGETS if name in names)

    def _links(self) -> dict[str, str]:
        value = self._take("links", required=False)
        if value is None:
            return {}
        if not isinstance(value, dict) or value.keys() - set(LINKS):
            self._refuse("links", f"expected a mapping of {', '.join(LINKS)}")
            return {}
        problems = {key: url_problem(url) for key, url in value.items()}
        for key, problem in problems.items():
            if problem is not None:
                self._refuse(f"links, {key}", problem)
        return {key: value[key] for key in LINKS if key in value and problems[key] is None}

    def _claims(self) -> dict[str, dict[str, float]]:
        value = self._take("claims", required=False)
        if value is None:
            return {}
        if not isinstance(value, dict):
            self._refuse("claims", "expected a mapping of tasks")
            return {}
        found: dict[str, dict[str, float]] = {}
        if len(value) > MOST_CLAIMS:
            self._refuse("claims", f"expected at most {MOST_CLAIMS} tasks")
            return {}
        for task, figures in value.items():
            if not isinstance(task, str) or not _TASK.fullmatch(task):
                self._refuse("claims", "expected tasks such as overall or gfx90a/gemm")
            elif not isinstance(figures, dict) or figures.keys() - set(CLAIMED):
                self._refuse(f"claims, {task}", f"expected a mapping of {', '.join(CLAIMED)}")
            elif not all(type(n) in (int, float) and 0 <= n < 10**15 for n in figures.values()):
                self._refuse(f"claims, {task}", "expected numbers from 0")
            else:
                found[task] = {key: float(figures[key]) for key in CLAIMED if key in figures}
        return found

    def _measured(self) -> tuple[MeasuredFigure, ...]:
        value = self._take("measured", required=False)
        if value is None:
            return ()
        if not isinstance(value, list) or not 1 <= len(value) <= MOST_MEASURED:
            self._refuse("measured", f"expected a list of 1 to {MOST_MEASURED} figures")
            return ()
        found = [read_figure(each) for each in value]
        for number, each in enumerate(found, 1):
            if isinstance(each, str):
                self._refuse(f"measured, {number}", each)
        return tuple(each for each in found if isinstance(each, MeasuredFigure))


def _contact_problem(value: Any) -> str | None:
    plain = isinstance(value, str) and value.isascii() and text_problem(value, 200) is None
    if plain and _EMAIL.fullmatch(value):
        return None
    if url_problem(value) is None:
        return None
    return "expected an e-mail address, or one that begins with https://"


def _date_problem(value: Any) -> str | None:
    try:
        day = date.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:  # it is a text, and no day in it
        day = None
    if day is None or day.isoformat() != value:
        return "expected a day such as 2026-11-25, in quotes"
    if day.year < FIRST_YEAR:
        return f"expected a day from {FIRST_YEAR} on"
    # It may be tomorrow elsewhere.
    is_to_come = day > datetime.now(UTC).date() + timedelta(days=1)
    return "expected a day that has come" if is_to_come else None


def _hash_problem(value: Any) -> str | None:
    if isinstance(value, str) and _HASH.fullmatch(value):
        return None
    return "expected the hash that results.json has under dataset, in quotes"
