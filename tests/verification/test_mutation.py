"""10,000 corruptions of valid answers over the embedded dataset, judged twice."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.mutation import OPERATORS, mutate
from tests.sampling import few_rows
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import Row, load_rows
from verilocc_bench.selftest.oracle import Oracle
from verilocc_bench.verification import FastVerifier

pytestmark = pytest.mark.slow

MUTANTS = 10_000
ROWS = load_rows("mini").rows
SHARE = -(-MUTANTS // len(ROWS))

judged: Counter[tuple[str, bool]] = Counter()


@pytest.mark.parametrize("row", few_rows(ROWS), ids=lambda row: f"{row.arch}-{row.kernel}-{row.id}")
def test_verdicts_on_mutants_agree_with_the_oracle(row: Row) -> None:
    problem = AllocationProblem.from_text(row.normalized)
    verifier = FastVerifier(problem)
    oracle = Oracle(problem.function)
    generator = random.Random(row.id)
    for source, label in {row.label_source: row.label, **row.other_labels}.items():
        assert verifier.verify(label).valid, source
        assert oracle.judge(label), source
    label = row.label
    for _ in range(SHARE):
        name, mutant = mutate(problem, dict(label), generator)
        verdict = verifier.verify(mutant)
        assert verdict.valid == oracle.judge(mutant), f"{name}: {verdict}"
        assert verdict.valid == (not verdict.findings)
        judged[name, verdict.valid] += 1


@pytest.mark.exhaustive
def test_the_mutants_put_both_verdicts_to_the_test() -> None:
    asked = sum(judged.values())
    if asked < MUTANTS // 8:
        pytest.skip("runs after all the mutants")
    for name in OPERATORS:
        assert judged[name, False] > asked / 100, name
    assert sum(count for (_, valid), count in judged.items() if valid) > asked / 100
