"""Commands as a user gives them, run in this process."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from verilocc_bench.cli import main


def without_times(value: Any) -> Any:
    """A document without its times and dates."""
    if isinstance(value, dict):
        kept = [key for key in value if key != "date" and not key.endswith("_seconds")]
        return {key: without_times(value[key]) for key in kept}
    return [without_times(each) for each in value] if isinstance(value, list) else value


def answered(path: Path, assignment: object, **more: object) -> Path:
    """A file with an answer."""
    path.write_text(json.dumps({"assignment": assignment, **more}))
    return path


class Printed(NamedTuple):
    """What a command printed; `out` is bytes where bytes are captured."""

    out: Any
    err: str


class CommandLine:
    """Runs `verilocc-bench` with some first words, and asserts its exit status."""

    def __init__(self, capsys: pytest.CaptureFixture[Any], *first: object) -> None:
        self._capsys, self._first = capsys, first

    def of(self, *first: object) -> CommandLine:
        """With further first words."""
        return CommandLine(self._capsys, *self._first, *first)

    def __call__(self, *words: object, status: int = 0) -> Printed:
        """What was printed before is dropped."""
        self._capsys.readouterr()
        try:
            found = main([str(word) for word in (*self._first, *words)])
        except SystemExit as end:  # of the parser of arguments
            assert isinstance(end.code, int)  # noqa: PT017
            found = end.code
        out, err = self._capsys.readouterr()
        printed = Printed(out, err if isinstance(err, str) else err.decode())
        assert found == status, (found, *printed)
        return printed

    def json(self, *words: object, status: int = 0) -> Any:
        """The document that it prints."""
        return json.loads(self(*words, "--json", status=status).out)

    def refuses(self, words: Iterable[object], *said: object) -> str:
        """The one line that says why the command is unusable."""
        printed = self(*words, status=2)
        assert not printed.out
        assert printed.err.startswith("verilocc-bench"), printed.err
        assert printed.err.count("\n") == 1, printed.err
        for part in said:
            assert str(part) in printed.err
        return printed.err
