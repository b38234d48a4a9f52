"""Prompt formats: how a function is put before a language model, and its words read."""

from verilocc_bench.model.prompts.prompt_format import PromptFormat
from verilocc_bench.model.prompts.registry import get_prompt_format

__all__ = ["PromptFormat", "get_prompt_format"]
