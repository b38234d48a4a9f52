"""Packs a submission for sending: examines it, compresses its answers, and gives it a path."""

from __future__ import annotations

import gzip
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from leaderboard.examining import examine
from leaderboard.folder import ANSWERS, SUBMISSION
from leaderboard.shown_text import slug_of
from verilocc_bench.errors import InputError
from verilocc_bench.files import opened_to_write, write_atomically

ROOT = "submissions"
README = "README.md"
LEVEL = 9


@dataclass(frozen=True, slots=True)
class Package:
    """A folder with a submission as it is sent, and its path in the repository."""

    folder: Path
    path: str
    name: str

    @property
    def files(self) -> dict[str, Path]:
        """The files by their paths in the repository."""
        return {f"{self.path}/{each.name}": each for each in sorted(self.folder.iterdir())}


def path_of(name: str, board: str) -> str:
    """The path of a submission to a board: names that look the same get the same path."""
    return f"{ROOT}/{board}/{slug_of(name) or 'unnamed'}"


@contextmanager
def packed(folder: Path, dataset: str | None, revision: str | None) -> Iterator[Package]:
    """The package of a submission, in a folder that is deleted when the context ends.

    Raises InputError, with all reasons, for a submission that would be refused.
    """
    if not folder.is_dir():
        raise InputError("expected the folder of a submission", source=folder)
    with tempfile.TemporaryDirectory(prefix="verilocc-bench-") as temporary:
        work, target = Path(temporary, "work"), Path(temporary, "package")
        work.mkdir()
        target.mkdir()
        found = examine(folder, work, dataset, revision)
        found.check(folder)
        assert found.submission is not None
        assert found.board is not None
        assert found.answers is not None
        for name in (SUBMISSION, README):
            if (folder / name).is_file():
                write_atomically(target / name, (folder / name).read_bytes())
        with (
            found.answers.path.open("rb") as answers,
            opened_to_write(target / ANSWERS[1]) as file,
            gzip.GzipFile("", "wb", LEVEL, file, mtime=0) as stream,
        ):
            shutil.copyfileobj(answers, stream, 1 << 20)
        path = path_of(found.submission.name, found.board.name)
        yield Package(target, path, found.submission.name)
