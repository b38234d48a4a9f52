"""Rules for text of strangers that pages show: it must look like what it is."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import urlsplit

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+()-]{0,59}", re.ASCII)
"""Names of submissions: plain characters, so that different names look different."""

UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
"""Categories of characters that are invisible, or that turn or break the text around them."""

BLANK = frozenset(
    "\u115f\u1160\u2800\u3164\uffa0\u034f\u17b4\u17b5\u180b\u180c\u180d\u180f"
    + "".join(map(chr, range(0xFE00, 0xFE10)))
    + "".join(map(chr, range(0xE0100, 0xE01F0)))
)
"""Letters, symbols and marks that look empty."""

_ALIKE = {"l": "i", "1": "i", "0": "o"}

STACKED = 2
"""The most marks on one letter."""

URL_LENGTH = 300
_HOST = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+", re.ASCII)


def slug_of(name: str) -> str:
    """A name in small letters, digits and hyphens: names that look the same get the same."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def looks_like(text: str, other: str) -> bool:
    """True if a reader may take one text for the other, which is ASCII.

    Only letters and digits are compared. One that is not ASCII may look like any other; at
    least half are equal. I, l and 1 look the same, and so do O and 0.
    """
    one, two = (
        [_ALIKE.get(c, c) for c in unicodedata.normalize("NFKD", each.casefold()) if c.isalnum()]
        for each in (text, other)
    )
    same = sum(map(str.__eq__, one, two))
    strange = sum(not each.isascii() for each in one)
    return len(one) == len(two) == same + strange and 2 * same >= len(two)


def text_problem(text: object, limit: int) -> str | None:
    """The fault of a text of one line; None if it is fine.

    Control and format characters (line breaks, marks that turn the direction
    of text, characters without width) can make it look like another.
    """
    if not isinstance(text, str):
        return f"expected text, not {_kind(text)} (quotes make text of it)"
    if not text.strip():
        return "expected some text"
    if len(text) > limit:
        return f"{len(text):,} characters, more than the {limit:,} accepted"
    for character in text:
        if unicodedata.category(character) in UNSEEN or character in BLANK:
            return f"the character U+{ord(character):04X} is not taken"
    if not any(character.isalnum() for character in text):
        return "expected a letter or digit"
    if _most_marks(text) > STACKED:
        return "more than two marks on one letter are not taken"
    if unicodedata.normalize("NFC", text) != text:
        return "expected normalized text (Unicode NFC)"
    return None


def url_problem(url: object) -> str | None:
    """The fault of a link; None if it is fine."""
    problem = text_problem(url, URL_LENGTH)
    if problem is not None:
        return problem
    assert isinstance(url, str)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "expected an address such as https://example.org/paper"
    plain = url.isascii() and not re.search(r"[\s\"'<>`\\^{}|]", url)
    if parts.scheme != "https" or not plain or host is None or not _HOST.fullmatch(host):
        return "expected an address such as https://example.org/paper"
    if parts.username is not None or parts.password is not None or port is not None:
        return "expected an address without a user or port"
    return None


def _most_marks(text: str) -> int:
    """The most marks in a row, after letters are separated from their marks."""
    most = marks = 0
    for character in unicodedata.normalize("NFD", text):
        marks = marks + 1 if unicodedata.category(character) in ("Mn", "Me") else 0
        most = max(most, marks)
    return most


def _kind(value: object) -> str:
    names = {
        "NoneType": "nothing",
        "bool": "true or false",
        "int": "a number",
        "float": "a number",
        "list": "a list",
        "dict": "a mapping",
        "date": "a date",
        "datetime": "a date",
    }
    return names.get(type(value).__name__, f"a {type(value).__name__}")
