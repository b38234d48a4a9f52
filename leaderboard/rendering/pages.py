"""The pages as text: Jinja templates in which all text of strangers is escaped."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from leaderboard.boards import Board
from leaderboard.comment import code_words
from leaderboard.document import KS
from leaderboard.judging import NEARLY_ALL
from leaderboard.measured import UNVERIFIED, figure_words
from leaderboard.rendering.entries import ALL, BoardEntry, EntryFigures, Scope, scopes
from leaderboard.rendering.history import history_plot
from leaderboard.rendering.scatter import scatter_plot
from verilocc_bench.allocators import Assistance
from verilocc_bench.errors import MissingExtraError
from verilocc_bench.evaluation.metrics import geometric_mean
from verilocc_bench.evaluation.score import bound_of, is_reached
from verilocc_bench.evaluation.table import code_change, percent

if TYPE_CHECKING:
    from jinja2 import Environment


@dataclass(frozen=True, slots=True)
class PageSection:
    """One table: entries with the same assistance and decoding, the best first.

    `ranks` are their places; entries with equal figures share one.
    """

    assistance: str
    decoding: str
    entries: Sequence[BoardEntry]
    ranks: Sequence[int]

    @property
    def meaning(self) -> str:
        """What entries of this table were shown, and how their answers came about."""
        return f"{SHOWN[Assistance(self.assistance)]} {DECODED[self.decoding]}"


@dataclass(frozen=True)
class BoardPage:
    """Everything that a board's page shows."""

    board: Board
    entries: Sequence[BoardEntry]
    shown: Sequence[Board]

    @property
    def sections(self) -> list[PageSection]:
        """The tables, those with the least assistance first."""
        kinds = sorted(
            {entry.kind for entry in self.entries},
            key=lambda kind: (_place(kind[0], ASSISTANCE), _place(kind[1], DECODING)),
        )
        return [self._ranked(kind) for kind in kinds]

    def _ranked(self, kind: tuple[str, str]) -> PageSection:
        """By score, or by pass@1 and spill cost on the split track; partial entries last."""
        figures = self.figures.get(Scope().key, {})

        def order(entry: BoardEntry) -> tuple[float, ...]:
            found = figures.get(entry.path)
            if found is None:
                return (1.0, 0.0, 0.0)
            if found.score is not None:
                return (0.0, -found.score[0], 0.0)
            passed = found.passed[0][1] if found.passed else -1.0
            return (0.0, -passed, float("inf") if found.spill_cost is None else found.spill_cost)

        entries = sorted((each for each in self.entries if each.kind == kind), key=order)
        orders = [order(each) for each in entries]
        return PageSection(*kind, entries, [1 + orders.index(each) for each in orders])

    @cached_property
    def scopes(self) -> list[tuple[Scope, int]]:
        """The choices of kernels, with their numbers."""
        return scopes(self.entries, self.board.functions)

    @cached_property
    def figures(self) -> dict[str, dict[str, EntryFigures | None]]:
        """By scope, then by the entry's path."""
        return {
            scope.key: {entry.path: entry.figures(scope, count) for entry in self.entries}
            for scope, count in self.scopes
        }

    @property
    def choices(self) -> dict[str, list[str]]:
        """The options of each choice, by question."""
        found: dict[str, list[str]] = {"architecture": [], "family": [], "size": []}
        for scope, _ in self.scopes:
            for name, value in asdict(scope).items():
                if value != ALL and value not in found[name]:
                    found[name].append(value)
        return found

    def equal_base_lines(self, entry: BoardEntry) -> list[str]:
        """The base lines that have the figures of an entry on nearly all its kernels."""
        own = _figures(entry)
        return [
            each.submission["name"]
            for each in self.entries
            if each.is_base_line
            and not entry.is_base_line
            and len(own.items() & _figures(each).items()) >= NEARLY_ALL * len(own)
        ]

    @cached_property
    def kernels(self) -> Mapping[str, Mapping[str, Any]]:
        """The record of each kernel, from the entry whose valid answer has the fewest registers.

        Records without a valid answer know neither the label's registers nor the bound: one
        of them stands only where no entry has a valid answer.
        """
        found: dict[str, Mapping[str, Any]] = {}
        for kernel in (kernel for entry in self.entries for kernel in entry.kernels):
            known = found.setdefault(kernel["id"], kernel)["registers"]
            registers = kernel["registers"]
            if registers is not None and (known is None or registers < known):
                found[kernel["id"]] = kernel
        return found

    @property
    def possible(self) -> dict[str, tuple[int, int]]:
        """By scope, on how many of its kernels an answer is known that reaches the bound."""
        found = {}
        for scope, _ in self.scopes:
            kernels = [kernel for kernel in self.kernels.values() if scope.has(kernel)]
            found[scope.key] = (sum(map(is_reached, kernels)), len(kernels))
        return found

    @property
    def bound(self) -> dict[str, float | None]:
        """The lower bound over the label's registers, by scope; empty if answers may spill."""
        if self.board.track == "split":
            return {}
        kernels = self.kernels
        return {
            scope.key: geometric_mean(
                [
                    bound_of(kernel) / kernel["label_registers"]
                    for kernel in kernels.values()
                    if scope.has(kernel) and kernel["bound"] and kernel["label_registers"]
                ]
            )
            for scope, count in self.scopes
            if sum(scope.has(kernel) for kernel in kernels.values()) == count
        }


SHOWN = {
    Assistance.TEXT: "The kernel's text, and nothing worked out for the allocator.",
    Assistance.INTERVALS: "The program works out where each value begins and ends in the text, "
    "and which registers are free.",
    Assistance.STATE: "The state of the registers is worked out, and shown: which are free for "
    "what is to be placed.",
}
DECODED = {
    "free": "Answers are taken as they are said.",
    "constrained": "Only legal registers can be said.",
    "guided": "The verifier sends wrong answers back, as often as the last column says.",
}
ASSISTANCE = tuple(Assistance)
DECODING = tuple(DECODED)


def _place(value: str, order: Sequence[str]) -> int:
    return order.index(value) if value in order else len(order)


@cache
def _environment() -> Environment:
    try:
        import jinja2
        import markupsafe  # noqa: F401  which jinja2 brings
    except ImportError:
        raise MissingExtraError("jinja2", "page", "rendering the leaderboard") from None
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(str(files("leaderboard.rendering") / "templates")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "share": percent,
        "ratio": lambda value: "–" if value is None else f"{value:.3f}",
        "number": _number,
        "signed": _signed,
        "code_change": lambda record, name: code_change(name, {"machine_code": record}),
        "code_words": code_words,
        "figure_words": figure_words,
    }
    return environment


def check_packages() -> None:
    """Raises MissingExtraError if what renders pages is not installed."""
    _environment()


def board_page(page: BoardPage) -> str:
    """The page of a board."""
    figures, bound = page.figures, page.bound
    data = {
        "figures": {
            key: {path: None if each is None else asdict(each) for path, each in found.items()}
            for key, found in figures.items()
        },
        "bound": bound,
        "possible": page.possible,
    }
    ks = [k for k in KS if any(entry.submission["samples"] >= k for entry in page.entries)]
    return _render(
        "board.html",
        root="",
        page=page,
        board=page.board,
        split=page.board.track == "split",
        boards=[board for board in page.shown if board.name != page.board.name],
        ks=ks or [1],
        first=figures.get(Scope().key, {}),
        scatters=[scatter_plot(each.entries, each.ranks, figures) for each in page.sections],
        histories=[history_plot(each.entries, each.ranks, figures) for each in page.sections],
        possible=page.possible.get(Scope().key),
        executed=any(entry.executed for entry in page.entries),
        machine_code=any(entry.machine_code for entry in page.entries),
        bound=bound.get(Scope().key),
        data=_script_json(data),
    )


def entry_page(entry: BoardEntry, page: BoardPage, pictures: Mapping[str, str]) -> str:
    """The page of an entry; `pictures` are addresses of images, relative to it, by kernel."""
    return _render(
        "entry.html",
        root="../../",
        entry=entry,
        document=entry.document,
        submission=entry.submission,
        board=page.board,
        split=page.board.track == "split",
        ks=[k for k in KS if k <= entry.submission["samples"]],
        kernels={kernel["id"]: kernel for kernel in entry.kernels},
        pictures=pictures,
        unverified=UNVERIFIED,
    )


def _render(template: str, **values: Any) -> str:
    style, script = _asset("page.css"), _asset("page.js")
    policy = (
        "default-src 'none'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
        f"style-src '{_digest(style)}'; script-src '{_digest(script)}'"
    )
    import markupsafe

    return (
        _environment()
        .get_template(template)
        .render(
            style=markupsafe.Markup(style),  # noqa: S704  our own files
            script=markupsafe.Markup(script),  # noqa: S704
            policy=policy,
            **values,
        )
    )


def _asset(name: str) -> str:
    return "\n" + (files("leaderboard.rendering") / name).read_text("utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _script_json(data: Any) -> Any:
    """JSON that is safe inside an HTML script element."""
    import markupsafe

    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    escaped = text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return markupsafe.Markup(escaped)  # noqa: S704  no character of markup is left


def _number(value: float | None) -> str:
    return (
        "–" if value is None else f"{value:,.0f}" if float(value).is_integer() else f"{value:.2f}"
    )


def _signed(figures: EntryFigures | None) -> str:
    if figures is None or figures.gained is None:
        return "–"
    return f"+{figures.gained} −{figures.lost}"


def _figures(entry: BoardEntry) -> dict[str, tuple[Any, ...]]:
    """What an answer to each kernel is, whatever the number of samples."""
    names = ("registers", "bank_conflicts", "occupancy", "spill_cost", "move_cost")
    return {
        kernel["id"]: (
            kernel["valid"] / (kernel["samples"] or 1),
            *(kernel[name] for name in names),
        )
        for kernel in entry.kernels
    }
