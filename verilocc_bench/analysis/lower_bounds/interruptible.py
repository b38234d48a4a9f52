"""Runs a solver so that Ctrl-C ends it at once."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ortools.sat.python import cp_model, cp_model_helper

__all__ = ["solve_interruptibly"]

POLL_SECONDS = 0.1


def solve_interruptibly(
    solver: cp_model.CpSolver, model: cp_model.CpModel
) -> cp_model_helper.CpSolverStatus:
    """The solver's status for a model. A KeyboardInterrupt stops the search, and goes on.

    The solver works in a thread of its own: in its own code no signal is
    handled by Python, and this thread must be free to take it.
    """
    # Otherwise the solver takes the signal for itself, and the caller never hears of it.
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
        solver.stop_search()
        thread.join()
        raise
    if failures:
        raise failures[0]
    return outcome[0]
