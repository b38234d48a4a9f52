"""What an episode has asked so far, and the responses it can end with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from verilocc_bench.allocators import FailureKind, Response
from verilocc_bench.edits import Answer
from verilocc_bench.model.language_model import Completion, DeadEnd, Finish, known_sum
from verilocc_bench.model.prompts.finding import find_object
from verilocc_bench.model.prompts.reading import Unparsable, read_object
from verilocc_bench.settings.language_model import Extraction

DIGITS = 6
"""Sums of logarithms are rounded: their last digits depend on the order of adding."""


class NoPlace(DeadEnd):
    """A virtual register has no legal base left."""

    def __init__(self, register: int, class_name: str, placed: int, registers: int) -> None:
        self.register = f"%{register}"
        self.class_name, self.placed, self.registers = class_name, placed, registers
        super().__init__(
            f"{self.register} of class {class_name} fits nowhere, {placed} of {registers} placed"
        )

    def to_json(self) -> dict[str, Any]:
        """The place of the dead end, as details have it."""
        return {
            "register": self.register,
            "class": self.class_name,
            "placed": self.placed,
            "registers": self.registers,
        }


@dataclass(slots=True)
class EpisodeRecord:
    """Adds up completions; `more` are further details of the sample.

    `log_probability` is the sum over all tokens said. It and the counts of tokens are None as
    soon as one completion does not tell.
    """

    prompt_tokens: int | None = 0
    completion_tokens: int | None = 0
    log_probability: float | None = 0.0
    more: dict[str, Any] = field(default_factory=dict)

    def add(self, completion: Completion) -> None:
        """Counts a completion; a prompt that does not fit was not read, and costs nothing."""
        if completion.finish is not Finish.CONTEXT:
            self.prompt_tokens = known_sum((self.prompt_tokens, completion.prompt_tokens))
        self.completion_tokens = known_sum((self.completion_tokens, completion.completion_tokens))
        said = completion.text or completion.completion_tokens
        if said and not completion.log_probabilities:
            self.log_probability = None
        if self.log_probability is not None:
            self.log_probability += sum(completion.log_probabilities)

    def read(
        self, completion: Completion, extraction: Extraction | None
    ) -> dict[str, str] | Unparsable:
        """The object in a completion; counts if all so far can be read, and by the strict rule."""
        strict = read_object(completion)
        readable = not isinstance(strict, Unparsable)
        found = strict
        if not readable and extraction != Extraction.STRICT:
            found = find_object(completion)
        read = not isinstance(found, Unparsable)
        for name, each in (("read", read), ("read_strictly", readable)):
            self.more[name] = self.more.get(name, True) and each
        return found

    def details(self, **more: Any) -> dict[str, Any]:
        """The figures of the sample, by name."""
        total = self.log_probability
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "log_probability": None if total is None else round(total, DIGITS) + 0.0,
            **self.more,
            **more,
        }

    def answered(self, answer: Mapping[str, str]) -> Response:
        """The response with an answer to judge."""
        return Response(Answer(dict(answer)), details=self.details())

    def unparsable(self, wrong: Unparsable) -> Response:
        """The response to words that cannot be read; `stopped_at` is the last one's character."""
        details = self.details(unparsable=wrong.reason.value)
        if wrong.place is not None:
            details["stopped_at"] = str(wrong.place)
        return Response(None, FailureKind.UNPARSABLE, wrong.message, details=details)

    def dead_end(self, place: DeadEnd | None, message: str | None = None) -> Response:
        """The response where no legal register is left."""
        details = self.details()
        if isinstance(place, NoPlace):
            details["dead_end"] = place.to_json()
        text = f"dead end: {place or message or 'nothing may be said'}"
        return Response(None, FailureKind.NO_ANSWER, text, details=details)

    def failed(self, completion: Completion, place: DeadEnd | None) -> Response | None:
        """The response to a completion in which the model could not answer; None if it could."""
        if completion.finish is Finish.CONTEXT:
            details = self.details(unfit_prompt_tokens=completion.prompt_tokens)
            message = f"the prompt does not fit: {completion.message}"
            return Response(None, FailureKind.NO_ANSWER, message, details=details)
        if completion.finish is Finish.DEAD_END:
            return self.dead_end(place, completion.message)
        return None
