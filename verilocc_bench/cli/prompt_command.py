"""`verilocc-bench prompt`: what a language model would be shown."""

from __future__ import annotations

import argparse
import sys

from verilocc_bench.allocators import Request
from verilocc_bench.cli.instance import load_instance
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation import settings_kind
from verilocc_bench.model.allocator import advised, first_format
from verilocc_bench.model.reading.reading_allocator import first_conversation
from verilocc_bench.model.shipped import is_shipped
from verilocc_bench.settings.command_line import check_flags, read_settings
from verilocc_bench.settings.language_model import LanguageModelSettings, LocalModelSettings
from verilocc_bench.settings.prompt_formats import AUTO


def run(options: argparse.Namespace) -> int:
    """Prints the first prompt; how long it is goes to standard error."""
    kind = LocalModelSettings if options.model is None else settings_kind(options.model)
    if not issubclass(kind, LanguageModelSettings):
        raise InputError(f"{options.model!r} is not a language model: it is shown no prompt")
    check_flags(options, [options.model or "a prompt"], [kind])
    settings = read_settings(options, kind)
    if settings.prompt_format == AUTO:
        raise InputError(f"--prompt-format {AUTO} looks at all kernels of evaluate: name a format")
    if settings.few_shot:
        raise InputError("--few-shot is for evaluate, which has a dataset to take examples from")
    problem = load_instance(options)
    if options.model is not None and is_shipped(options.model):
        assert isinstance(settings, LocalModelSettings)
        print(first_conversation(options.model, Request(problem), settings))
        return 0
    words, read = first_format(settings.prompt_format), None
    if options.model is not None and isinstance(settings, LocalModelSettings):
        from verilocc_bench.model.transformers_model import load_codec

        read = load_codec(options.model, settings)
        words, settings = advised(settings, read[2])
    ask = next(words.episode(Request(problem), settings))
    text = "\n\n".join(f"[{message.role}]\n{message.content}" for message in ask.messages)
    count = "no tokenizer here" if options.model else "no tokenizer without --model"
    if read is not None:
        codec, context, _ = read
        text = codec.text(ask.messages)
        room = "" if context is None else f" of the model's {context:,}"
        count = f"{len(codec.prompt(ask.messages)):,} tokens{room}"
    print(text)
    more = ", the first of its prompts" if words.has_windows else ""
    print(f"{words.name}{more}: {len(text):,} characters, {count}", file=sys.stderr)
    return 0
