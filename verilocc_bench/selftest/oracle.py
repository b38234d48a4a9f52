"""A brute-force judge of assignments that shares only the IR with the other judges.

It uses no liveness, no dataflow and no bit sets. From every definition of every
lane it walks the paths of the control-flow graph, step by step, until the lane
is written again. Every instruction on the way to a use of the lane must leave the
register alone. An assignment is wrong exactly if some path destroys a value
between its definition and a use. For guarded instructions `oracle_guards` walks
the paths. The oracle cannot judge edits.

Cost: quadratic in the function; one look-up for every further answer that puts
the same lanes together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from verilocc_bench.ir import Function, Operand, RegisterClass
from verilocc_bench.selftest.oracle_guards import GuardedPaths
from verilocc_bench.selftest.oracle_program import ENTRY, Lane, OracleProgram, lanes_of


class Oracle:
    """Judges assignments of one function by walking paths."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.program = OracleProgram(function)
        self._guarded = GuardedPaths(self.program) if self.program.guards else None
        self._needed: dict[Lane, set[int]] = defaultdict(set)
        self._pairs: dict[tuple[Lane, Lane], bool] = {}
        self._units: dict[tuple[Lane, ...], bool] = {}
        self._bases: dict[tuple[str, RegisterClass], tuple[str, int] | None] = {}
        self._ties = [
            (instruction.definitions[use.tied_to], use)
            for _, _, instruction in function.instructions()
            for use in instruction.uses
            if use.tied_to is not None
        ]
        if self._guarded is None:
            for lane, places in self.program.definitions.items():
                # A written lane is needed at that moment, even unread; a live-in only if read.
                self._needed[lane] |= self.program.writes[lane] - {ENTRY}
                for place in places:
                    self._walk(lane, place)

    def _walk(self, lane: Lane, definition: int) -> None:
        """Marks the moments between one definition and the uses that it can reach."""
        program = self.program
        before: dict[int, list[int]] = {}
        reads: list[int] = []
        start = definition + 1
        pending = [start]
        before[start] = []
        while pending:
            place = pending.pop()
            if lane in program.uses.get(place, ()):
                reads.append(place)
            if lane in program.stops.get(place, ()):
                continue
            for after in program.following[place]:
                if after not in before:
                    before[after] = []
                    pending.append(after)
                before[after].append(place)
        needed = self._needed[lane]
        passed: set[int] = set()
        pending = reads
        for place in reads:
            needed.add(2 * place)
        if reads:
            needed.add(2 * definition + 1)
        while pending:
            for place in before[pending.pop()]:
                if place not in passed:
                    passed.add(place)
                    pending.append(place)
        for place in passed:
            needed.add(2 * place)
            needed.add(2 * place + 1)

    def collide(self, a: Lane, b: Lane) -> bool:
        """True if two lanes in one unit destroy each other's values."""
        key = (a, b)
        if key not in self._pairs:
            if self._guarded is not None:
                self._pairs[key] = self._guarded.collide(a, b)
            else:
                writes, needed = self.program.writes, self._needed
                apart = needed[b].isdisjoint(writes[a]) and needed[a].isdisjoint(writes[b])
                self._pairs[key] = not apart
        return self._pairs[key]

    def overlaps(self, bases: Mapping[int, tuple[str, int]]) -> bool:
        """True if two lanes destroy each other; `bases` are (file, index) of virtual registers."""
        occupants: dict[tuple[object, int], list[Lane]] = defaultdict(list)
        for lane in list(self.program.writes):
            if isinstance(lane[0], str):
                occupants[lane].append(lane)
        for number, (file, index) in bases.items():
            for offset in range(self.function.virtual_registers[number].width):
                occupants[file, index + offset].append((number, offset))
        return any(
            self._unit_collides(tuple(lanes)) for lanes in occupants.values() if len(lanes) > 1
        )

    def _unit_collides(self, lanes: tuple[Lane, ...]) -> bool:
        if lanes not in self._units:
            self._units[lanes] = any(
                self.collide(a, b)
                for n, a in enumerate(lanes)
                for b in lanes[n + 1 :]
                if a[0] != b[0]
            )
        return self._units[lanes]

    def judge(self, answer: Mapping[str, str]) -> bool:
        """True if an answer is valid, judged from the IR alone."""
        classes = self.function.virtual_registers
        if answer.keys() != {f"%{number}" for number in range(len(classes))}:
            return False
        bases: dict[int, tuple[str, int]] = {}
        for number, register_class in enumerate(classes):
            name = answer[f"%{number}"]
            key = (name, register_class)
            if key not in self._bases:
                found = self._base(name, register_class.width)
                is_legal = found is not None and self._is_legal(found, register_class)
                self._bases[key] = found if is_legal else None
            base = self._bases[key]
            if base is None:
                return False
            bases[number] = base
        return self._keeps_ties(bases) and not self.overlaps(bases)

    def _keeps_ties(self, bases: Mapping[int, tuple[str, int]]) -> bool:
        """True if tied operands lie in the same units; undef operands count, too."""

        def units(operand: Operand) -> list[tuple[str, int]]:
            found: list[tuple[str, int]] = []
            for name, number in lanes_of(operand):
                if isinstance(name, str):
                    found.append((name, number))
                else:
                    file, index = bases[name]
                    found.append((file, index + number))
            return found

        return all(units(definition) == units(use) for definition, use in self._ties)

    def _base(self, name: str, width: int) -> tuple[str, int] | None:
        for file in self.function.files:
            if file.unit_names:
                if name == file.name and width == file.count:
                    return file.name, 0
                if name in file.unit_names:
                    return file.name, file.unit_names.index(name)
        letters = name.rstrip("0123456789")
        digits = name[len(letters) :]
        if not digits or not digits.isascii() or str(int(digits)) != digits:
            return None
        numbered = {file.name for file in self.function.files if not file.unit_names}
        return (letters, int(digits)) if letters in numbered else None

    def _is_legal(self, base: tuple[str, int], register_class: RegisterClass) -> bool:
        file, index = base
        units = set(range(index, index + register_class.width))
        for reserved in self.function.reserved:
            if reserved.file == file and units & set(
                range(reserved.first, reserved.first + reserved.count)
            ):
                return False
        budget = {f.name: f.count for f in self.function.files}
        if max(units) >= budget[file]:
            return False
        return any(
            r.file == file and index in range(r.first, r.last + 1, r.step)
            for r in register_class.ranges
        )
