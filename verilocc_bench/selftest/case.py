"""A case of the self-test: one answer for one function."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from verilocc_bench.edits import Edits, edits_to_json
from verilocc_bench.ir import Function, print_function


@dataclass(frozen=True, slots=True)
class Case:
    """A function with an answer; `edits` is None on the assign track."""

    function: Function
    assignment: Mapping[str, str]
    edits: Edits | None = None

    def answer_json(self) -> dict[str, Any]:
        """The answer as an answer file has it."""
        document: dict[str, Any] = {"assignment": dict(self.assignment)}
        if self.edits is not None:
            document["edits"] = edits_to_json(self.edits)
        return document

    def __str__(self) -> str:
        return print_function(self.function) + json.dumps(self.answer_json())
