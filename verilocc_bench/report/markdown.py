"""A report in Markdown (GitHub's, with tables)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from verilocc_bench.report.pairing import answer_lines, rank_runs
from verilocc_bench.report.runs import ComparableRuns, printable, report_notes, section_notes
from verilocc_bench.report.tables import Table, section_tables

_SPECIAL = re.compile(r"([\\`*_\[\]|~$])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_LINKS = {"://": "&#58;//", "www.": "www&#46;"}  # what would become a link by itself


def escape_markdown(text: str) -> str:
    """Text that Markdown shows as it stands, on one line: no markup, links, HTML or new cells."""
    text = _SPECIAL.sub(r"\\\1", printable(text))
    text = "".join(_ENTITIES.get(character, character) for character in text)
    return re.sub(r"://|www\.", lambda match: _LINKS[match[0]], text)


def render_markdown(sections: Sequence[ComparableRuns]) -> str:
    """Words and tables of all sections; charts and kernels are in the HTML report alone."""
    lines = ["# Report", ""]
    lines += [f"{escape_markdown(note)}\n" for note in report_notes(sections)]
    for section in sections:
        lines += [f"## {escape_markdown(section.title)}", ""]
        lines += [f"> {escape_markdown(note)}\n" for note in section_notes(section)]
        ranking = rank_runs(section)
        lines += [f"- {escape_markdown(line)}" for line in answer_lines(ranking)]
        lines += [""] if ranking.pairs else []
        for table in section_tables(section, ranking):
            lines += _table_lines(table)
    lines.append(
        "Charts, all kernels, and how each run was configured, are in the report of "
        "`--format html`."
    )
    return "\n".join(lines) + "\n"


def _table_lines(table: Table) -> list[str]:
    figures = len(table.headers) - table.named
    rule = [":--"] * table.named + ["--:"] * figures
    rows = [[escape_markdown(cell) for cell in row] for row in (table.headers, *table.rows)]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "| " + " | ".join(rule) + " |")
    return [f"### {escape_markdown(table.title)}", "", *lines, "", table.meaning, ""]
