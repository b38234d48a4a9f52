"""A page for each sample of a language model: what it was asked, what it said, what was wrong.

The pages lie in a folder beside the report, with a list of them. They load nothing and run nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.results import SAMPLES
from verilocc_bench.files import decode_text, open_input, parse_json, write_atomically
from verilocc_bench.model.transcripts import Exchange, read_transcripts, tokens_told
from verilocc_bench.report.html import page_environment, page_style
from verilocc_bench.report.runs import ReportedRun

_SHOWN = {"id", "sample", "task", "valid", "failure", "message", "verdict", "details"}


@dataclass(frozen=True, slots=True)
class SamplePage:
    """A sample under the name of its run, as `samples.jsonl` has it, with its exchanges."""

    run: str
    record: dict[str, Any]
    exchanges: Sequence[Exchange]
    name: str

    @property
    def title(self) -> str:
        """The sample in one line."""
        return f"{self.record['task']}, {self.record['id']}, sample {self.record['sample']}"

    @property
    def verdict(self) -> str:
        """Why it is not valid, or that it is."""
        if self.record["valid"]:
            return "valid"
        told = self.record["message"]
        return str(self.record["failure"] or "invalid") + (f": {told}" if told else "")

    @property
    def findings(self) -> list[str]:
        """The verifier's findings, in words."""
        return [each["message"] for each in (self.record["verdict"] or {}).get("findings", ())]

    @property
    def said(self) -> tuple[str, str | None]:
        """The last completion up to where reading stopped, and what follows; None: it did not."""
        text, place = self.exchanges[-1].completion, self.record["details"].get("stopped_at")
        return (text, None) if place is None else (text[: int(place)], text[int(place) :])


def write_transcript_pages(runs: Sequence[ReportedRun], report: Path) -> str | None:
    """Writes the pages; the address of their list, seen from the report. None without samples."""
    pages = [page for number, run in enumerate(runs) for page in _pages(number, run)]
    if not pages:
        return None
    folder = report.with_name(f"{report.stem}-samples")
    environment, style = page_environment(), page_style()
    environment.filters["tokens_told"] = tokens_told
    shown = {"style": style, "policy": "default-src 'none'; style-src 'unsafe-inline'"}
    for before, page, after in zip([None, *pages], pages, [*pages[1:], None], strict=False):
        text = environment.get_template("sample.html").render(
            **shown, title=page.title, page=page, before=before, after=after
        )
        write_atomically(folder / page.name, text)
    listed = environment.get_template("samples.html").render(
        **shown, title="Samples of language models", pages=pages
    )
    write_atomically(folder / "index.html", listed)
    return f"{folder.name}/index.html"


def _pages(number: int, run: ReportedRun) -> Iterator[SamplePage]:
    transcripts = read_transcripts(run.folder)
    if not transcripts:
        return
    path = run.folder / SAMPLES
    with open_input(path) as file:
        for place, line in enumerate(file, 1):
            record = parse_json(decode_text(line, path), path, place)
            if not isinstance(record, dict) or _SHOWN - record.keys():
                keys = ", ".join(sorted(_SHOWN))
                raise InputError(f"expected the keys {keys}", source=path, line=place)
            if type(record["sample"]) is not int:
                raise InputError("expected a whole number as sample", source=path, line=place)
            key = str(record.get("configuration")), str(record["id"]), record["sample"]
            if key in transcripts:
                # An id is whatever the run's author wrote: it stays within the folder.
                told = re.sub(r"\W", "_", key[1], flags=re.ASCII)[:40]
                told += "" if told == key[1] else f"-{place}"
                name = f"{number}-{told}-{key[2]}.html"
                page = SamplePage(run.name, record, transcripts[key], name)
                try:
                    _ = page.findings, page.said
                except (AttributeError, IndexError, KeyError, TypeError, ValueError):
                    told = "expected what evaluate writes as verdict and details"
                    raise InputError(told, source=path, line=place) from None
                yield page
