"""What identifies the prompt format `text-notes`, for networks that are trained for it alone."""

from __future__ import annotations

from pathlib import Path

from verilocc_bench.allocators import Assistance, PromptIdentity
from verilocc_bench.files import files_hash

NAME = "text-notes"

MODEL_TYPE = "verilocc_text_notes"
"""What config.json has."""

VERSION = 2
"""Is raised with every change of the words, or of what the program reads and feeds."""

ASSISTANCE = Assistance.INTERVALS

PROGRAM = (
    "dry_window.py",
    "free_blocks.py",
    "lane_lives.py",
    "mentions.py",
    "notes_ledger.py",
    "notes_reading.py",
    "notes_window.py",
    "notes_words.py",
    "reading_order.py",
    "talk.py",
)
"""The files of this folder that decide what is shown and fed."""


def notes_prompt() -> PromptIdentity:
    """What identifies the prompts, for results."""
    here = Path(__file__).parent
    return PromptIdentity(NAME, VERSION, files_hash(here, map(here.joinpath, PROGRAM)), 0)
