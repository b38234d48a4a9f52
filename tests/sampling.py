"""Which of many cases of one kind `make test` takes."""

from __future__ import annotations

from collections.abc import Iterable

import pytest


def some_of(cases: Iterable[object], one_in: int = 3) -> list[object]:
    """The cases as parameters of a test; only every `one_in`th of them is for `make test`.

    The others have the mark `exhaustive`: `make test-exhaustive` takes them.
    """
    return [
        case if number % one_in == 0 else pytest.param(case, marks=pytest.mark.exhaustive)
        for number, case in enumerate(cases)
    ]
