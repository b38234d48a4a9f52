"""The constraint solver of the proofs: OR-tools' CP-SAT with one worker, on integers.

Ctrl-C ends a search at once.
"""

from __future__ import annotations

import threading
from importlib.metadata import version
from typing import TYPE_CHECKING

from verilocc_bench.errors import MissingExtraError

if TYPE_CHECKING:
    from ortools.sat.python import cp_model, cp_model_helper


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


POLL_SECONDS = 0.1


def solve_interruptibly(
    solver: cp_model.CpSolver, model: cp_model.CpModel
) -> cp_model_helper.CpSolverStatus:
    """Solves a model and returns the solver's status.

    A KeyboardInterrupt stops the search and is raised again. The solver works in
    a thread of its own: Python handles no signal while solver code runs in the
    main thread.
    """
    # Otherwise the solver catches the signal and Python never sees it.
    solver.parameters.catch_sigint_signal = False
    outcome: list[cp_model_helper.CpSolverStatus] = []
    failures: list[BaseException] = []

    def work() -> None:
        try:
            outcome.append(solver.solve(model))
        except BaseException as error:  # noqa: BLE001 - raised again by the caller's thread
            failures.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(POLL_SECONDS)
    except BaseException:
        while thread.is_alive():
            solver.stop_search()  # does nothing before the solver begins
            thread.join(POLL_SECONDS)
        raise
    if failures:
        raise failures[0]
    return outcome[0]
