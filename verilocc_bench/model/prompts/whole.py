"""`whole`: the function's text, and one object with every virtual register."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from verilocc_bench.allocators import Assistance, Request
from verilocc_bench.allocators.register_state import RegisterState
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.model.language_model import Ask, Episode, Message
from verilocc_bench.model.prompts.conversation import (
    ObjectConstraint,
    Turn,
    example_turns,
    messages,
    object_tokens,
    print_object,
)
from verilocc_bench.model.prompts.episode_record import EpisodeRecord
from verilocc_bench.model.prompts.feedback import assignment_of, feedback_text, latest_attempt
from verilocc_bench.model.prompts.prompt_format import PromptFormat
from verilocc_bench.model.prompts.reading import Unparsable
from verilocc_bench.settings.allocator import Decoding
from verilocc_bench.settings.language_model import LanguageModelSettings

SYSTEM = """\
You allocate registers for a GPU kernel. Give every virtual register (%0, %1, …) of the function \
a base register, so that no value is destroyed before its last use.
- A class line has a name, a width and the legal bases: "class V2 2 v/2" is two registers wide \
and starts at v0, v2, v4, …. The first class is that of the registers that name none.
- A register of width w at base v4 takes v4 to v(4+w-1). Stay within the counts of the line \
"registers", and off the reserved registers.
- Two virtual registers may share a register where neither is written while the other holds a \
value that is still to be read. The physical registers that the function names hold values too.
- An operand marked ~0 must be in the same register as definition 0 of its instruction; one \
marked & is written before the instruction reads.
Answer with one JSON object and nothing else, such as {"%0": "v4", "%1": "v6"}."""

DESCRIPTION = (
    "`whole`: the function's text in one prompt, and the whole assignment in one answer. "
    "Nothing is worked out for the model."
)

EXAMPLE_CHARACTERS = 24_000
"""A function with a longer text is not shown as an example."""

FINDINGS_SHOWN = 16


class WholeFormat(PromptFormat):
    """The model sees the text alone, and answers once."""

    name: ClassVar[str] = "whole"
    version: ClassVar[int] = 1
    assistance: ClassVar[Assistance] = Assistance.TEXT
    description: ClassVar[str] = DESCRIPTION
    system: ClassVar[str] = SYSTEM

    def demonstrations(
        self,
        problem: AllocationProblem,
        answer: Mapping[str, str],
        *,
        new_registers: int | None = None,  # noqa: ARG002  and no window
    ) -> Iterator[Turn]:
        """The one prompt of a function, and the completion that is the answer."""
        registers = range(len(problem.function.virtual_registers))
        yield Turn(_prompt(problem), print_object(answer, registers))

    def episode(self, request: Request, settings: LanguageModelSettings) -> Episode:
        """See PromptFormat."""
        record, problem = EpisodeRecord(), request.problem
        registers = range(len(problem.function.virtual_registers))
        constraint = None
        if settings.decoding is Decoding.CONSTRAINED:
            constraint = ObjectConstraint(RegisterState(problem), registers)
        conversation = self._conversation(request, settings, record)
        tokens = object_tokens(len(registers), settings)
        completion = yield Ask(conversation, tokens, constraint, settings.thinking_tokens or 0)
        record.add(completion)
        failed = record.failed(completion, constraint.stuck if constraint is not None else None)
        if failed is not None:
            return failed
        answer = record.read(completion, settings.extract)
        if isinstance(answer, Unparsable):
            return record.unparsable(answer)
        return record.answered(answer)

    def _conversation(
        self, request: Request, settings: LanguageModelSettings, record: EpisodeRecord
    ) -> tuple[Message, ...]:
        turns = example_turns(request, settings, self._example)
        if settings.few_shot:
            record.more["examples"] = len(turns)
        prompt = _prompt(request.problem)
        attempt = latest_attempt(request, settings)
        told = feedback_text(attempt, FINDINGS_SHOWN)
        former = None if attempt is None else assignment_of(attempt)
        if former is None or not told:
            return messages(self.system, turns, prompt + told, settings.system)
        registers = range(len(request.problem.function.virtual_registers))
        turns.append(Turn(prompt, print_object(former, registers)))
        return messages(
            self.system, turns, f"{told}Answer again, with the whole object.\n", settings.system
        )

    def _example(self, problem: AllocationProblem, answer: Mapping[str, str]) -> Iterator[Turn]:
        if len(problem.normalized) <= EXAMPLE_CHARACTERS:
            yield from self.demonstrations(problem, answer)


def _prompt(problem: AllocationProblem) -> str:
    count = len(problem.function.virtual_registers)
    which = f"%0 to %{count - 1}" if count > 1 else "%0" if count else "none"
    return f"{problem.normalized}Assign registers to {which}.\n"


FORMAT = WholeFormat()
