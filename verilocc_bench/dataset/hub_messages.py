"""Messages of the Hub and its client: removes secrets, and keeps libraries out of the log."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

HIDDEN = "…"
_LOOKS_SECRET = re.compile(
    r"\bhf_[A-Za-z0-9_]{4,}"  # a token
    r"|(?<=[Bb]earer )[^\s\"',;]+"
    r"|(?<=://)[^/@\s]+(?=@)"  # a name and a password in an address
)


def without_secrets(text: str) -> str:
    """A text without the token in use, without passwords, and without anything like a token.

    Servers echo headers, and libraries quote servers.
    """
    from huggingface_hub import get_token

    token = get_token()
    if token:
        text = text.replace(token, HIDDEN)
    return _LOOKS_SECRET.sub(HIDDEN, text)


@contextmanager
def quiet(*libraries: ModuleType) -> Iterator[None]:
    """Suppresses the log lines of libraries: errors say the same."""
    # Libraries set their levels at import, so they are imported before.
    loggers = [logging.getLogger(library.__name__) for library in libraries]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
