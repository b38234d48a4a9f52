"""The independent checker: does every use find its value, with or without edits?

Like other register allocation checkers (Rideau and Leroy, "Validating Register
Allocation and Spilling", Compiler Construction 2010; the checker of regalloc2)
it runs the assigned program on symbolic values, the lanes of the function. For
every lane it knows the places that hold its current value on all paths. It uses
neither liveness nor interference: a value that is destroyed and never read again
does no harm, and the checker does not look for it.

`places` reads the assignment, `edit_rules` checks what edits must not do,
`symbolic_lanes` and `symbolic_program` make the program, `symbolic_flow` runs it (with
the lattice, the meet and the transfer functions), and `entry` finds the lanes that hold a
value at the entry. A last pass over the fixed point collects the findings: one for
every lane of a use that some path does not find, and one for every two lanes
that one instruction writes to one place.

Cost: about 20 microseconds for an instruction without guards. `check` raises
InputError if guards depend on each other in too many ways (see `conditional`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from verilocc_bench.edits import EditedFunction, Edits, edit_function
from verilocc_bench.edits.findings import Finding, FindingKind
from verilocc_bench.ir import Function, Instruction, Operand
from verilocc_bench.targets import get_target
from verilocc_bench.verification.symbolic.conditional import FALSE, Diagram
from verilocc_bench.verification.symbolic.edit_rules import edit_findings
from verilocc_bench.verification.symbolic.entry import entry_lanes
from verilocc_bench.verification.symbolic.places import Places
from verilocc_bench.verification.symbolic.symbolic_flow import Flow, FlowState
from verilocc_bench.verification.symbolic.symbolic_lanes import Lanes
from verilocc_bench.verification.symbolic.symbolic_program import (
    Compiler,
    Execute,
    Read,
    SymbolicProgram,
)
from verilocc_bench.verification.symbolic.symbolic_report import Reporter

STEPS = 300_000
"""The most blocks in the walks of all findings that are described; one is always described."""

OF_ONE_INSTRUCTION = 1_000


class Judgement(NamedTuple):
    """The findings that are described, and the number of further ones by kind."""

    told: tuple[Finding, ...]
    untold: dict[FindingKind, int]


class SymbolicChecker:
    """Judges answers for one function, from the function and its target alone.

    >>> SymbolicChecker(function).check({"%0": "v1"})  # doctest: +SKIP
    ()
    """

    def __init__(self, function: Function) -> None:
        self.function, self.target = function, get_target(function.target)

    @cached_property
    def _lanes(self) -> Lanes:
        return Lanes(self.function)

    @cached_property
    def _entry(self) -> frozenset[int]:
        return entry_lanes(self._lanes)

    def check(
        self, assignment: Mapping[str, str], edits: Edits | None = None
    ) -> tuple[Finding, ...]:
        """All findings about an answer, in a stable order; none if it is valid.

        `assignment` maps names of virtual registers to names of base registers.
        Raises InputError if the guards exceed the bounds.
        """
        return self.judge(assignment, edits).told

    def judge(
        self,
        assignment: Mapping[str, str],
        edits: Edits | None = None,
        at_most: int | None = None,
    ) -> Judgement:
        """Like `check`, but describes no more than `at_most` of the first findings.

        It describes fewer if the walks to the origins of values are very long.
        """
        edited, findings = edit_function(self.function, self.target, edits)
        new = edits.new if edits is not None else {}
        rejected = frozenset(new) - frozenset(edited.registers)
        places = Places(self.function, self.target, edited.registers, rejected, assignment)
        found = [*findings, *places.findings]
        more = 0
        if places.complete:
            found += edit_findings(edited, self.target, places)
            values, more = self._values(edited, places, edits is not None, at_most)
            found += values
        found.sort(key=Finding.sort_key)
        untold = Counter(finding.kind for finding in found[at_most:] if at_most is not None)
        if more:
            untold[FindingKind.WRONG_VALUE] += more
        return Judgement(tuple(found[:at_most]), dict(sorted(untold.items())))

    def _values(
        self, edited: EditedFunction, places: Places, with_edits: bool, at_most: int | None
    ) -> tuple[list[Finding], int]:
        """The findings about values, and the number of further ones that are not described."""
        lanes = self._lanes
        compiler = Compiler(lanes, edited, places)
        program = compiler.compile(self._entry)
        reporter = Reporter(lanes, compiler, places, program, with_edits)
        found = [
            *self._ties(compiler, reporter),
            *_entry_collisions(program, reporter),
            *_collisions(program, reporter),
        ]
        flow = Flow(lanes, program)
        wrong: list[Finding] = []
        more = 0

        def tell(step: Execute, read: Read, state: FlowState, condition: Diagram) -> None:
            nonlocal more
            if at_most is not None and _are_enough(wrong, at_most, step, reporter.steps):
                more += 1
            else:
                wrong.append(reporter.wrong_value(step, read, state, condition, flow))

        def watch(step: Execute, state: FlowState, acts: Diagram) -> None:
            read = step.guard_read
            if read is not None:
                row = state.rows.get(read.lane, 0)
                if not flow.holds(row, read.asked, state.reach):
                    tell(step, read, state, state.reach)
            if acts == FALSE:
                return
            for read in step.reads:
                row = state.rows.get(read.lane, 0)
                if not flow.holds(row, read.asked, acts):
                    tell(step, read, state, acts)

        flow.watch(watch)
        return found + wrong, more

    def _ties(self, compiler: Compiler, reporter: Reporter) -> Iterator[Finding]:
        """A finding for every use that does not lie in the register of its tied definition."""
        for block, index, instruction in self.function.instructions():
            for operand, use in enumerate(instruction.uses, len(instruction.definitions)):
                for number, definition in self._tied(instruction, use):
                    bits = [
                        compiler.operand_bit(block, index, each, self._lanes.first(location), 0)
                        for each, location in (
                            (number, definition.location),
                            (operand, use.location),
                        )
                    ]
                    if bits[0] != bits[1]:
                        tie = (definition, use)
                        yield reporter.tied_mismatch((block, index), operand, tie, bits)

    def _tied(self, instruction: Instruction, use: Operand) -> list[tuple[int, Operand]]:
        """The definitions, with their numbers, that must lie in the register of a use."""
        return [
            (number, definition)
            for number, definition in enumerate(instruction.definitions)
            if number == use.tied_to
            or (self.target.ties_equal_operands and definition.location == use.location)
        ]


def _are_enough(wrong: Sequence[Finding], at_most: int, step: Execute, steps: int) -> bool:
    """True if the findings so far are enough.

    The checker finds wrong values in the order of the program, but the values of
    one instruction in no order. So it finishes an instruction, unless that has
    very many.
    """
    if not wrong or (len(wrong) < at_most and steps <= STEPS):
        return False
    last = wrong[-1]
    is_of_another = (last.block, last.instruction) != (step.block, step.index)
    return is_of_another or len(wrong) >= at_most + OF_ONE_INSTRUCTION or steps > STEPS


def _entry_collisions(program: SymbolicProgram, reporter: Reporter) -> Iterator[Finding]:
    owners: dict[int, int] = {}
    for lane, bit in program.entry.items():
        owner = owners.setdefault(bit, lane)
        if owner != lane:
            yield reporter.entry_collision(lane, owner, bit)


def _collisions(program: SymbolicProgram, reporter: Reporter) -> Iterator[Finding]:
    """A finding for two lanes that one instruction writes to one place, even if it never acts."""
    for steps in program.blocks:
        for step in steps:
            if isinstance(step, Execute):
                for definition, other, bit in step.collisions:
                    yield reporter.collision(step, definition, other, bit)
