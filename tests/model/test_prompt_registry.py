"""The registry of prompt formats, and what else names them."""

from __future__ import annotations

import argparse
import re
from importlib import import_module
from pathlib import Path

import pytest

from verilocc_bench.errors import InputError
from verilocc_bench.model.prompts import get_prompt_format
from verilocc_bench.settings.command_line import add_settings
from verilocc_bench.settings.prompt_formats import FORMAT_RECORDS, PROMPT_FORMATS

DOCUMENTS = Path(__file__).parents[2] / "docs"


def test_every_format_is_known_by_its_name() -> None:
    for name, record in FORMAT_RECORDS.items():
        assert import_module(record.module).FORMAT.name == name
    for name in PROMPT_FORMATS:
        found = get_prompt_format(name)
        assert found.name == name
        assert f"`{name}`" in found.description
    with pytest.raises(InputError, match="for models that are trained for it alone"):
        get_prompt_format("reading")


def test_help_and_documentation_name_every_format() -> None:
    parser = argparse.ArgumentParser()
    add_settings(parser)
    assert "--prompt-format " + "|".join(PROMPT_FORMATS) in " ".join(parser.format_help().split())
    words = re.findall(r"`([\w-]+)`", (DOCUMENTS / "prompt-formats.md").read_text())
    assert set(FORMAT_RECORDS) <= set(words)
