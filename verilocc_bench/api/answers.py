"""Answers in every form that the interface takes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias, cast

from verilocc_bench.allocators import answer_from_assignment
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.edits import Answer, NamedAssignment
from verilocc_bench.edits.answer_files import read_answer
from verilocc_bench.errors import InputError
from verilocc_bench.ir import Assignment, PhysicalRegister

AnyAnswer: TypeAlias = Answer | NamedAssignment | Assignment | str | Path
"""An Answer, names by names (`{"%0": "v0"}`), registers by numbers, or an answer file."""


def answer_of(problem: AllocationProblem, answer: AnyAnswer) -> Answer:
    """The answer in its usual form.

    Raises InputError for a file that holds no answer, or another function's, and
    for any other object.
    """
    match answer:
        case Answer():
            return answer
        case str() | Path():
            return answer_of_file(problem, Path(answer))
        case Mapping():
            numbered = bool(answer) and all(isinstance(key, int) for key in answer)
            kind, example = (PhysicalRegister, "PhysicalRegister") if numbered else (str, "'v0'")
            for name, register in answer.items():
                if not numbered and not isinstance(name, str):
                    raise InputError(f"expected names such as '%0' or numbers alone, not {name!r}")
                if not isinstance(register, kind):
                    raise InputError(f"{name!r}: expected {example}, not {register!r}")
            if numbered:
                by_number = cast("Any", answer)
                return Answer(answer_from_assignment(problem, by_number))
            return Answer(cast("NamedAssignment", answer))
    raise InputError(
        f"expected an answer, {{'%0': 'v0', …}} or the path of an answer file, "
        f"not a {type(answer).__name__}"
    )


def answer_of_file(problem: AllocationProblem, path: Path) -> Answer:
    """The answer in an answer file. Raises InputError for another function's answer."""
    identifier, answer = read_answer(path)
    if identifier is not None and identifier != problem.id:
        raise InputError(
            f"the answer is for {identifier[:40]!r}, the kernel is {problem.id!r}", source=path
        )
    return answer
