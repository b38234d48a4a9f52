"""A row made ready: parsed and analysed once, for any number of answers."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from verilocc_bench.allocators import NamedAssignment
from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.analysis.code_cost import CodeCost
from verilocc_bench.dataset import Row, check_row
from verilocc_bench.edits.findings import Verdict
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.code_source import CodeSource
from verilocc_bench.evaluation.records import Timing
from verilocc_bench.files import parse_json
from verilocc_bench.verification import Verifier
from verilocc_bench.verification.judges import Judges

if TYPE_CHECKING:
    from verilocc_bench.backends import Kernel


class PreparedProblem:
    """A problem with its verifier, and the compilers' answers."""

    def __init__(
        self,
        problem: AllocationProblem,
        label: NamedAssignment | None = None,
        alternatives: Mapping[str, NamedAssignment] | None = None,
        *,
        edits: bool = True,
        kernel: Callable[[], Kernel[Any]] | None = None,
    ) -> None:
        self.problem, self.verifier = problem, Verifier(problem, edits=edits)
        self.compiler_answer, self.alternatives = label, alternatives
        self._kernel = kernel

    @cached_property
    def judges(self) -> Judges:
        """The other judges of the function, for a second opinion."""
        return Judges(self.problem)

    @cached_property
    def runnable_problem(self) -> AllocationProblem:
        """The problem whose answers run by the compiler's own rules.

        Raises InputError without compiled code, where the target needs it.
        """
        from verilocc_bench.backends import runnable_problem

        return runnable_problem(self.problem, partial(self._read_kernel, "--runnable"))

    def code_cost(self) -> Callable[[NamedAssignment], CodeCost] | None:
        """The cost of an answer's machine code; None where it does not depend on the answer.

        A new one each time: it remembers what it was asked. Raises InputError without
        compiled code, and without llc.
        """
        from verilocc_bench.backends import code_cost_of

        return code_cost_of(self.problem, lambda: self._compiled_kernel)

    @cached_property
    def _compiled_kernel(self) -> Kernel[Any]:
        return self._read_kernel("--compiled")

    def _read_kernel(self, asking: str) -> Kernel[Any]:
        if self._kernel is None:
            raise InputError(
                f"function {self.problem.id}: {asking} needs the compiled code, "
                "a row of a dataset with raw code, machine IR or a cubin"
            )
        return self._kernel()

    def lent_problem(self) -> AllocationProblem:
        """A copy for one request of foreign code, which may change it: nobody else has it."""
        return AllocationProblem(self.problem.function, self.problem.normalized)


class PreparedRow(PreparedProblem):
    """One row with its problem, its verifier and the verdict on its label.

    Raises InputError if the row contradicts its text, or its label is wrong:
    such a row measures nothing.
    """

    def __init__(self, row: Row, code: CodeSource | None = None) -> None:
        self.row = row
        problem = AllocationProblem.from_text(row.normalized, f"row {row.id}")
        check_row(vars(row), f"row {row.id}")
        kernel = None if code is None else partial(code.kernel, problem)
        edits = row.track == "split"
        super().__init__(problem, row.label, row.other_labels, edits=edits, kernel=kernel)
        self.label: Verdict | None = None
        if row.label is not None:
            self.label = self.verifier.verify(row.label)
            if not self.label.valid:
                finding = self.label.findings[0].message
                raise InputError(f"row {row.id}: the label is wrong: {finding}")
        self._check_figures()

    def _check_figures(self) -> None:
        """Compares pressure, the label's registers and its occupancy with the row's columns."""
        row, target = self.row, self.problem.target
        expected: dict[str, Any] = {"pressure": dict(self.problem.pressure.maximum)}
        if self.label is not None:
            expected["registers_used"] = dict(self.label.registers_used or {})
            expected["occupancy"] = self.label.occupancy
            bound, used = row.best_lower_bound, expected["registers_used"]
            if bound is not None and used and used[VECTOR] < bound:
                raise InputError(
                    f"row {row.id}: the column 'best_lower_bound' is {bound}, its label uses "
                    f"{used[VECTOR]} registers"
                )
        elif row.registers_used is not None:  # of an answer with edits, which is not there
            used = parse_json(row.registers_used, f"row {row.id}, column registers_used")
            names = {VECTOR, *(file.name for file in target.files)}
            counts = used.values() if isinstance(used, dict) and used.keys() == names else [-1]
            if any(type(count) is not int or count < 0 for count in counts):
                raise InputError(f"row {row.id}: expected counts of {', '.join(sorted(names))}")
            expected["registers_used"] = {**used, VECTOR: target.vector_use(used)}
            expected["occupancy"] = self.problem.occupancy(used)
        for name, value in expected.items():
            found = getattr(row, name)
            if isinstance(found, str):
                found = parse_json(found, f"row {row.id}, column {name}")
            if found is not None and found != value:
                raise InputError(
                    f"row {row.id}: the column {name!r} is {str(found)[:60]}, its text and label "
                    f"say {value}"
                )


class PreparedRows:
    """The rows that were made ready last; beyond `size` the oldest are dropped.

    `code` is where their compiled code is, if an allocator needs it.
    """

    def __init__(self, size: int, code: CodeSource | None = None) -> None:
        self.size, self.code = size, code
        self.timing = Timing()
        self._rows: OrderedDict[str, PreparedRow] = OrderedDict()

    def get(self, row: Row) -> PreparedRow:
        """The row made ready. Raises InputError for a row that contradicts itself."""
        found = self._rows.get(row.id)
        if found is None:
            started = time.perf_counter()
            found = self._rows[row.id] = PreparedRow(row, self.code)
            self.timing.prepare_seconds += time.perf_counter() - started
            if len(self._rows) > self.size:
                self._rows.popitem(last=False)
        self._rows.move_to_end(row.id)
        return found
