"""Sums up the parts of a long self-test: `python -m benchmarks.long_run results/long-run`.

Each file of the folder is what `selftest --json` printed for one seed. The status is 1 if
judges disagree, or if some kind of finding is missing.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from verilocc_bench.edits.findings import FindingKind
from verilocc_bench.selftest.campaign import CampaignOutcome, Tally
from verilocc_bench.selftest.campaign_table import render
from verilocc_bench.settings.judges import judge_named


def total(parts: Iterable[dict[str, Any]]) -> CampaignOutcome:
    outcome = CampaignOutcome()
    for part in parts:
        for name in ("functions", "kernels", "asked", "answered", "beyond_analysis", "seconds"):
            setattr(outcome, name, getattr(outcome, name) + part[name])
        outcome.kinds.update(part["disagreement_counts"])
        for name, tally in part["operators"].items():
            outcome.tallies.setdefault(name, Tally()).merge(Tally.from_json(tally))
        for kind, judges in part["findings"].items():
            counts = outcome.findings.setdefault(kind, Counter())
            for judge, count in judges.items():
                name, *suffix = judge.split(" ", 1)
                counts[" ".join([judge_named(name), *suffix])] += count
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    files = sorted(parser.parse_args().folder.glob("*.json"), key=lambda path: int(path.stem))
    parts = [json.loads(file.read_text()) for file in files]
    outcome = total(parts)
    print(render(outcome))
    seeds = ", ".join(str(part["seed"]) for part in parts)
    versions = {json.dumps(part["versions"], sort_keys=True) for part in parts}
    print(f"\nseeds {seeds}; {'; '.join(sorted(versions))}; {outcome.seconds:,.0f} seconds")
    missing = [kind.value for kind in FindingKind if kind not in outcome.findings]
    if missing:
        print(f"no finding of the kinds {', '.join(missing)}")
    return 1 if missing or outcome.kinds else 0


if __name__ == "__main__":
    raise SystemExit(main())
