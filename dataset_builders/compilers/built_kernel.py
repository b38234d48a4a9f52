"""The result of compiling a sweep point: a row, its raw machine code, and the times."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dataset_builders.sweeps.point import RowPoint
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import RawRow, Row
from verilocc_bench.dataset.rows import RELEASE_COLUMNS
from verilocc_bench.errors import RejectedKernel
from verilocc_bench.verification import Verdict

LICENSE = "Apache-2.0"


@dataclass(slots=True)
class Timings:
    """Seconds spent on one kernel, by stage.

    `compiler_seconds`: LLVM on AMD; on NVIDIA ptxas, and nvdisasm with the gate's first step.
    """

    triton_seconds: float = 0.0
    compiler_seconds: float = 0.0
    own_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class BuiltKernel:
    """A row with its raw machine IR or machine code."""

    row: Row
    raw: RawRow
    timings: Timings = field(compare=False)


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def check_label(verdict: Verdict, whose: str = "") -> None:
    """Raises RejectedKernel, with the first finding, if the verdict on a label is not valid."""
    if not verdict.valid:
        first = verdict.findings[0]
        found = f"{len(verdict.findings)} findings, first: {first.kind.value}: {first.message}"
        raise RejectedKernel("label-contradicts-text", whose + found)


def make_row(
    point: RowPoint,
    problem: AllocationProblem,
    *,
    track: str,
    label: Mapping[str, str] | None,
    label_source: str,
    alternatives: Mapping[str, Mapping[str, str]],
    registers_used: Mapping[str, int] | None,
    provenance: Mapping[str, Any],
    license_name: str = LICENSE,
) -> Row:
    """The row of a point whose function and labels are known.

    `license_name` is the SPDX identifier of the kernel's source.
    """
    function = problem.function
    used = None if registers_used is None else dict(registers_used)
    return Row(
        id=problem.id,
        family=point.family,
        arch=point.arch,
        kernel=point.kernel,
        params=point.parameters_json,
        track=track,
        normalized=problem.normalized,
        # In the order of the virtual registers, which differs from the sorted order of names.
        assignment=None if label is None else json.dumps(label, separators=(",", ":")),
        label_source=label_source,
        alternatives=json.dumps(alternatives, separators=(",", ":")),
        group=point.group,
        n_blocks=len(function.blocks),
        n_instructions=function.instruction_count,
        n_virtual_registers=len(function.virtual_registers),
        pressure=canonical_json(dict(problem.pressure.maximum)),
        registers_used=None if used is None else canonical_json(used),
        occupancy=None if used is None else problem.occupancy(used),
        license=license_name,
        provenance=canonical_json(provenance),
        **RELEASE_COLUMNS,
    )
