"""The prompt format `text-notes`, for networks that are trained for it alone."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from verilocc_bench.allocators import Assistance
from verilocc_bench.files import files_hash

MODEL_TYPE = "verilocc_text_notes"
"""What config.json has."""

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


class NotesFormat:
    """What identifies the format.

    `version` is raised with every change of the words, or of what the program reads and feeds.
    """

    name: ClassVar[str] = "text-notes"
    version: ClassVar[int] = 2
    assistance: ClassVar[Assistance] = Assistance.INTERVALS

    @property
    def source_hash(self) -> str:
        """The SHA-256, in hex, of the code that makes the prompts."""
        here = Path(__file__).parent
        return files_hash(here, map(here.joinpath, PROGRAM))


FORMAT = NotesFormat()
