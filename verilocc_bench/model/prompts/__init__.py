"""Prompt formats: how a function is put before a language model, and its words read."""

from verilocc_bench.model.prompts.prompt_format import PromptFormat
from verilocc_bench.model.prompts.registry import (
    DEFAULT_PROMPT_FORMAT,
    PROMPT_FORMATS,
    get_prompt_format,
)

__all__ = ["DEFAULT_PROMPT_FORMAT", "PROMPT_FORMATS", "PromptFormat", "get_prompt_format"]
