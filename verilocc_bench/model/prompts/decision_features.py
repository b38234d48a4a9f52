"""Features by which to choose a base for a virtual register, given what is placed.

Sizes that vary over orders of magnitude are shown as their number of binary
digits: 0 is 0, 1 is 1, 2 and 3 are 2, 4 to 7 are 3, and so on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from verilocc_bench.allocators.register_state import FIXED, RegisterState, base_distances
from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.analysis.bank_conflicts import LOOP_WEIGHT
from verilocc_bench.analysis.interference import live_spans
from verilocc_bench.ir import FixedUnits, Instruction, format_class


class _ThreeSources(NamedTuple):
    """Three different 32-bit vector sources of one instruction: (register or FIXED, unit)."""

    weight: int
    sources: tuple[tuple[int, int], ...]


def decision_order(problem: AllocationProblem) -> list[int]:
    """Virtual registers: the widest first, then by first live point, then the longer-lived first.

    Wide registers need aligned room, which narrow ones would break up.
    """
    classes = problem.function.virtual_registers
    spans = live_spans(problem.liveness)

    def priority(register: int) -> tuple[int, int, int, int]:
        start, _, size = spans[register]
        return -classes[register].width, start, -size, register

    return sorted(range(len(classes)), key=priority)


class DecisionFeatures:
    """The features of bases of one function's virtual registers."""

    def __init__(self, problem: AllocationProblem) -> None:
        self.problem = problem

    def query_line(self, state: RegisterState, register: int) -> str:
        """What is asked: `%12 V2 2 v/2 lives 6 spare 5`, the class as a line of the header has it.

        `lives`: at how many points a lane of it is live, `spare`: how many
        units of the budget are neither in use nor sure to be, of the file of
        its class that has most; both in binary digits.
        """
        function = self.problem.function
        register_class = function.virtual_registers[register]
        files = {file.name: file for file in function.files}
        lives = self._spans[register][2].bit_length()
        spare = max(
            (
                self.problem.placements.first_unit[name] + files[name].count - self.top(state, name)
                for name in register_class.files
            ),
            default=0,
        )
        line = f"%{register} {format_class(register_class, files)}"
        return f"{line} lives {lives} spare {max(spare, 0).bit_length()}"

    def top(self, state: RegisterState, file: str) -> int:
        """The unit after the last of a file that is in use, or sure to be for its pressure."""
        first = self.problem.placements.first_unit[file]
        units = range(first, first + self.problem.function.file(file).count)
        used = next((u + 1 for u in reversed(units) if state.is_used(u)), first)
        return max(used, first + self._pressure.get(file, 0))

    def idle(self, state: RegisterState, register: int, base: int) -> int:
        """At how many points the units would be idle just before and after it, in binary digits."""
        lifetimes = state.lifetimes(register)
        points = (state.idle_points(life, unit) for unit, life in enumerate(lifetimes, base))
        return sum(points).bit_length()

    def spared_copies(self, state: RegisterState, register: int) -> dict[int, int]:
        """How many copies each base would make needless, given what is placed."""
        found: dict[int, int] = {}
        for other, distance in self._copies.get(register, ()):
            base = 0 if other == FIXED else state.placed.get(other)
            if base is not None and other != register:
                found[base + distance] = found.get(base + distance, 0) + 1
        return found

    def conflicts(self, state: RegisterState, register: int) -> ConflictCounter:
        """Counts the bank conflicts of this register's bases, with what is placed."""
        return ConflictCounter(self.problem, self._sites.get(register, ()), state, register)

    @cached_property
    def _pressure(self) -> dict[str, int]:
        """The pressure of each file; of scored files only if the function has just one.

        A value that may be in either of two files (VGPRs and AGPRs) is sure to be in neither.
        """
        maximum = dict(self.problem.pressure.maximum)
        scored = [name for name in self.problem.target.vector_files if name in self._files]
        if len(scored) == 1:
            maximum[scored[0]] = maximum[VECTOR]
        return maximum

    @cached_property
    def _files(self) -> set[str]:
        """The files that classes and fixed operands of the function name."""
        function = self.problem.function
        found = {file for file, _ in self.problem.liveness.named_units}
        return found.union(*(each.files for each in function.virtual_registers))

    @cached_property
    def _spans(self) -> list[tuple[int, int, int]]:
        return live_spans(self.problem.liveness)

    @cached_property
    def _copies(self) -> dict[int, list[tuple[int, int]]]:
        opcodes = self.problem.target.copy_opcodes
        pairs = (
            (instruction.definitions[0], instruction.uses[0])
            for _, _, instruction in self.problem.function.instructions()
            if instruction.opcode in opcodes and instruction.definitions and instruction.uses
        )
        return base_distances(self.problem, pairs)

    @cached_property
    def _sites(self) -> dict[int, list[_ThreeSources]]:
        found: dict[int, list[_ThreeSources]] = {}
        for index, block in enumerate(self.problem.function.blocks):
            weight = LOOP_WEIGHT ** self.problem.loop_depths[index]
            for instruction in block.instructions:
                sources = tuple(dict.fromkeys(self._sources(instruction)))
                if len(sources) == 3:
                    for register in {register for register, _ in sources} - {FIXED}:
                        found.setdefault(register, []).append(_ThreeSources(weight, sources))
        return found

    def _sources(self, instruction: Instruction) -> Iterator[tuple[int, int]]:
        """The explicit sources of one unit that may be in a vector file."""
        vector = set(self.problem.target.vector_files)
        for operand in instruction.uses:
            location = operand.location
            if operand.implicit or location.count != 1:
                continue
            if isinstance(location, FixedUnits):
                if location.file in vector:
                    yield FIXED, self.problem.placements.first_unit[location.file] + location.first
            elif not vector.isdisjoint(
                self.problem.function.virtual_registers[location.register].files
            ):
                yield location.register, location.first


class ConflictCounter:
    """Counts, for a base, the reads of a register bank beyond what the bank delivers at once.

    Reads are weighted by loop depth, and the count is in binary digits. Sources
    that are not placed yet count for nothing. An operand that the instruction
    before has read (sm_80 can reuse it) counts as read again.
    """

    def __init__(
        self,
        problem: AllocationProblem,
        sites: list[_ThreeSources] | tuple[_ThreeSources, ...],
        state: RegisterState,
        register: int,
    ) -> None:
        self._problem, self._register = problem, register
        self._open: list[tuple[int, list[int], list[tuple[str, int]]]] = []
        for weight, sources in sites:
            own = [unit for other, unit in sources if other == register]
            placed = [
                self._bank(unit if other == FIXED else state.placed[other] + unit)
                for other, unit in sources
                if other == FIXED or other in state.placed
            ]
            if placed or len(own) > 1:
                self._open.append((weight, own, placed))
        self._known: dict[tuple[str, int], int] = {}

    def __call__(self, base: int) -> int:
        """The count for a base."""
        if not self._open:
            return 0
        file, bank = self._bank(base)
        if (file, bank) not in self._known:
            self._known[file, bank] = self._count(base).bit_length()
        return self._known[file, bank]

    def _count(self, base: int) -> int:
        ports, total = self._problem.target.bank_ports, 0
        for weight, own, placed in self._open:
            banks = Counter([*placed, *(self._bank(base + unit) for unit in own)])
            total += weight * sum(max(0, count - ports) for count in banks.values())
        return total

    def _bank(self, unit: int) -> tuple[str, int]:
        register = self._problem.placements.register(unit)
        return register.file, register.index % self._problem.target.file(register.file).banks
