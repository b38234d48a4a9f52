"""The constraint solver, OR-tools' CP-SAT, as proofs use it: one worker, integers alone."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

from verilocc_bench.errors import MissingExtraError

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

__all__ = ["load_cp_model", "new_solver", "solver_name"]


def load_cp_model() -> None:
    """Makes sure that the solver can be imported. Raises MissingExtraError where it cannot."""
    try:
        import ortools  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtraError("ortools", "exact", "the proof of bounds") from None


def solver_name() -> str:
    """The solver's name and version, such as `cp-sat 9.15.6755`."""
    return f"cp-sat {version('ortools')}"


def new_solver(deterministic_time: float, seed: int = 0) -> cp_model.CpSolver:
    """A solver that gives the same answer every time, within a budget of deterministic time.

    Its linear relaxation only proposes: what it concludes is computed again in
    integers.
    """
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    solver.parameters.max_deterministic_time = deterministic_time
    return solver
