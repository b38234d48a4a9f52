"""`verilocc-bench verify`."""

from __future__ import annotations

import argparse
import json

from verilocc_bench.cli.instance import load_instance, read_answer_for
from verilocc_bench.verify import FastVerifier

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Prints the verdict; the status is 0 for a valid answer, 1 for a wrong one."""
    instance = load_instance(options)
    answer = read_answer_for(instance.problem, options.answer)
    verdict = FastVerifier(instance.problem).verify(answer)
    if options.json:
        print(json.dumps(verdict.to_json(), indent=2))
    elif verdict.valid:
        assert verdict.registers_used is not None
        unit = instance.problem.target.occupancy_unit
        files = ", ".join(f"{k} {v}" for k, v in verdict.registers_used.items() if k != "vector")
        print(
            f"valid: {verdict.registers_used['vector']} registers ({files}), "
            f"{verdict.occupancy} {unit}; "
            f"lower bound {instance.problem.pressure.maximum['vector']}"
        )
    else:
        print(f"wrong: {len(verdict.findings)} findings")
        for finding in verdict.findings:
            print(f"  {finding.kind.value}: {finding.message}")
    return 0 if verdict.valid else 1
