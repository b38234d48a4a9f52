"""A report as one HTML file: words, charts, tables, and every kernel.

It loads nothing. Its policy allows the scripts that it has, by their hashes, and
no others, so that nothing that a file of results says can run. The charts are
drawn by Vega-Lite (vega.github.io/vega-lite), which the package vl-convert-python
brings; expressions are interpreted, not compiled.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from verilocc_bench.errors import MissingExtraError
from verilocc_bench.report.charts import section_charts
from verilocc_bench.report.kernel_rows import kernel_rows
from verilocc_bench.report.marks import mark_of
from verilocc_bench.report.pairing import answer_lines, rank_runs
from verilocc_bench.report.runs import (
    ComparableRuns,
    ReportedRun,
    printable,
    report_notes,
    section_notes,
)
from verilocc_bench.report.tables import Table, section_tables

if TYPE_CHECKING:
    from jinja2 import Environment

_SUMMARY_TABLES = 3
"""How many tables stand before the charts: the two of pairs, and the overall one."""


def render_html(sections: Sequence[ComparableRuns], samples: str | None = None) -> str:
    """The whole page; `samples` is the address of a list of samples.

    Raises MissingExtraError without jinja2 and vl-convert-python.
    """
    template = page_environment().get_template("report.html")
    folder = files("verilocc_bench.report")
    shown = [_section(number, section) for number, section in enumerate(sections)]
    data = {str(each["number"]): each.pop("data") for each in shown}
    scripts = (_vega(), (folder / "report.js").read_text("utf-8"))
    hashes = [hashlib.sha256(script.encode()).digest() for script in scripts]
    allowed = " ".join(f"'sha256-{base64.b64encode(each).decode()}'" for each in hashes)
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src {allowed}"
    count = sum(len(section.runs) for section in sections)
    # JSON that cannot end the element it stands in.
    text = json.dumps(_printable(data), separators=(",", ":"), sort_keys=True)
    return template.render(
        title=f"Register allocation: {count} {'run' if count == 1 else 'runs'}",
        notes=report_notes(sections),
        sections=shown,
        samples=samples,
        style=page_style(),
        policy=policy,
        data=text.replace("<", "\\u003c"),
        scripts=scripts,
    )


@cache
def page_environment() -> Environment:
    """The templates of pages. Raises MissingExtraError without jinja2."""
    try:
        import jinja2
    except ImportError:
        raise MissingExtraError("jinja2", "report", "a report in HTML") from None
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(str(files("verilocc_bench.report") / "templates")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["printable"] = printable
    return environment


def page_style() -> str:
    """The style sheet of pages."""
    return (files("verilocc_bench.report") / "style.css").read_text("utf-8")


@cache
def _vega() -> str:
    """Vega, Vega-Lite and Vega-Embed in one script, which cannot end the element it stands in."""
    try:
        import vl_convert
    except ImportError:
        raise MissingExtraError("vl-convert-python", "report", "a report in HTML") from None
    script: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _section(number: int, section: ComparableRuns) -> dict[str, Any]:
    ranking = rank_runs(section)
    tables = [_table(table) for table in section_tables(section, ranking)]
    before = _SUMMARY_TABLES if ranking.pairs else 1
    charts = section_charts(section)
    return {
        "number": number,
        "title": section.title,
        # The heading has the budget.
        "conditions": {k: v or "–" for k, v in section.conditions.items() if k != "budget"},
        "notes": section_notes(section),
        "answer": answer_lines(ranking),
        "marks": [(*mark_of(place), run.name) for place, run in enumerate(section.runs)],
        "summary": tables[:before],
        "details": tables[before:],
        "charts": [{"title": chart.title, "reading": chart.reading} for chart in charts],
        "configurations": [(run.name, _configuration(run)) for run in section.runs],
        "data": {
            "charts": [chart.spec for chart in charts],
            "kernels": kernel_rows(section),
        },
    }


def _table(table: Table) -> dict[str, Any]:
    rows, before = [], None
    for row in table.rows:
        # Rows of one task or size stand together; a line is between them.
        first = table.named > 1 and before is not None and row[0] != before
        rows.append(
            {
                "names": row[: table.named],
                "figures": [cell.partition(" (") for cell in row[table.named :]],
                "first": first,
                "best": row[0].startswith("★ "),
            }
        )
        before = row[0]
    return {
        "title": table.title,
        "meaning": table.meaning,
        "named": table.named,
        "headers": table.headers,
        "rows": rows,
    }


def _configuration(run: ReportedRun) -> str:
    document = run.document
    keys = ("config", "versions", "dataset", "seed", "git_revision", "date")
    shown = _printable({key: document[key] for key in keys})
    return json.dumps(shown, indent=2, ensure_ascii=False)


def _printable(value: Any) -> Any:
    """A JSON value with every text made printable."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable(key): _printable(item) for key, item in value.items()}
    return [_printable(item) for item in value] if isinstance(value, (list, tuple)) else value
