"""What options of the command line may say."""

from __future__ import annotations

import argparse
from typing import Any

__all__ = ["budget", "names", "natural", "numbers", "positive", "threads"]

MAX_THREADS = 1024
"""The largest work-group size of every target so far."""


def natural(text: str) -> int:
    """A number from 0."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 12):
        raise argparse.ArgumentTypeError(f"expected a number, not {text[:40]!r}")
    return int(text)


def positive(text: str) -> int:
    """A number from 1."""
    value = natural(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected a positive number, not {text[:40]!r}")
    return value


def budget(text: str) -> Any:
    """Which registers a kernel is asked with."""
    from verilocc_bench.dataset.tight_budgets import BudgetChoice

    try:
        return BudgetChoice(text)
    except ValueError:
        choices = ", ".join(BudgetChoice)
        raise argparse.ArgumentTypeError(f"expected {choices}, not {text[:40]!r}") from None


def threads(text: str) -> int:
    """Threads of a work-group."""
    value = positive(text)
    if value > MAX_THREADS:
        raise argparse.ArgumentTypeError(f"expected at most {MAX_THREADS}, not {text[:40]!r}")
    return value


def names(text: str) -> tuple[str, ...]:
    """Names with commas between them, each once."""
    found = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not found:
        raise argparse.ArgumentTypeError("expected names with commas between them")
    return found


def numbers(text: str) -> tuple[int, ...]:
    """Numbers from 1 with commas between them, in order."""
    return tuple(sorted({positive(part.strip()) for part in text.split(",")}))
