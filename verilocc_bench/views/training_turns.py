"""Training turns: prompts with the answers to learn, as the evaluation harness has them.

The completion of a turn is cut into *pieces*: the text that the model must write, the
names that it chooses, and the text that ends a name. Constrained decoding encodes piece
by piece. A model trained on other cuts would be asked for tokens that it has not seen
(see model.transformers_model.token_codec).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.model.language_model import Message
from verilocc_bench.model.prompts import PromptFormat
from verilocc_bench.model.prompts.conversation import messages


@dataclass(frozen=True, slots=True)
class TrainingTurn:
    """A conversation that ends with a prompt, and the completion in pieces."""

    messages: tuple[Message, ...]
    pieces: tuple[str, ...]

    @property
    def completion(self) -> str:
        """The text of the completion."""
        return "".join(self.pieces)


def training_turns(
    style: PromptFormat,
    problem: AllocationProblem,
    answer: Mapping[str, str],
    new_registers: int | None = None,
) -> Iterator[TrainingTurn]:
    """The turns of a function with their answers; see PromptFormat.demonstrations."""
    for turn in style.demonstrations(problem, answer, new_registers=new_registers):
        asked = messages(style.system, (), turn.prompt)
        yield TrainingTurn(asked, style.pieces(turn.completion))
