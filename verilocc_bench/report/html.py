"""A report as one HTML file: tables, and plots as inline SVG. It loads and runs nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any

from verilocc_bench.report.plots import Panel, Plot, mark_of, section_plots
from verilocc_bench.report.runs import (
    ComparableRuns,
    ReportedRun,
    printable,
    report_notes,
    section_notes,
)
from verilocc_bench.report.tables import Table, section_tables

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Makes sure that the page loads and runs nothing."""


def render_html(sections: Sequence[ComparableRuns]) -> str:
    """The whole page. Raises MissingExtraError without matplotlib."""
    style = (files("verilocc_bench.report") / "style.css").read_text("utf-8")
    count = sum(len(section.runs) for section in sections)
    body = "\n".join(_section(section) for section in sections)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Register allocation: {count} {"run" if count == 1 else "runs"}</title>
<style>
{style}</style>
</head>
<body>
<main>
<h1>Register allocation: {count} {"run" if count == 1 else "runs"}</h1>
<p>An allocator gives every virtual register of a GPU kernel a register; a sample is one such
answer, and it is valid where a verifier finds nothing wrong with it. – is what cannot be
computed.</p>
{_notes(report_notes(sections))}
{body}
</main>
</body>
</html>
"""


def _section(section: ComparableRuns) -> str:
    told = section.conditions
    listed = "".join(
        f"<dt>{name}</dt><dd>{_text(value or '–')}</dd>"
        for name, value in told.items()
        if name != "budget"  # the heading has it
    )
    parts = [
        f"<section>\n<h2>{_text(section.title)}</h2>",
        f'<dl class="kind">{listed}</dl>',
        _notes(section_notes(section)),
    ]
    tables = [_table(table) for table in section_tables(section)]
    plots = [_plot(plot, section) for plot in section_plots(section)]
    # The overall table answers most questions; the pictures come before the details.
    parts += [*tables[:1], *plots, *tables[1:], _configurations(section.runs), "</section>"]
    return "\n".join(part for part in parts if part)


def _notes(notes: Sequence[str]) -> str:
    return "\n".join(f'<p class="note">{_text(note)}</p>' for note in notes)


def _table(table: Table) -> str:
    head = "".join(
        f'<th scope="col"{_class(place, table)}>{_text(header)}</th>'
        for place, header in enumerate(table.headers)
    )
    rows, before = [], None
    for row in table.rows:
        # Rows of one task or size stand together; a line is between them.
        new = table.named > 1 and before is not None and row[0] != before
        opening = '<tr class="first">' if new else "<tr>"
        rows.append(f"{opening}{_cells(row, table)}</tr>")
        before = row[0]
    title = _text(table.title)
    return (
        f"<h3>{title}</h3>\n"
        f'<div class="table" role="region" aria-label="{title}" tabindex="0">'
        f"<table><caption>{title}</caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n"
        + "\n".join(rows)
        + f'\n</tbody></table></div>\n<p class="meaning">{_text(table.meaning)}</p>'
    )


def _cells(row: Sequence[str], table: Table) -> str:
    cells = []
    for place, cell in enumerate(row):
        if place < table.named:
            cells.append(f'<th scope="row"{_class(place, table)}>{_text(cell)}</th>')
        else:
            cells.append(f"<td>{_figure(cell)}</td>")
    return "".join(cells)


def _figure(cell: str) -> str:
    """A figure with its interval, if it has one, below it."""
    value, separator, interval = cell.partition(" (")
    if not separator:
        return _text(cell)
    return f"{_text(value)} <small>({_text(interval)}</small>"


def _class(place: int, table: Table) -> str:
    """The class of a column: `name` for the last naming column, which may be long, `key` before."""
    if place >= table.named:
        return ""
    return ' class="name"' if place == table.named - 1 else ' class="key"'


def _plot(plot: Plot, section: ComparableRuns) -> str:
    panels = "\n".join(_panel(panel, section) for panel in plot.panels)
    legend = ""
    if plot.legend:
        items = "".join(f"<li>{_mark(place, run)}</li>" for place, run in enumerate(section.runs))
        legend = f'<ul class="legend">{items}</ul>\n'
    return (
        f"<h3>{_text(plot.title)}</h3>\n<figure>\n{legend}"
        f'<div class="panels">\n{panels}\n</div>\n'
        f"<figcaption>{_text(plot.reading)}</figcaption>\n</figure>"
    )


def _panel(panel: Panel, section: ComparableRuns) -> str:
    title = "" if panel.run is None else f"<p>{_mark(panel.run, section.runs[panel.run])}</p>"
    return f'<div class="panel">{title}{panel.svg}</div>'


def _mark(place: int, run: ReportedRun) -> str:
    colour, character = mark_of(place)
    return f'<span style="color:{colour}" aria-hidden="true">{character}</span> {_text(run.name)}'


def _configurations(runs: Sequence[ReportedRun]) -> str:
    parts = []
    for run in runs:
        document = run.document
        keys = ("config", "versions", "dataset", "seed", "git_revision", "date")
        shown = _printable({key: document[key] for key in keys})
        text = json.dumps(shown, indent=2, ensure_ascii=False)
        parts.append(f"<h4>{_text(run.name)}</h4>\n<pre>{escape(text)}</pre>")
    return (
        "<details><summary>How the runs were configured: versions, dates, options</summary>\n"
        + "\n".join(parts)
        + "\n</details>"
    )


def _printable(value: Any) -> Any:
    """A JSON value with every text made printable."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable(key): _printable(item) for key, item in value.items()}
    return [_printable(item) for item in value] if isinstance(value, list) else value


def _text(text: str) -> str:
    """Text from anywhere, as HTML shows it."""
    return escape(printable(text))
