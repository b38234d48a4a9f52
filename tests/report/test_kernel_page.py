"""What pictures and pages of one kernel show: where lanes lie, and what is wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import CommandLine, answered
from verilocc_bench.analysis import AllocationProblem, iterate_bits
from verilocc_bench.analysis.bank_conflicts import LOOP_WEIGHT, count_bank_conflicts
from verilocc_bench.dataset import load_rows
from verilocc_bench.report.kernel_page import kernel_page
from verilocc_bench.report.occupation import occupation_of

ROWS = sorted(load_rows("mini").rows, key=lambda row: row.n_instructions)
ROW = ROWS[0]


def problem_of(row: Any) -> AllocationProblem:
    return AllocationProblem.from_text(row.normalized)


def label_of(row: Any) -> dict[str, str]:
    assert row.assignment is not None
    found: dict[str, str] = json.loads(row.assignment)
    return found


def data_of(page: str) -> dict[str, Any]:
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    found: dict[str, Any] = json.loads(text)
    return found


@pytest.mark.parametrize("row", ROWS[:4], ids=lambda row: str(row.id))
def test_every_live_lane_has_its_place_and_nothing_else(row: Any) -> None:
    problem, label = problem_of(row), label_of(row)
    occupation = occupation_of(problem, label)
    assert occupation.valid
    assert not occupation.unplaced
    liveness, placements = problem.liveness, problem.placements
    expected = set()
    for number, register_class in enumerate(problem.function.virtual_registers):
        base = placements.by_name[register_class][label[f"%{number}"]]
        for lane in range(register_class.width):
            live = liveness.live[liveness.lane_offsets[number] + lane]
            expected |= {(number, base + lane, point) for point in iterate_bits(live)}
    for place, (file, index) in enumerate(liveness.fixed_lanes, liveness.virtual_lane_count):
        unit = placements.first_unit[file] + index
        expected |= {(None, unit, point) for point in iterate_bits(liveness.live[place])}
    drawn = {
        (span.register, span.unit, point)
        for span in occupation.spans
        for point in range(span.first, span.last + 1)
    }
    assert drawn == expected


@pytest.mark.parametrize("row", [ROWS[0], ROWS[2], ROWS[20]], ids=lambda row: str(row.id))
def test_bank_conflicts_are_those_that_are_counted(row: Any) -> None:
    problem, label = problem_of(row), label_of(row)
    points = problem.liveness.points
    weights = [
        LOOP_WEIGHT ** problem.loop_depths[points[point][0]]
        for point in occupation_of(problem, label).conflicts
    ]
    assert sum(weights) == count_bank_conflicts(problem, label).any


def two_in_one_place(row: Any) -> tuple[AllocationProblem, dict[str, str]]:
    """An answer that gives every virtual register of a class the base of its first."""
    problem = problem_of(row)
    first: dict[str, str] = {}
    answer = {}
    for number, base in enumerate(label_of(row).values()):
        name = problem.function.virtual_registers[number].name
        answer[f"%{number}"] = first.setdefault(name, base)
    return problem, answer


def test_clashes_are_the_findings_at_their_points() -> None:
    problem, answer = two_in_one_place(ROW)
    occupation = occupation_of(problem, answer)
    assert not occupation.valid
    assert occupation.findings_count >= len(occupation.clashes) > 10
    for clash in occupation.clashes:
        assert clash.point is not None
        assert clash.unit is not None
        assert problem.placements.unit_name(clash.unit) == clash.finding.unit
        held = [
            span.register
            for span in occupation.spans
            if span.unit == clash.unit and span.first <= clash.point <= span.last
        ]
        assert len(held) > 1 or clash.finding.kind == "fixed_register_clobbered"


def test_registers_without_a_place_are_named() -> None:
    problem, answer = problem_of(ROW), label_of(ROW)
    del answer["%3"]
    answer["%4"] = "x99"
    occupation = occupation_of(problem, answer)
    assert occupation.unplaced == ("%3", "%4")
    assert occupation.occupancy is None
    assert occupation.conflicts == ()
    assert (
        "2 registers have no place"
        in data_of(kernel_page(problem, [occupation], "x"))["answers"][0]["subtitle"]
    )


def test_the_page_has_the_text_and_every_point_its_line() -> None:
    problem = problem_of(ROW)
    page = kernel_page(problem, [occupation_of(problem, label_of(ROW))], "</script><b>@data@")
    document = data_of(page)
    assert document["title"] == "</script><b>@data@"
    assert document["text"] == problem.normalized.splitlines()
    assert page.count("</script>") == 2
    for point, (block, index) in zip(document["points"], problem.liveness.points, strict=True):
        line = document["text"][point]
        if index < 0:
            assert line.startswith("bb0")
        else:
            opcode = problem.function.blocks[block].instructions[index].opcode
            assert opcode in line


def test_wrong_answers_are_drawn_and_said(tmp_path: Path, run: CommandLine) -> None:
    _, answer = two_in_one_place(ROW)
    path = answered(tmp_path / "wrong.json", answer)
    good = answered(tmp_path / "good.json", label_of(ROW))
    err = run("show", ROW.id, path, "-o", tmp_path / "one.png", status=1).err
    assert "a wrong answer for" in err
    run("show", ROW.id, good, path, "-o", tmp_path / "two.html", status=1)
    answers = data_of((tmp_path / "two.html").read_text())["answers"]
    assert [each["source"] for each in answers] == ["good.json", "wrong.json"]
    assert [bool(each["clashes"]) for each in answers] == [False, True]
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")
