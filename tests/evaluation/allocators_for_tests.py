"""Allocators that are wrong now and then, for tests: `python:tests.evaluation.…:NAME`."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

from verilocc_bench.allocators import Request, answer_from_assignment, linear_scan
from verilocc_bench.analysis import AllocationProblem

LOG = "VERILOCC_TEST_LOG"
"""Where calls are noted, one line each, if the environment says so."""

SLOW_SECONDS = "VERILOCC_TEST_SLOW_SECONDS"


def stochastic(problem: AllocationProblem, seed: int) -> dict[str, str]:
    """Linear scan's answer, of which the seed spoils some; each call leaves a line in a log."""
    if path := os.environ.get(LOG):
        with Path(path).open("a") as file:
            file.write(f"{problem.id} {seed}\n")
    time.sleep(float(os.environ.get(SLOW_SECONDS, "0")))
    generator = random.Random(seed)
    answer = answer_from_assignment(problem, linear_scan(problem))
    if generator.random() < 0.4:
        names = sorted(answer)
        answer[generator.choice(names)] = answer[generator.choice(names)]
    return answer


class Learner:
    """Right only where it has been told of as many wrong attempts as the sample's number."""

    assistance = "text"
    deterministic = False

    def allocate(self, request: Request) -> dict[str, str]:
        """Says nothing right before it was told so."""
        for told in request.feedback:
            assert told.answer is None or told.findings
        answer = answer_from_assignment(request.problem, linear_scan(request.problem))
        if len(request.feedback) < request.sample:
            del answer["%0"]
        return answer


class Forgetful(Learner):
    """Right at the third attempt, whatever it was told: it counts by the seeds it saw."""

    def __init__(self) -> None:
        self.seeds: dict[tuple[str, int], set[int]] = {}

    def allocate(self, request: Request) -> dict[str, str]:
        """Counts the different seeds."""
        assert not request.feedback
        key = request.problem.id, request.sample
        seen = self.seeds.setdefault(key, set())
        seen.add(request.seed)
        answer = answer_from_assignment(request.problem, linear_scan(request.problem))
        if len(seen) < 3:
            del answer["%0"]
        return answer
