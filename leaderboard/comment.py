"""A verdict in words: the comment on a pull request."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from tabulate import tabulate

from leaderboard.measured import UNVERIFIED, figure_words
from leaderboard.shown_text import UNSEEN
from verilocc_bench.evaluation.metrics import mean
from verilocc_bench.evaluation.score import kernel_score
from verilocc_bench.evaluation.table import CODE_COLUMNS, code_change, code_runs

MOST_REFUSALS = 20
LENGTH = 500


def plain(text: object) -> str:
    """Text of strangers as Markdown code, so that it cannot make links or mentions.

    Escaping is not enough: the Hub makes links of addresses in plain text.
    """
    words = "".join(c if unicodedata.category(c) not in UNSEEN else " " for c in str(text))
    words = " ".join(words.replace("`", "'").split())[:LENGTH].rstrip()
    return f"`{words or '?'}`"


def comment(document: Mapping[str, Any]) -> str:
    """The comment, in Markdown."""
    return "\n\n".join(_parts(document)) + "\n"


def _parts(document: Mapping[str, Any]) -> Iterator[str]:
    submission, board = document["submission"], document["board"]
    name = "This submission" if submission is None else f"**{plain(submission['name'])}**"
    yield f"## {'Accepted' if document['accepted'] else 'Refused'}"
    if board is not None:
        yield (
            f"{name}, on the board `{board['name']}`: the {board['split']} split of the "
            f"{board['track']} track of {board['dataset']}, `{board['hash'][:16]}`."
        )
    if document["results"] and document["answered"] < document["board"]["functions"]:
        yield (
            f"It answers {', '.join(submission['architectures'])} alone: "
            f"{document['answered']:,} of {document['board']['functions']:,} kernels."
        )
    if document["refusals"]:
        yield f"{name} cannot be taken:"
        refusals = document["refusals"]
        lines = [
            f"- **{each['kind']}**, {plain(each['place'])}: {plain(each['message'])}"
            for each in refusals[:MOST_REFUSALS]
        ]
        if len(refusals) > MOST_REFUSALS:
            lines.append(f"- and {len(refusals) - MOST_REFUSALS:,} more")
        yield "\n".join(lines)
    if document["results"]:
        yield _table(document, board["track"])
    if document["executed"]:
        yield executed_words(document["executed"])
    if document["machine_code"]:
        yield code_words(document["machine_code"])
    if document["accepted"] and submission.get("measured"):
        yield f"On GPUs, {UNVERIFIED}:"
        yield "\n".join(
            f"- `{each['id']}` on {plain(each['device'])}, against {plain(each['against'])}: "
            f"{figure_words(each)}"
            for each in submission["measured"]
        )
    if document["marks"]:
        yield "To be shown beside it:"
        yield "\n".join(f"- {each['message']}" for each in document["marks"])
    differ = [claim for claim in document["claims"] if not claim["same"]]
    if differ:
        rows = [
            (claim["task"], claim["figure"], _figure(claim["claimed"]), _figure(claim["found"]))
            for claim in differ
        ]
        headers = ("task", "figure", "claimed", "found")
        yield tabulate(rows, headers, tablefmt="github", disable_numparse=True)
    version = document["versions"].get("verilocc-bench")
    hashes = ", ".join(f"{key} `{value[:16]}`" for key, value in document["files"].items())
    yield html.escape(f"verilocc-bench {version}, checkers {document['checkers']}") + (
        f"; {hashes}" if hashes else ""
    )


def executed_words(executed: Mapping[str, Any]) -> str:
    """How many answers were executed as machine code, and what came of it."""
    count, wrong = executed["executed"], len(executed["wrong"])
    if not count:
        why = executed["why_not"]
        return "No answer was executed as machine code" + (f": {plain(why)}." if why else ".")
    agree = "all give" if not wrong else f"{count - wrong:,} give"
    return f"{count:,} answers were executed as machine code; {agree} the right numbers."


def code_words(counted: Mapping[str, Any]) -> str:
    """What the answers to a sample of functions cost as machine code, against the compiler's."""
    record, why = {"machine_code": counted["record"]}, counted["why_not"]
    if not counted["record"]["kernels"]:
        return "No answer was counted as machine code" + (f": {plain(why)}." if why else ".")
    words = f"As machine code, {code_runs(record)} answers to {counted['functions']} kernels run"
    changes = code_changes(record)
    return f"{words}; against the compiler's: {', '.join(changes)}." if changes else f"{words}."


def code_changes(record: Mapping[str, Any]) -> list[str]:
    """The change of each figure of machine code against the compiler's, in words."""
    return [
        f"{heading.removeprefix('code ')} {code_change(name, record)}"
        for heading, name in CODE_COLUMNS.items()
        if name in record["machine_code"]["figures"]
    ]


def _table(document: Mapping[str, Any], track: str) -> str:
    results, kernels = document["results"], document["kernels"]
    measures = {"registers/label": "registers_ratio", "bank conflicts": "bank_conflicts"}
    if track == "split":
        measures = {"spill cost": "spill_cost", "move cost": "move_cost"}
    keys = [key for key in next(iter(results.values())) if re.fullmatch(r"pass@\d+", key)]
    rows = []
    for task, record in results.items():
        figures = [_share(record, key) for key in keys]
        if track != "split":
            scores = [
                kernel_score(each) or 0.0 for each in kernels if task in ("overall", each["task"])
            ]
            figures.insert(0, _figure(mean(scores)))
        measured = [_figure(record[name]) for name in measures.values()]
        rows.append((task, record["n"], *figures, *measured))
    score = () if track == "split" else ("score",)
    headers = ("task", "kernels", *score, *keys, *measures)
    return tabulate(rows, headers, tablefmt="github", disable_numparse=True)


def _share(record: Mapping[str, Any], key: str) -> str:
    if record[key] is None:
        return "–"
    value, low, high = (100 * record[each] for each in (key, f"{key}_low", f"{key}_high"))
    return f"{value:.1f} % ({low:.1f}–{high:.1f})"


def _figure(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"
