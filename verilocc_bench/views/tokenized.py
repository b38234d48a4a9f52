"""Rows as token ids for causal language models.

The ids of a prompt are those that the evaluation harness feeds to a model with the
same tokenizer. The ids of a completion are those that the model may write under
constrained decoding. The harness's own codec makes both
(model.transformers_model.token_codec). Nothing here needs torch; the tokenizer is one
that transformers loaded.

Cost: mostly the prompts, each made and encoded on demand. On one core an example of a
kernel of 490 instructions takes 20 ms in `window` and 475 ms in `whole`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from typing import Any

from verilocc_bench import __version__
from verilocc_bench.errors import InputError
from verilocc_bench.model.prompts import get_prompt_format
from verilocc_bench.model.transformers_model.token_codec import TokenCodec
from verilocc_bench.views.example import IGNORED, TokenizedExample, TokenizedOptions
from verilocc_bench.views.packing import PackedBlock, pack
from verilocc_bench.views.training_turns import TrainingTurn, training_turns
from verilocc_bench.views.view_report import ExampleOutcome, ViewReport
from verilocc_bench.views.view_rows import AnyRow, parse_label, problem_of

OUTCOMES = "outcomes"
"""The column of a batch's counts, in the order of ExampleOutcome."""

Item = TokenizedExample | PackedBlock


class TokenizedView:
    """Makes examples of rows; `report` counts their outcomes in this process.

    `examples(rows)` is a generator over rows of any kind. The object itself is a
    function of batches, for `datasets.Dataset.map(view, batched=True, remove_columns=…)`. It is
    deterministic, and its pickle has no caches and counts, so the fingerprints of
    `datasets` are equal in every process. Raises InputError if the tokenizer cannot
    satisfy the options.
    """

    def __init__(self, tokenizer: Any, options: TokenizedOptions | None = None) -> None:
        self.tokenizer = tokenizer
        self.options = TokenizedOptions() if options is None else options
        self.report = ViewReport()
        end = getattr(tokenizer, "eos_token_id", None)
        self._end = None if end is None else int(end)
        self._style = get_prompt_format(self.options.prompt_format)
        self._label = parse_label(self.options.label)
        self._codec  # noqa: B018  a chat template that is not there is an error now

    @cached_property
    def _codec(self) -> TokenCodec:
        ends = frozenset(() if self._end is None else (self._end,))
        return TokenCodec(self.tokenizer, ends, self.options.chat, "the tokenizer")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a row must have."""
        return tuple(dict.fromkeys(("normalized", *self._label.columns)))

    @property
    def output_columns(self) -> tuple[str, ...]:
        """The columns of an example, or of a block if examples are packed."""
        item = TokenizedExample if self.options.block_tokens is None else PackedBlock
        return tuple(field.name for field in fields(item))

    def examples(self, rows: Iterable[AnyRow]) -> Iterator[Item]:
        """The examples, or blocks, of rows in order, row by row.

        Raises InputError for an invalid row.
        """
        found = (example for row in rows for example in self._examples(row))
        if self.options.block_tokens is None:
            yield from found
        else:
            yield from pack(found, self.options.block_tokens, self._padding)

    def __call__(self, batch: Mapping[str, Sequence[Any]]) -> dict[str, list[list[int]]]:
        """The examples of a batch of rows, by column.

        A last example without tokens has the counts of the batch in the column
        `outcomes`, so the counts survive caches and other processes.
        """
        size = len(next(iter(batch.values()), ()))
        rows = [{name: values[n] for name, values in batch.items()} for n in range(size)]
        before = Counter(self.report.counts)
        items = list(self.examples(rows))
        counts = [count - before[outcome] for outcome, count in self.report.counts.items()]
        columns = {name: [getattr(i, name) for i in items] + [[]] for name in self.output_columns}
        return {**columns, OUTCOMES: [*([] for _ in items), counts]}

    def __getstate__(self) -> dict[str, Any]:
        # The version and the hash change the fingerprint whenever prompts may change.
        made_by = [__version__, self._style.version, self._style.source_hash]
        return {"tokenizer": self.tokenizer, "options": self.options, "made_by": made_by}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__init__(state["tokenizer"], state["options"])  # type: ignore[misc]

    @property
    def _padding(self) -> int:
        padding = getattr(self.tokenizer, "pad_token_id", None)
        return int(padding) if padding is not None else self._end or 0

    def _examples(self, row: AnyRow) -> Iterator[TokenizedExample]:
        answer = self._label.answer(row)
        if answer is None:
            self.report.count(ExampleOutcome.NO_LABEL)
            return
        problem = problem_of(row)
        for turn in training_turns(self._style, problem, answer):
            example, limit = self._example(turn), self.options.limit
            if limit is None or len(example.input_ids) <= limit:
                self.report.count(ExampleOutcome.WHOLE)
                yield example
            else:
                self.report.count(ExampleOutcome.TOO_LONG)

    def _example(self, turn: TrainingTurn) -> TokenizedExample:
        prompt = self._codec.prompt(turn.messages)
        if self._end is None:
            message = "the tokenizer has no end token, with which a model would end its answer"
            raise InputError(message)
        completion = [token for piece in turn.pieces for token in self._codec.piece(piece)]
        completion.append(self._end)
        tokens = prompt + completion
        learnt = [IGNORED] * len(prompt) if self.options.mask_prompt else prompt
        return TokenizedExample(tokens, [1] * len(tokens), learnt + completion)
