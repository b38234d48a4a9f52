"""Makes graphs of rows, and answers from the output of a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.placement import base_name
from verilocc_bench.errors import InputError
from verilocc_bench.targets import TargetFile, get_target
from verilocc_bench.views.graph import ProblemGraph
from verilocc_bench.views.graph_arrays import graph_arrays, label_arrays
from verilocc_bench.views.view_rows import AnyRow, parse_label, problem_of
from verilocc_bench.views.vocabulary import OpcodeVocabulary

Bases = NDArray[np.integer[Any]] | Sequence[int]


def graph_of(
    source: AllocationProblem | AnyRow,
    vocabulary: OpcodeVocabulary | None = None,
    *,
    label: str = "compiler",
) -> ProblemGraph:
    """The graph of a problem, or of a row with its label (see parse_label).

    Without a vocabulary the opcodes of this function alone are numbered, so the ids of
    two graphs cannot be compared. Raises InputError for an invalid row or an illegal
    label.
    """
    wanted = parse_label(label)
    if isinstance(source, AllocationProblem):
        problem, answer = source, None
    else:
        problem, answer = problem_of(source), wanted.answer(source)
    if vocabulary is None:
        vocabulary = OpcodeVocabulary.of_functions([problem.function])
    arrays = graph_arrays(problem, vocabulary)
    return ProblemGraph(**arrays, **label_arrays(problem, answer))


def answer_from_arrays(graph: ProblemGraph, files: Bases, bases: Bases) -> dict[str, str]:
    """The answer that puts virtual register n at base `bases[n]` of file `files[n]`.

    The answer need not be legal; the verifier judges it. A negative file leaves the
    register out. Raises InputError for a register that the hardware does not have, and
    for arrays of another length.
    """
    if len(files) != graph.register_count or len(bases) != graph.register_count:
        raise InputError(
            f"expected {graph.register_count} files and bases, not {len(files)} and {len(bases)}"
        )
    known = get_target(graph.target).files
    widths = graph.register_width.tolist()
    answer: dict[str, str] = {}
    for number, width in enumerate(widths):
        file, base = int(files[number]), int(bases[number])
        if file >= 0:
            answer[f"%{number}"] = _name(known, file, base, width, number)
    return answer


def _name(files: Sequence[TargetFile], file: int, base: int, width: int, number: int) -> str:
    """The name of a base in answers."""
    if file >= len(files) or not 0 <= base < files[file].count:
        raise InputError(f"%{number}: there is no register {base} of file {file}")
    found = files[file]
    if found.unit_names and base + width > found.count:
        return found.unit_names[base]  # no tuple of that width fits there; the verifier says so
    return base_name(found, base, width)
