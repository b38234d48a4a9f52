"""Prompts with the answers to be learnt, as the evaluation harness would ask and read them.

A turn's completion is cut into *pieces*: what the model cannot but say, the
names that it chooses, and what ends a name. Constrained decoding encodes
piece by piece, so a model that has been trained on other cuts is asked for
tokens that it has not seen (see model.transformers_model.token_codec).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.errors import InputError
from verilocc_bench.model.language_model import Message
from verilocc_bench.model.prompts.candidates import CANDIDATES
from verilocc_bench.model.prompts.conversation import Turn, messages
from verilocc_bench.model.prompts.decisions import END, DecisionFormat
from verilocc_bench.model.prompts.state import STATE
from verilocc_bench.model.prompts.whole import SYSTEM as WHOLE_SYSTEM
from verilocc_bench.model.prompts.whole import WholeFormat
from verilocc_bench.model.prompts.window import SYSTEM as WINDOW_SYSTEM
from verilocc_bench.model.prompts.window import WindowFormat

__all__ = ["TrainingFormat", "TrainingTurn", "get_training_format"]


@dataclass(frozen=True, slots=True)
class TrainingTurn:
    """A conversation that ends with a prompt, and the completion in pieces.

    `ends` says whether the model ends it by itself, with its end token: an
    object is ended so, a name by its line break.
    """

    messages: tuple[Message, ...]
    pieces: tuple[str, ...]
    ends: bool

    @property
    def completion(self) -> str:
        """The text of the completion."""
        return "".join(self.pieces)


@dataclass(frozen=True, slots=True)
class TrainingFormat:
    """A prompt format, as training asks for it."""

    style: WholeFormat | WindowFormat | DecisionFormat
    system: str

    def turns(
        self,
        problem: AllocationProblem,
        answer: Mapping[str, str],
        every: int = 1,
        new_registers: int | None = None,
    ) -> Iterator[TrainingTurn]:
        """The turns of a function, all as answered.

        `every`: of the formats that ask for one register at a time about one
        decision of so many; the others have all their prompts. `new_registers`:
        of windows, if these are to be others than the ones that are asked about.
        """
        if isinstance(self.style, DecisionFormat):
            for turn in self.style.demonstrations(problem, answer, every):
                yield self.decision(turn)
        else:
            if new_registers is not None and isinstance(self.style, WindowFormat):
                turns = self.style.demonstrations(problem, answer, new_registers)
            else:
                turns = self.style.demonstrations(problem, answer)
            for turn in turns:
                yield TrainingTurn(self._asked(turn), _object_pieces(turn.completion), ends=True)

    def decision(self, turn: Turn) -> TrainingTurn:
        """A turn of a format that asks for one register at a time."""
        return TrainingTurn(self._asked(turn), (turn.completion, END), ends=False)

    def offers_all(self, every: int) -> bool:
        """Whether decisions that are missing among the turns were not offered."""
        return isinstance(self.style, DecisionFormat) and every == 1

    def _asked(self, turn: Turn) -> tuple[Message, ...]:
        return messages(self.system, (), turn.prompt)


def get_training_format(name: str) -> TrainingFormat:
    """The prompt format of that name. Raises InputError where there is none."""
    formats = {
        "whole": TrainingFormat(WholeFormat(), WHOLE_SYSTEM),
        "window": TrainingFormat(WindowFormat(), WINDOW_SYSTEM),
        "state": TrainingFormat(STATE, STATE.system),
        "candidates": TrainingFormat(CANDIDATES, CANDIDATES.system),
    }
    if name not in formats:
        raise InputError(f"unknown prompt format {name!r}; known: {', '.join(formats)}")
    return formats[name]


def _object_pieces(completion: str) -> tuple[str, ...]:
    """The pieces of an object, as model.prompts.conversation.ObjectConstraint has them."""
    pieces: list[str] = []
    lead = "{"
    for key, name in json.loads(completion).items():
        pieces += [f'{lead}"{key}": "', name, '"']
        lead = ", "
    pieces.append("}" if pieces else "{}")
    assert "".join(pieces) == completion
    return tuple(pieces)
