"""Opcodes as numbers, the same for all graphs that one model sees."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from verilocc_bench.errors import InputError
from verilocc_bench.files import read_json, write_atomically
from verilocc_bench.ir import Function
from verilocc_bench.views.view_rows import AnyRow, problem_of

UNKNOWN = 0
"""The id of an opcode that is not in the vocabulary."""

FORMAT = "verilocc-bench opcodes 1"


@dataclass(frozen=True)
class OpcodeVocabulary:
    """The ids of opcodes: `opcodes[n]` has the id n + 1. The opcodes are sorted and distinct."""

    opcodes: tuple[str, ...]

    @classmethod
    def build(cls, rows: Iterable[AnyRow]) -> OpcodeVocabulary:
        """The vocabulary of all rows. For a fair test pass the rows of the split `train`."""
        return cls.of_functions(problem_of(row).function for row in rows)

    @classmethod
    def of_functions(cls, functions: Iterable[Function]) -> OpcodeVocabulary:
        """The vocabulary of these functions."""
        found = {
            instruction.opcode
            for function in functions
            for _, _, instruction in function.instructions()
        }
        return cls(tuple(sorted(found)))

    @classmethod
    def load(cls, path: Path) -> OpcodeVocabulary:
        """The vocabulary in a file that `save` wrote. Raises InputError for any other file."""
        document = read_json(path)
        opcodes = document.get("opcodes") if isinstance(document, dict) else None
        if not isinstance(opcodes, list) or document.get("format") != FORMAT:
            raise InputError(
                f'expected {{"format": "{FORMAT}", "opcodes": [...]}}, as OpcodeVocabulary.save '
                "writes it",
                source=path,
            )
        if not all(isinstance(opcode, str) for opcode in opcodes):
            raise InputError("expected strings as 'opcodes'", source=path)
        if opcodes != sorted(set(opcodes)):
            raise InputError("expected sorted 'opcodes', each once", source=path)
        return cls(tuple(opcodes))

    def save(self, path: str | Path) -> None:
        """Writes the vocabulary as JSON: the same bytes for the same opcodes."""
        document = {"format": FORMAT, "opcodes": list(self.opcodes)}
        write_atomically(Path(path), json.dumps(document, indent=1) + "\n")

    @property
    def size(self) -> int:
        """The number of ids, including the id of unknown opcodes."""
        return len(self.opcodes) + 1

    def id_of(self, opcode: str) -> int:
        """The id of an opcode; 0 for one that is not known."""
        return self._ids.get(opcode, UNKNOWN)

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {opcode: number for number, opcode in enumerate(self.opcodes, 1)}

    def __getstate__(self) -> dict[str, tuple[str, ...]]:
        return {"opcodes": self.opcodes}
