"""`verilocc-bench list`."""

from __future__ import annotations

import argparse
import json
from typing import Any

from tabulate import tabulate


def run(options: argparse.Namespace) -> int:
    """Prints what there is, as a table or as JSON."""
    rows = {"models": _models, "datasets": _datasets, "sweeps": _sweeps}[options.what]()
    if options.json:
        print(json.dumps(rows, indent=2))
    else:
        print(tabulate(rows, headers="keys"))
    return 0


_FORMS = {
    "python:MODULE:ATTRIBUTE": "an allocator in Python",
    "command:PROGRAM …": "a program that reads and writes lines of JSON",
    "predictions:FILE": "answers from a file",
    "FOLDER or OWNER/NAME": "a causal language model here or on the Hub (extra: model)",
    "FILE.gguf": "a causal language model in one file, dequantised (extra: gguf)",
    "http://… or https://…": "a language model behind an OpenAI-compatible endpoint",
}


def _models() -> list[dict[str, Any]]:
    from importlib.metadata import entry_points

    from verilocc_bench.evaluation.models import OWN, PLUG_IN_GROUP
    from verilocc_bench.model.shipped import PACKAGED, SHIPPED

    rows = [
        {"model": name, "description": allocator.description} for name, allocator in OWN.items()
    ]
    rows += [{"model": name, "description": text} for name, text in (SHIPPED | PACKAGED).items()]
    rows += [
        {"model": plug_in.name, "description": f"plug-in {plug_in.value}"}
        for plug_in in entry_points(group=PLUG_IN_GROUP)
    ]
    return rows + [{"model": form, "description": text} for form, text in _FORMS.items()]


def _datasets() -> list[dict[str, Any]]:
    from collections import Counter

    from verilocc_bench.dataset import EMBEDDED, EXPERT, load_rows

    rows: list[dict[str, Any]] = []
    others = [(f"{EMBEDDED}:{config}", "assign") for config in (EXPERT, "sm_90")]
    for name, track in ((EMBEDDED, "assign"), (EMBEDDED, "split"), *others):
        found = Counter((r.arch, r.family) for r in load_rows(name, track=track).rows)
        rows += [
            {
                "dataset": name,
                "track": track,
                "architecture": arch,
                "family": family,
                "kernels": count,
            }
            for (arch, family), count in sorted(found.items())
        ]
    return rows


def _sweeps() -> list[dict[str, Any]]:
    from collections import Counter
    from dataclasses import replace

    from dataset_builders.experts.expert_sweep import EXPERT_SWEEPS_BY_NAME, ExpertSweep
    from dataset_builders.sweeps import SWEEPS, Sweep
    from dataset_builders.sweeps.fresh import FRESH, fresh_sweep

    rows: list[dict[str, Any]] = []
    sweeps: list[Sweep | ExpertSweep] = [
        *SWEEPS.values(),
        replace(fresh_sweep("0"), name=FRESH),
        *EXPERT_SWEEPS_BY_NAME.values(),
    ]
    for sweep in sweeps:
        found = Counter((str(p.arch), str(p.family)) for p in sweep.points())
        rows += [
            {
                "sweep": sweep.name,
                "architecture": arch,
                "family": family,
                "points": count,
                "description": sweep.description,
            }
            for (arch, family), count in sorted(found.items())
        ]
    return rows
