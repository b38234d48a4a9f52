"""Which prompt formats fit a model's context."""

from __future__ import annotations

from collections.abc import Sequence

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.errors import InputError
from verilocc_bench.model.language_model import LanguageModel, Message
from verilocc_bench.model.prompts import get_prompt_format
from verilocc_bench.model.prompts.conversation import messages
from verilocc_bench.settings.language_model import LanguageModelSettings
from verilocc_bench.settings.prompt_formats import AUTO, PROMPT_FORMATS

LIKELY_NAME = "v100"
"""In place of each register of an answer, whose tokens are counted before there is one."""


class Fitting:
    """Counts prompts, without examples, and their answers in the model's tokens."""

    def __init__(self, model: LanguageModel, settings: LanguageModelSettings) -> None:
        self._model, self._settings = model, settings
        self._known: dict[tuple[str, str], bool] = {}

    def widest(self, problems: Sequence[AllocationProblem]) -> str:
        """The first format that fits all problems. Raises InputError without one."""
        if self._settings.few_shot:
            raise InputError(f"--prompt-format {AUTO} counts no examples: name a format")
        if self._model.context is None:
            raise InputError(
                f"--prompt-format {AUTO}: the model's context is not known here: name a format"
            )
        for name in PROMPT_FORMATS:
            if all(self.fits(name, problem) for problem in problems):
                return name
        raise InputError(f"no prompt format fits all kernels into {self._model.context:,} tokens")

    def fits(self, name: str, problem: AllocationProblem) -> bool:
        """True if every prompt of a format fits the model's context, its answer with it."""
        key = (name, problem.id)
        if key not in self._known:
            words, count = get_prompt_format(name), self._model.count_tokens
            registers = range(len(problem.function.virtual_registers))
            answer = {f"%{number}": LIKELY_NAME for number in registers}
            turns = words.demonstrations(
                problem, answer, new_registers=self._settings.window_registers
            )
            self._known[key] = all(
                count(messages(words.system, (), turn.prompt, self._settings.system))
                + count((Message("assistant", turn.completion),))
                <= (self._model.context or 0)
                for turn in turns
            )
        return self._known[key]

    def advice(self, name: str, problem: AllocationProblem) -> str:
        """Which format would fit where this one does not."""
        narrower = PROMPT_FORMATS[PROMPT_FORMATS.index(name) + 1 :]
        if not narrower:
            return "no format has shorter prompts, but --window-registers makes them shorter"
        if self._model.context is None:
            return f"prompts of {' or '.join(narrower)} are shorter"
        fitting = [each for each in narrower if self.fits(each, problem)]
        return f"--prompt-format {fitting[0]} fits" if fitting else "no format fits"
