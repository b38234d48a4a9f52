"""Prompts with register numbers moved alike."""

from __future__ import annotations

import json
import re
from random import Random

import pytest

from verilocc_bench.dataset import load_rows
from verilocc_bench.model.prompts.candidates import CANDIDATES
from verilocc_bench.model.prompts.conversation import Turn
from verilocc_bench.model.prompts.decisions import DecisionFormat
from verilocc_bench.model.prompts.state import STATE
from verilocc_bench.targets import get_target
from verilocc_bench.training.shifting import STEP, shifted
from verilocc_bench.views.rows import problem_of

NAME = re.compile(r"\b(?:v|a|s|R|UR|P|UP)(\d+)")
BEGIN = re.compile(r"(?<!\.\.)" + NAME.pattern)
"""Of a base, or of the first of a run: the last of one may stop at the end of the file."""


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "sm_80"])
@pytest.mark.parametrize("style", [STATE, CANDIDATES])
def test_registers_move_alike_and_nothing_else_does(arch: str, style: DecisionFormat) -> None:
    row = min(
        (row for row in load_rows("mini").rows if row.arch == arch),
        key=lambda row: row.n_virtual_registers,
    )
    problem, target = problem_of(row), get_target(arch)
    counts = {file.name: file.count for file in target.files}
    generator, distances = Random(0), set()
    turns = list(style.demonstrations(problem, json.loads(row.assignment)))
    for turn in turns:
        moved = shifted(turn, target, generator)
        if style is CANDIDATES:
            assert NAME.sub("", moved.prompt) == NAME.sub("", turn.prompt)
        for name in NAME.finditer(_offers(moved)):
            assert int(name[1]) < counts[name[0].rstrip("0123456789")]
        pairs = zip(
            BEGIN.finditer(f"{_offers(turn)} {turn.completion}"),
            BEGIN.finditer(f"{_offers(moved)} {moved.completion}"),
            strict=True,
        )
        by_file: dict[str, set[int]] = {}
        for before, after in pairs:
            file = before[0].rstrip("0123456789")
            assert file == after[0].rstrip("0123456789")
            assert 0 <= int(after[1]) < counts[file]
            by_file.setdefault(file, set()).add(int(after[1]) - int(before[1]))
        assert all(len(each) == 1 for each in by_file.values())
        distances |= set().union(*by_file.values())
    assert all(distance % STEP == 0 for distance in distances)
    assert len(distances) > 3


def _offers(turn: Turn) -> str:
    """A prompt without its first line, which names classes."""
    return turn.prompt.partition("\n")[2]


def test_runs_end_at_the_last_legal_base() -> None:
    turn = Turn("%0 V2 2 v/2 lives 3 spare 7\nlanes 0-1: v4..v8 v200..v254\n", "v4")
    target = get_target("gfx942")
    found = [shifted(turn, target, Random(seed)) for seed in range(200)]
    runs = {each.prompt.partition("lanes 0-1: ")[2].strip() for each in found}
    assert runs == {
        "v4..v8 v200..v254",
        "v20..v24 v216..v254",
        "v36..v40 v232..v254",
        "v52..v56 v248..v254",
    }
    assert {each.completion for each in found} == {"v4", "v20", "v36", "v52"}


def test_a_tuple_stays_in_the_file() -> None:
    turn = Turn("%0 V8 8 v/2 lives 3 spare 7\nlanes 0-7: v4..v6 v236..v248\n", "v236")
    found = {shifted(turn, get_target("gfx942"), Random(seed)).completion for seed in range(99)}
    assert found == {"v236"}  # 16 further it would end at v259
