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
from verilocc_bench.model.prompts import PromptFormat, get_prompt_format
from verilocc_bench.model.prompts.conversation import Turn, messages


@dataclass(frozen=True, slots=True)
class TrainingTurn:
    """A conversation that ends with a prompt, and the completion in pieces."""

    messages: tuple[Message, ...]
    pieces: tuple[str, ...]

    @property
    def completion(self) -> str:
        """The text of the completion."""
        return "".join(self.pieces)


@dataclass(frozen=True, slots=True)
class TrainingFormat:
    """A prompt format for training."""

    style: PromptFormat

    def turns(
        self,
        problem: AllocationProblem,
        answer: Mapping[str, str],
        new_registers: int | None = None,
    ) -> Iterator[TrainingTurn]:
        """The turns of a function with their answers; see PromptFormat.demonstrations."""
        return map(
            self.turn, self.style.demonstrations(problem, answer, new_registers=new_registers)
        )

    def turn(self, turn: Turn) -> TrainingTurn:
        """A turn of this format with its system message, and its completion cut into pieces."""
        asked = messages(self.style.system, (), turn.prompt)
        return TrainingTurn(asked, self.style.pieces(turn.completion))


def get_training_format(name: str) -> TrainingFormat:
    """The prompt format of that name. Raises InputError for an unknown name."""
    return TrainingFormat(get_prompt_format(name))
