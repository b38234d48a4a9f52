"""The registry of prompt formats, and what else names them."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from verilocc_bench.model.prompts import PROMPT_FORMATS, PromptFormat, get_prompt_format
from verilocc_bench.settings.command_line import add_settings

DOCUMENTS = Path(__file__).parents[2] / "docs"


def test_every_format_is_known_by_its_name() -> None:
    for name, prompt_format in PROMPT_FORMATS.items():
        found: PromptFormat = get_prompt_format(name)
        assert found is prompt_format
        assert found.name == name
        assert f"`{name}`" in found.description


def test_help_and_documentation_name_every_format() -> None:
    parser = argparse.ArgumentParser()
    add_settings(parser)
    assert "--prompt-format " + "|".join(PROMPT_FORMATS) in " ".join(parser.format_help().split())
    words = re.findall(r"`([\w-]+)`", (DOCUMENTS / "prompt-formats.md").read_text())
    assert set(PROMPT_FORMATS) <= set(words)
