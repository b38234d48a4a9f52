"""Asks the tests about mutants of the analyses and judges, and says which survive.

    python -m tests.mutants [--jobs N] [--only TEXT] [--tests PATH] [--list]

Results are kept in results/mutants.jsonl, and a run goes on where the last one ended: what was
killed stays so, what survived is asked again once the tests have changed. Remove the file to
begin anew. Survivors that change nothing are listed with the reason in `equivalent.txt`; any
other survivor, or a share of killed ones below LEAST, ends with status 1. `--tests` asks these
tests alone, which is quicker: what they kill is killed, what survives them may yet be killed by
another test.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.mutants.asking import KILLED, TIMEOUT, Asking, fingerprint_of
from tests.mutants.making import Mutant, mutants_of
from tests.sampling import ASKED_OF_MUTANTS

ROOMS = {
    "analysis, but for the bounds": ("verilocc_bench/analysis/*.py",),
    "analysis, the bounds": ("verilocc_bench/analysis/lower_bounds/*.py",),
    "verification, the fast check": ("verilocc_bench/verification/*.py",),
    "verification, the symbolic checker": ("verilocc_bench/verification/symbolic/*.py",),
    "verification, the value walk": ("verilocc_bench/verification/value_walk/*.py",),
    "backends/amdgpu/normalize": ("verilocc_bench/backends/amdgpu/normalize.py",),
    "allocators/exact/minimizing": ("verilocc_bench/allocators/exact/minimizing.py",),
    "backends/amdgpu, the gate": (
        "verilocc_bench/backends/amdgpu/mir_gate.py",
        "verilocc_bench/backends/amdgpu/printed_body.py",
    ),
    "backends/amdgpu, what is refused": (
        "verilocc_bench/backends/amdgpu/operand_checks.py",
        "verilocc_bench/backends/amdgpu/refusals.py",
        "verilocc_bench/backends/amdgpu/undefined_reads.py",
    ),
    "backends/amdgpu/recovery, the analyses": tuple(
        f"verilocc_bench/backends/amdgpu/recovery/{name}.py"
        for name in ("inactive_lanes", "recovered_flow", "recovered_mask", "webs")
    ),
    "backends/amdgpu/recovery/gates": ("verilocc_bench/backends/amdgpu/recovery/gates.py",),
    "backends/nvidia, the gate": (
        "verilocc_bench/backends/nvidia/life_range_gate.py",
        "verilocc_bench/backends/nvidia/text_gate.py",
    ),
    "backends/nvidia, calls and products of a warp group": (
        "verilocc_bench/backends/nvidia/context_code.py",
        "verilocc_bench/backends/nvidia/hazards.py",
        "verilocc_bench/backends/nvidia/return_addresses.py",
        "verilocc_bench/targets/nvidia_calls.py",
    ),
    "backends/nvidia/kept_apart": ("verilocc_bench/backends/nvidia/*part*.py",),
    "backends/nvidia/normalize": ("verilocc_bench/backends/nvidia/normalize.py",),
    "evaluation": tuple(
        f"verilocc_bench/evaluation/{name}.py"
        for name in ("comparison", "ledger", "metrics", "storing")
    ),
    "leaderboard/judging": ("leaderboard/judging.py",),
}
LEAST = 0.95
RESULTS = Path("results/mutants.jsonl")
EQUIVALENT = Path(__file__).with_name("equivalent.txt")


def room_mutants(only: Sequence[str]) -> dict[str, list[Mutant]]:
    """The mutants of each room; with `only`, of files whose paths hold one of these."""
    found: dict[str, list[Mutant]] = {}
    for room, patterns in ROOMS.items():
        paths = [path for pattern in patterns for path in sorted(Path().glob(pattern))]
        if only:
            paths = [path for path in paths if any(text in str(path) for text in only)]
        if paths:
            found[room] = [mutant for path in paths for mutant in mutants_of(path)]
    return found


def read_equivalent(text: str) -> dict[str, str]:
    """The names of mutants that change nothing, each with its reason: the paragraph before."""
    found: dict[str, str] = {}
    reason: list[str] = []
    for line in text.splitlines():
        if line.startswith("# "):
            reason.append(line[2:])
        elif line:
            found[line] = " ".join(reason)
        else:
            reason = []
    return found


def table(rooms: dict[str, list[Mutant]], results: dict[str, str], listed: set[str]) -> str:
    """Counts by room, in Markdown."""
    lines = [
        "| room | mutants | killed | of these by time | survived | equivalent | share killed |",
        "|---|---|---|---|---|---|---|",
    ]
    for room, mutants in {**rooms, "all": [m for each in rooms.values() for m in each]}.items():
        counts = Counter(results.get(mutant.key, "") for mutant in mutants)
        asked = sum(count for status, count in counts.items() if status)
        killed = counts[KILLED] + counts[TIMEOUT]
        survivors = [m for m in mutants if results.get(m.key, KILLED) not in (KILLED, TIMEOUT)]
        equivalent = sum(mutant.name in listed for mutant in survivors)
        share = f"{killed / asked:.1%}" if asked else "–"
        lines.append(
            f"| {room} | {asked:,} | {killed:,} | {counts[TIMEOUT]:,} | {len(survivors):,} "
            f"| {equivalent:,} | {share} |"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", action="append", help="files whose paths hold this")
    parser.add_argument(
        "--tests", action="append", help="these tests in place of all of ASKED_OF_MUTANTS"
    )
    parser.add_argument("--list", action="store_true", help="ask nothing: say what survived")
    arguments = parser.parse_args()
    rooms = room_mutants(arguments.only or ())
    fingerprint = fingerprint_of(Path("tests"))
    results: dict[str, str] = {}
    again: set[str] = set()
    if RESULTS.exists():
        for line in RESULTS.read_text().splitlines():
            kept = json.loads(line)
            results[kept["key"]] = kept["status"]
            survived = kept["status"] not in (KILLED, TIMEOUT)
            (again.add if survived and kept["tests"] != fingerprint else again.discard)(kept["key"])
    wanted = [mutant for mutants in rooms.values() for mutant in mutants]
    to_ask = [m for m in wanted if m.key not in results or m.key in again]
    if to_ask and not arguments.list:
        RESULTS.parent.mkdir(exist_ok=True)
        with RESULTS.open("a") as file:

            def told(mutant: Mutant, status: str, test: str) -> None:
                results[mutant.key] = status
                kept = {"key": mutant.key, "status": status, "by": test, "tests": fingerprint}
                file.write(json.dumps({**kept, "name": mutant.name}) + "\n")
                file.flush()
                if status not in (KILLED, TIMEOUT):
                    print(f"{status}: {mutant.name}", flush=True)

            plugin = Asking(to_ask, told, arguments.jobs)
            without = [f"no:{name}" for name in ("xdist", "logging", "hypothesispytest")]
            options = ["-q", "-s", "--assert=plain", *(w for n in without for w in ("-p", n))]
            status = pytest.main(
                [*options, *(arguments.tests or ASKED_OF_MUTANTS)], plugins=[plugin]
            )
            if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
                return 2
    listed = read_equivalent(EQUIVALENT.read_text()) if EQUIVALENT.exists() else {}
    survivors = [m for m in wanted if results.get(m.key, KILLED) not in (KILLED, TIMEOUT)]
    unlisted = [mutant.name for mutant in survivors if mutant.name not in listed]
    killed = sum(results.get(m.key) in (KILLED, TIMEOUT) for m in wanted)
    for name in unlisted:
        print(f"unlisted survivor: {name}")
    for name in sorted(listed.keys() - {m.name for m in survivors}) if not arguments.only else ():
        print(f"listed, but no survivor: {name}")
    print(table(rooms, results, set(listed)))
    return int(bool(unlisted) or killed < LEAST * len(wanted))


if __name__ == "__main__":
    sys.exit(main())
