"""Allocators in Python that do what they should not, for tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from verilocc_bench.allocators import Request, answer_from_assignment, linear_scan
from verilocc_bench.errors import AllocationFailed, InfrastructureError

print("imported")


class _Ends(Mapping[str, str]):
    def __getitem__(self, key: str) -> str:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        sys.exit(0)

    def __len__(self) -> int:
        return 1


class _Odd(BaseException):
    pass


class _Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def ends_when_read(problem: Any, seed: int) -> Any:
    return _Ends()


def odd_exception(problem: Any, seed: int) -> Any:
    raise _Odd("odd")


def generator_exit(problem: Any, seed: int) -> Any:
    raise GeneratorExit


def unprintable(problem: Any, seed: int) -> Any:
    raise _Unprintable


def odd_kind(problem: Any, seed: int) -> Any:
    raise AllocationFailed("x", "bogus")


def blames_the_machine(problem: Any, seed: int) -> Any:
    raise InfrastructureError("not me")


def blames_the_machine_too(problem: Any, seed: int) -> Any:
    raise AllocationFailed("not me", "infrastructure")


def broken(problem: Any, seed: int) -> Any:
    raise RuntimeError("no luck\nat all")


def ends(problem: Any, seed: int) -> Any:
    raise SystemExit(7)


def junk(problem: Any, seed: int) -> Any:
    return ["v0"]


def lowest(problem: Any, seed: int) -> Any:
    """The first register of each class."""
    classes, legal = problem.function.virtual_registers, problem.placements.legal
    return {f"%{n}": next(iter(legal[each].values())) for n, each in enumerate(classes)}


def spoils_its_problem(problem: Any, seed: int) -> Any:
    """Prints, and hides that anything is live."""
    print("hello")
    for name in ("live", "defined"):
        object.__setattr__(problem.liveness, name, (0,) * len(problem.liveness.live))
    answer = lowest(problem, seed)
    problem.function = None
    return answer


def two_faults(problem: Any, seed: int) -> Any:
    """One fault on most targets, two on another."""
    unknown = {"%0": "x9"} if problem.target.name == "sm_80" else {}
    return lowest(problem, seed) | unknown


def moves_away(problem: Any, seed: int) -> Any:
    os.chdir("/")
    return answer_from_assignment(problem, linear_scan(problem))


def speaks_through_a_process(problem: Any, seed: int) -> Any:
    os.system("echo hello")
    return answer_from_assignment(problem, linear_scan(problem))


class CannotBeAsked:
    """Raises when it is looked at."""

    def allocate(self, request: Request) -> Any:
        raise NotImplementedError

    @property
    def deterministic(self) -> bool:
        raise ValueError("who knows")
