"""The kernels of a section, for a table that its reader sorts and filters."""

from __future__ import annotations

import shlex
from typing import Any

from verilocc_bench.report.runs import ComparableRuns, printable


def kernel_rows(section: ComparableRuns) -> dict[str, Any]:
    """Runs by name, and for each kernel its figures and each run's verdict, as plain JSON.

    A verdict is [valid samples, samples, registers, the command that tells more], or null
    if the run was not asked.
    """
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for place, run in enumerate(section.runs):
        for kernel in run.kernels:
            row = rows.setdefault(
                (kernel["split"], kernel["id"]),
                {
                    "id": printable(kernel["id"]),
                    "task": printable(kernel["task"]),
                    "split": printable(kernel["split"]),
                    "instructions": kernel["n_instructions"],
                    "registers": kernel["n_virtual_registers"],
                    "label": None,
                    "bound": None,
                    "runs": [None] * len(section.runs),
                },
            )
            for name, key in (("label", "label_registers"), ("bound", "bound")):
                row[name] = kernel[key] if row[name] is None else row[name]
            row["runs"][place] = [kernel["valid"], kernel["samples"], kernel["registers"]]
    told = section.conditions
    dataset = "" if told["dataset"] == "mini" else f" --dataset {shlex.quote(told['dataset'])}"
    return {
        "names": [printable(run.name) for run in section.runs],
        "folders": [printable(shlex.quote(str(run.folder))) for run in section.runs],
        "dataset": dataset,
        "assign": told["track"] == "assign",
        "rows": [rows[key] for key in sorted(rows)],
    }
