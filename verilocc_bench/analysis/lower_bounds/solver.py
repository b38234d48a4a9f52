"""The constraint solver of the proofs: OR-tools' CP-SAT with one worker, on integers."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

from verilocc_bench.errors import MissingExtraError

if TYPE_CHECKING:
    from ortools.sat.python import cp_model


def load_cp_model() -> None:
    """Imports the solver. Raises MissingExtraError if it is not installed."""
    try:
        import ortools  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtraError("ortools", "exact", "the proof of bounds") from None


def solver_name() -> str:
    """The solver's name and version, such as `cp-sat 9.15.6755`."""
    return f"cp-sat {version('ortools')}"


def new_solver(deterministic_time: float, seed: int = 0) -> cp_model.CpSolver:
    """A deterministic solver with a budget of deterministic time, in its own seconds.

    Its linear relaxation only proposes; the solver checks its conclusions in
    integers.
    """
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    solver.parameters.max_deterministic_time = deterministic_time
    return solver
