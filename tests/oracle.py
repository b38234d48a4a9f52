"""A brute-force judge of assignments, for the tests.

It shares nothing with the package but the IR: no liveness, no dataflow, no
bit sets. From every definition of every lane it walks the paths of the
control-flow graph, step by step, until the lane is written again; wherever a
use of the lane can be reached, every instruction on the way there must leave
the register alone. An assignment is wrong exactly when some path destroys a
value between its definition and a use.

Places are numbered: every instruction is one, and so is the end of every
block. An instruction has two moments: 2 * place, when early-clobber
definitions are written and before uses are read, and 2 * place + 1, when the
others are, after. The moment of the entry is -1.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from verilocc_bench.ir import FixedUnits, Function, Operand

Lane = tuple[object, int]
"""(virtual register, lane) or (file, unit)."""

ENTRY = -1


class Oracle:
    """Judges assignments of one function by walking paths."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.writes: dict[Lane, set[int]] = defaultdict(set)
        self.needed: dict[Lane, set[int]] = defaultdict(set)
        self.following: list[list[int]] = []
        self.uses: dict[int, set[Lane]] = {}
        self.stops: dict[int, set[Lane]] = {}
        self._pairs: dict[tuple[Lane, Lane], bool] = {}
        self._units: dict[tuple[Lane, ...], bool] = {}
        self._number_places()
        for lane, place in self._read_instructions():
            self._walk(lane, place)

    def _number_places(self) -> None:
        starts = []
        count = 0
        for block in self.function.blocks:
            starts.append(count)
            count += len(block.instructions) + 1
        for start, block in zip(starts, self.function.blocks, strict=True):
            for index in range(len(block.instructions)):
                self.following.append([start + index + 1])
            self.following.append([starts[successor] for successor in block.successors])

    def _lanes(self, operand: Operand) -> list[Lane]:
        location = operand.location
        if isinstance(location, FixedUnits):
            return [(location.file, location.first + i) for i in range(location.count)]
        return [(location.register, location.first + i) for i in range(location.count)]

    def _read_instructions(self) -> list[tuple[Lane, int]]:
        """Fills in writes, uses and stops; returns where each definition is."""
        found: list[tuple[Lane, int]] = []
        for units in self.function.live_ins:
            for lane in self._lanes(Operand(units)):
                self.writes[lane].add(ENTRY)
                found.append((lane, ENTRY))
        place = 0
        for block in self.function.blocks:
            for instruction in block.instructions:
                written: dict[Lane, bool] = {}
                ended: set[Lane] = set()
                for operand in instruction.definitions:
                    for lane in self._lanes(operand):
                        written[lane] = written.get(lane, False) or operand.early_clobber
                    location = operand.location
                    if operand.undef and not isinstance(location, FixedUnits):
                        width = self.function.virtual_registers[location.register].width
                        ended |= {(location.register, lane) for lane in range(width)}
                for lane, early in written.items():
                    moments = {2 * place + 1} | ({2 * place} if early else set())
                    self.writes[lane] |= moments
                    self.needed[lane] |= moments
                    found.append((lane, place))
                self.stops[place] = written.keys() | ended
                self.uses[place] = {
                    lane
                    for operand in instruction.uses
                    if not operand.undef
                    for lane in self._lanes(operand)
                }
                place += 1
            place += 1  # the end of the block
        return found

    def _walk(self, lane: Lane, definition: int) -> None:
        """Marks the moments between one definition and the uses that it can reach."""
        before: dict[int, list[int]] = {}
        reads: list[int] = []
        start = definition + 1
        pending = [start]
        before[start] = []
        while pending:
            place = pending.pop()
            if lane in self.uses.get(place, ()):
                reads.append(place)
            if lane in self.stops.get(place, ()):
                continue
            for after in self.following[place]:
                if after not in before:
                    before[after] = []
                    pending.append(after)
                before[after].append(place)
        needed = self.needed[lane]
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
        """Whether two lanes in one unit destroy each other's values."""
        key = (a, b)
        if key not in self._pairs:
            found = not self.needed[b].isdisjoint(self.writes[a])
            self._pairs[key] = found or not self.needed[a].isdisjoint(self.writes[b])
        return self._pairs[key]

    def overlaps(self, bases: Mapping[int, tuple[str, int]]) -> bool:
        """Whether some unit is destroyed, for bases (file, index) of virtual registers."""
        occupants: dict[tuple[object, int], list[Lane]] = defaultdict(list)
        for lane in self.writes.keys() | self.needed.keys():
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
        """Whether an answer is valid, judged from the IR alone."""
        classes = self.function.virtual_registers
        if answer.keys() != {f"%{number}" for number in range(len(classes))}:
            return False
        bases: dict[int, tuple[str, int]] = {}
        for number, register_class in enumerate(classes):
            base = self._base(answer[f"%{number}"], register_class.width)
            if base is None or not self._is_legal(base, number):
                return False
            bases[number] = base
        return not self.overlaps(bases)

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

    def _is_legal(self, base: tuple[str, int], number: int) -> bool:
        register_class = self.function.virtual_registers[number]
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
