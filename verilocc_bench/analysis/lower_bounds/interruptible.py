"""Runs a solver so that Ctrl-C ends it at once."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ortools.sat.python import cp_model, cp_model_helper

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
        solver.stop_search()
        thread.join()
        raise
    if failures:
        raise failures[0]
    return outcome[0]
