"""The names of judges: one registry, old names only where one reads."""

from __future__ import annotations

import argparse

import pytest

from verilocc_bench.cli import build_parser
from verilocc_bench.settings.judges import JUDGES, JUDGES_OF_EDITS, MACHINE_CODE, judge_named
from verilocc_bench.verification import judges as judges_module


def test_every_judge_of_the_registry_can_be_asked() -> None:
    assert tuple(judges_module._REGISTRY) == JUDGES
    assert set(JUDGES_OF_EDITS) < set(JUDGES)


@pytest.mark.parametrize("name", [*JUDGES, MACHINE_CODE, "all", "executor", "execution"])
def test_the_command_line_takes_names_and_gives_the_present_ones(name: str) -> None:
    options: argparse.Namespace = build_parser().parse_args(["verify", "x", "y", "--judge", name])
    old = {"executor": "value-walk", "execution": "machine-code"}
    assert options.judge == judge_named(name) == old.get(name, name)
