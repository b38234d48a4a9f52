"""Baselines for a model that chooses among the bases that `candidates` offers.

    verilocc-bench evaluate --model python:benchmarks.first_candidate:allocator

`allocator` takes the first offer at every decision; `first_policy` takes the
cheapest offer by the first policy of the recipe `reference`; `teacher` runs
all of that recipe's policies and keeps the best run. The order of decisions,
the offers, and the ejections at dead ends are those of the format.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from verilocc_bench.allocators import Answer, Assistance, Request
from verilocc_bench.errors import AllocationFailed
from verilocc_bench.model.prompts.candidates import CANDIDATES
from verilocc_bench.training import find_recipe
from verilocc_bench.training.teacher import Policy, best_demonstration

FIRST = Policy(grows=0.0)
"""A policy to which all offers cost the same: it takes the first."""

NONE_OF = 1 << 30
"""Keeps about one decision in this many as an example: in effect none."""


class PolicyAllocator:
    """The best run of some policies. Raises AllocationFailed if no run finds an answer."""

    assistance = Assistance.CANDIDATES
    deterministic = True

    def __init__(self, policies: Sequence[Policy]) -> None:
        self.policies = policies

    def allocate(self, request: Request) -> Answer:
        run = best_demonstration(request.problem, CANDIDATES, self.policies, every=NONE_OF)
        if not run.answer:
            raise AllocationFailed(f"no answer after {run.dead_ends} dead ends")
        return Answer(run.answer)


def _policies() -> list[Policy]:
    """The recipe's policies that choose among candidates, without chance."""
    return [
        replace(policy, detours=0.0)
        for source in find_recipe("reference").sources
        if source.format == CANDIDATES.name
        for policy in source.policies
    ]


allocator = PolicyAllocator([FIRST])
first_policy = PolicyAllocator(_policies()[:1])
teacher = PolicyAllocator(_policies())
