"""BibTeX for the software and the paper behind it, from CITATION.cff."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from verilocc_bench.errors import InputError

CITATION = "CITATION.cff"


@cache
def read_citation() -> Mapping[str, Any]:
    """CITATION.cff of the package or of the repository. Raises InputError if it is missing."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package, package.parent):
        path = folder / CITATION
        if path.is_file():
            document: Mapping[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
            return document
    raise InputError(f"there is no {CITATION} beside the package", source=package.parent)


def bibtex(citation: Mapping[str, Any], doi: str | None) -> str:
    """One entry for the software, with its `doi` if there is one, and one for each reference."""
    software = {
        "title": citation["title"],
        "author": _authors(citation["authors"]),
        "version": citation["version"],
        "year": str(citation["date-released"])[:4],
        "doi": doi,
        "license": citation["license"],
    }
    entries = [_entry("software", citation["title"], software)]
    entries += [_paper(reference) for reference in citation.get("references", ())]
    return "\n\n".join(entries)


def _paper(reference: Mapping[str, Any]) -> str:
    first = reference["authors"][0]["family-names"].lower()
    word = reference["title"].split(":")[0].split()[0].lower()
    pages = "--".join(str(reference[end]) for end in ("start", "end") if end in reference)
    fields = {
        "title": reference["title"],
        "author": _authors(reference["authors"]),
        "booktitle": reference.get("collection-title"),
        "pages": pages or None,
        "year": reference["year"],
        "doi": reference.get("doi"),
        "url": reference.get("url"),
        **_preprint(reference),
    }
    return _entry("inproceedings", f"{first}{reference['year']}{word}", fields)


def _preprint(reference: Mapping[str, Any]) -> dict[str, str]:
    for identifier in reference.get("identifiers", ()):
        archive, _, number = str(identifier["value"]).partition(":")
        if archive == "arXiv":
            return {"eprint": number, "archiveprefix": archive}
    return {}


def _authors(authors: list[Mapping[str, str]]) -> str:
    """Names in BibTeX's form; a group's name is in braces, so that it counts as one name."""
    return " and ".join(
        f"{{{author['name']}}}"
        if "name" in author
        else f"{author['family-names']}, {author['given-names']}"
        for author in authors
    )


def _entry(kind: str, key: str, fields: Mapping[str, Any]) -> str:
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value is not None]
    return "\n".join([f"@{kind}{{{key},", *lines, "}"])
