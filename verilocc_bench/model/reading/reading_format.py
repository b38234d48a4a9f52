"""The prompt format `reading`, for models that are trained for it alone."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from verilocc_bench.allocators import Assistance
from verilocc_bench.files import files_hash

PROGRAM = ("conversation.py", "cut.py", "talk.py")
"""The files of this folder that decide what is shown, and where an answer ends."""


class ReadingFormat:
    """What identifies the format; `version` is raised with every change that a model could see."""

    name: ClassVar[str] = "reading"
    version: ClassVar[int] = 1
    assistance: ClassVar[Assistance] = Assistance.TEXT

    @property
    def source_hash(self) -> str:
        """The SHA-256, in hex, of the code that makes the prompts."""
        here = Path(__file__).parent
        return files_hash(here, map(here.joinpath, PROGRAM))


FORMAT = ReadingFormat()
