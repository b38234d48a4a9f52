"""Labels of the embedded dataset and 10,000 corruptions of them, before all judges."""

from __future__ import annotations

import importlib.util
import random
from collections import Counter

import pytest

from tests.mutation import OPERATORS, mutate
from tests.sampling import few_rows
from tests.verification.test_small_functions import collision_pairs, misplaced, other_findings
from tests.verification.test_value_walk import difference, walk
from verilocc_bench.allocators import BUILT_IN, Request
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import Row, load_rows
from verilocc_bench.errors import AllocationFailed
from verilocc_bench.selftest.oracle import Oracle
from verilocc_bench.verification import FastVerifier, IndependentVerifier
from verilocc_bench.verification.smt import SMTVerifier

pytestmark = pytest.mark.slow

MUTANTS = 10_000
OF_ALL_JUDGES = 4
"""So many mutants of each kernel are put to the slower judges too."""
LINES_FOR_SMT = 450
ROWS = load_rows("mini").rows
SHARE = -(-MUTANTS // len(ROWS))
HAS_Z3 = importlib.util.find_spec("z3") is not None

judged: Counter[tuple[str, bool]] = Counter()


@pytest.mark.parametrize("row", few_rows(ROWS), ids=lambda row: f"{row.arch}-{row.kernel}-{row.id}")
def test_judges_agree_on_labels_and_mutants(row: Row) -> None:
    problem = AllocationProblem.from_text(row.normalized)
    fast, oracle = FastVerifier(problem), Oracle(problem.function)
    independent = IndependentVerifier(problem)
    smt = SMTVerifier(problem) if HAS_Z3 and row.normalized.count("\n") <= LINES_FOR_SMT else None
    for source, label in {row.label_source: row.label, **row.other_labels}.items():
        assert fast.verify(label).valid, source
        assert oracle.judge(label), source
    answers = [dict(row.label)]
    try:
        answers.append(dict(BUILT_IN["linear-scan"].allocate(Request(problem)).assignment))
    except AllocationFailed:
        assert row.arch == "sm_80"  # within tight budgets
    for answer in answers:
        assert independent.verify(answer) == fast.verify(answer)
        assert smt is None or smt.verify(answer) == fast.verify(answer)
        assert difference(walk(problem, answer)) is None
    generator = random.Random(row.id)
    for number in range(SHARE):
        name, mutant = mutate(problem, dict(row.label), generator)
        verdict = fast.verify(mutant)
        assert verdict.valid == oracle.judge(mutant), f"{name}: {verdict}"
        assert verdict.valid == (not verdict.findings)
        judged[name, verdict.valid] += 1
        if number >= OF_ALL_JUDGES:
            continue
        other = independent.verify(mutant)
        assert (other.valid, misplaced(other)) == (verdict.valid, misplaced(verdict)), name
        if verdict.valid:
            assert difference(walk(problem, mutant)) is None
        if smt is not None:
            third = smt.verify(mutant)
            assert (third.valid, bool(third.findings)) == (verdict.valid, bool(verdict.findings))
            assert collision_pairs(third.findings) <= collision_pairs(verdict.findings)
            assert other_findings(third.findings) <= other_findings(verdict.findings)


@pytest.mark.exhaustive
def test_the_mutants_put_both_verdicts_to_the_test() -> None:
    asked = sum(judged.values())
    if asked < MUTANTS // 8:
        pytest.skip("runs after all the mutants")
    for name in OPERATORS:
        assert judged[name, False] > asked / 100, name
    assert sum(count for (_, valid), count in judged.items() if valid) > asked / 100
