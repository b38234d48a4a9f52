"""The embedded rows of sm_80, made again from their cubins: gate, label, no trace of registers."""

from __future__ import annotations

import base64
import json
import random
from functools import cache

import pytest

from tests.backends.nvidia.assembly import permuted
from tests.sampling import few_rows
from verilocc_bench.allocators import answer_from_assignment
from verilocc_bench.backends.nvidia.cubin import read_cubin
from verilocc_bench.backends.nvidia.normalize import normalize_sass
from verilocc_bench.backends.nvidia.read import GatedFunction, load_kernel
from verilocc_bench.dataset import Row, load_raw_row, load_rows
from verilocc_bench.ir import print_function

TRACKS = [load_rows("mini", track=track).rows for track in ("assign", "split")]
SM_80 = [row for rows in TRACKS for row in rows if row.arch == "sm_80"]
ROWS = [
    row
    for kind in sorted({(row.track, row.family) for row in SM_80})
    for row in few_rows([row for row in SM_80 if (row.track, row.family) == kind])
]

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("cuda")]


@pytest.fixture(params=ROWS, ids=lambda row: f"{row.kernel}-{row.id}")
def row(request: pytest.FixtureRequest) -> Row:
    chosen: Row = request.param
    return chosen


@cache
def gated(identifier: str) -> GatedFunction:
    """Disassembled, and past the gate's first step, once for all tests."""
    raw = load_raw_row("mini", identifier)
    assert raw.format == "cubin"
    return load_kernel(base64.b64decode(raw.content), identifier)[1]


def limit(row: Row) -> int:
    found: int = json.loads(row.provenance)["register_limit"]
    return found


def test_the_cubin_gives_the_row_again(row: Row) -> None:
    normalized, problem = gated(row.id).normalized(limit(row))
    assert problem.normalized == row.normalized
    if row.label is not None:
        assert answer_from_assignment(problem, normalized.assignment) == row.label


def test_the_budget_can_be_told_from_the_cubin(row: Row) -> None:
    cubin = base64.b64decode(load_raw_row("mini", row.id).content)
    bounds = read_cubin(cubin).kernel(None).launch_bounds
    if row.track == "split":  # asked at fewer registers than the cubin was compiled for
        assert bounds.register_limit > limit(row)
    else:
        assert bounds.register_limit == limit(row)


def test_registers_leave_no_trace(row: Row) -> None:
    """Whatever registers the compiler had chosen, the text would be the same."""
    function = gated(row.id).function
    generator = random.Random(row.id)
    for _ in range(3):
        other = permuted(function, generator)
        assert other != function
        assert print_function(normalize_sass(other, limit(row)).function) == row.normalized


def test_split_rows_name_what_the_compiler_does_at_their_budget(row: Row) -> None:
    provenance = json.loads(row.provenance)
    assert (row.track == "split") == ("reference" in provenance)
    if row.track == "split":
        assert row.label is None
        assert provenance["reference"]["register_count"] <= limit(row)
