"""A brute-force judge of assignments, for the tests.

It shares nothing with the package but the IR: no liveness, no dataflow, no
bit sets. From every definition of every lane it walks the paths of the
control-flow graph, step by step, until the lane is written again; wherever a
use of the lane can be reached, every instruction on the way there must leave
the register alone. An assignment is wrong exactly when some path destroys a
value between its definition and a use.

Where instructions are guarded, the walk carries what the path has decided about
predicates: an instruction whose guard is not decided yet acts in one
continuation and does not in the other. A predicate that is written is
undecided again. Definitions that no path from the entry can bring about count
for nothing; a block that no edge leads to from there is entered with anything
decided. A predicate that is read before it is written holds a value from the
entry on.

Places are numbered: every instruction is one, and so is the end of every
block. An instruction has two moments: 2 * place, when early-clobber
definitions are written and before uses are read, and 2 * place + 1, when the
others are, after. The moment of the entry is -1.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from verilocc_bench.ir import FixedUnits, Function, Guard, Operand

Lane = tuple[object, int]
"""(virtual register, lane) or (file, unit)."""

Decided = frozenset[tuple[Lane, bool]]
"""What a path has decided about predicates."""

State = tuple[int, Decided]
"""A place, with what the path to it has decided."""

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
        self.guards: dict[int, tuple[Lane, bool]] = {}
        self.branches: dict[int, tuple[Lane, bool]] = {}
        self._number_places()
        found = self._read_instructions()
        self.definitions: dict[Lane, list[int]] = defaultdict(list)
        for lane, place in found:
            self.definitions[lane].append(place)
            if not self.guards:
                self._walk(lane, place)
        self._paths: dict[tuple[Lane, frozenset[Lane]], dict[int, set[Decided]]] = {}
        self._ahead: dict[Lane, set[int]] = {}
        self._twice: set[Lane] | None = None
        self._useful: dict[Lane, set[int]] = {}
        self._states: dict[frozenset[Lane], dict[int, set[Decided]]] = {}
        self.preceding: dict[int, list[int]] = defaultdict(list)
        for place, following in enumerate(self.following):
            for after in following:
                self.preceding[after].append(place)
        self.used_at: dict[Lane, set[int]] = defaultdict(set)
        for place, used in self.uses.items():
            for lane in used:
                self.used_at[lane].add(place)
        for place, (guard, _) in self.guards.items():
            self.used_at[guard].add(place)
        if self.guards:
            self._settle_entry()

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
        self.entries = self._entries(starts)

    def _settle_entry(self) -> None:
        """Live-in registers that are read, and predicates read before they are written."""
        predicates = {guard for guard, _ in self.guards.values()}
        live_ins = {lane for lane, places in self.definitions.items() if ENTRY in places}
        for lane in predicates | live_ins:
            start: list[State] = [(0, frozenset())]
            read = self._explore(lane, start, self._tracked(lane, set()))[1]
            self.writes[lane].discard(ENTRY)
            if read:
                self.writes[lane].add(ENTRY)
                if lane not in live_ins:
                    self.definitions[lane].append(ENTRY)

    def _entries(self, starts: list[int]) -> list[int]:
        """The places where execution can begin: the entry, and blocks that it does not lead to."""
        found = {0}
        pending = [0]
        while pending:
            for successor in self.function.blocks[pending.pop()].successors:
                if successor not in found:
                    found.add(successor)
                    pending.append(successor)
        return [0, *(start for block, start in enumerate(starts) if block not in found)]

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
                if instruction.guard is not None:
                    self.guards[place] = self._guard(instruction.guard)
                place += 1
            if block.branch_guard is not None:
                self.branches[place] = self._guard(block.branch_guard)
            place += 1  # the end of the block
        return found

    def _guard(self, guard: Guard) -> tuple[Lane, bool]:
        """The predicate and the value with which the instruction acts."""
        return self._lanes(Operand(guard.location))[0], not guard.negated

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
        if key not in self._pairs and self.guards:
            self._pairs[key] = self._destroys(a, b) or self._destroys(b, a)
        elif key not in self._pairs:
            found = not self.needed[b].isdisjoint(self.writes[a])
            self._pairs[key] = found or not self.needed[a].isdisjoint(self.writes[b])
        return self._pairs[key]

    def _destroys(self, writer: Lane, victim: Lane) -> bool:
        """Whether on some path an instruction that acts writes one lane while the other is needed.

        Predicates that guard neither a definition of the victim, nor a use,
        nor these writes, nor two branches on one path, nor the definition of
        such a predicate, decide about nothing here: either way can be gone.
        """
        moments = self.writes[writer]
        if moments & self.writes[victim]:
            return True  # both written at once
        tracked = self._tracked(victim, {moment // 2 for moment in moments})
        needed = self._needed_under(victim, tracked)
        return any(
            self._acts(moment // 2, decided)
            for moment in moments
            for decided in needed.get(moment, ())
        )

    def _tracked(self, victim: Lane, places: set[int]) -> frozenset[Lane]:
        """The predicates that decide about a victim and about what happens at these places."""
        tracked = {self.guards[place][0] for place in places if place in self.guards}
        tracked |= self._correlated()
        tracked |= {
            self.guards[place][0]
            for place in self.guards
            if victim in self.uses[place] or victim in self.stops[place]
        }
        size = 0
        while size < len(tracked):
            size = len(tracked)
            tracked |= {
                guard
                for place, (guard, _) in self.guards.items()
                if not tracked.isdisjoint(self.stops[place])
            }
        return frozenset(tracked)

    def _possible(self, tracked: frozenset[Lane]) -> dict[int, set[Decided]]:
        """What can be decided at each place, its own guard included."""
        if tracked not in self._states:
            found: dict[int, set[Decided]] = defaultdict(set)
            pending: list[State] = [(place, frozenset()) for place in self.entries]
            while pending:
                place, decided = pending.pop()
                for choice in self._choices(place, decided, tracked):
                    if choice not in found[place]:
                        found[place].add(choice)
                        pending += self._beyond(place, choice)
            self._states[tracked] = found
        return self._states[tracked]

    def _correlated(self) -> set[Lane]:
        """Predicates on which a path can branch twice with the same value."""
        if self._twice is None:
            self._twice = {
                predicate
                for place, (predicate, _) in self.branches.items()
                for after in self.following[place]
                if after in self._reaching_branches(predicate)
            }
        return self._twice

    def _reaching_branches(self, predicate: Lane) -> set[int]:
        """The places from which a branch on a predicate can be reached with its value unchanged."""
        branches = [place for place, (guard, _) in self.branches.items() if guard == predicate]
        return self._backwards(predicate, branches)

    def _backwards(self, predicate: Lane, places: list[int]) -> set[int]:
        """The places from which one of these can be reached with a predicate unchanged."""
        before: dict[int, list[int]] = defaultdict(list)
        for place, following in enumerate(self.following):
            if place in self.guards or predicate not in self.stops.get(place, ()):
                for after in following:
                    before[after].append(place)
        found = set(places)
        pending = list(places)
        while pending:
            for place in before[pending.pop()]:
                if place not in found:
                    found.add(place)
                    pending.append(place)
        return found

    def _acts(self, place: int, decided: Decided) -> bool:
        """Whether the instruction there acts, by what is decided when it does or does not."""
        guard = self.guards.get(place)
        return guard is None or guard in decided

    def _needed_under(self, lane: Lane, tracked: frozenset[Lane]) -> dict[int, set[Decided]]:
        """The moments at which the lane must be left alone, with what paths have decided there.

        At the moments of a guarded instruction its guard is decided.
        """
        key = (lane, tracked)
        if key not in self._paths:
            needed: dict[int, set[Decided]] = defaultdict(set)
            for definition in self.definitions[lane]:
                for moment, decided in self._needed_after(lane, definition, tracked):
                    needed[moment].add(decided)
            self._paths[key] = needed
        return self._paths[key]

    def _choices(self, place: int, decided: Decided, tracked: frozenset[Lane]) -> list[Decided]:
        """The ways to decide the guard of a place, where it matters."""
        guard = self.guards.get(place) or self.branches.get(place)
        if guard is None or guard[0] not in tracked:
            return [decided]
        known = [value for predicate, value in decided if predicate == guard[0]]
        return [decided | {(guard[0], value)} for value in known or (False, True)]

    def _beyond(self, place: int, decided: Decided) -> list[State]:
        """What follows a place whose guard is decided."""
        following = self.following[place]
        if place in self.branches:
            predicate, value = self.branches[place]
            known = [decision for p, decision in decided if p == predicate]
            if known:
                following = following[:1] if known == [value] else following[1:]
        written = self.stops.get(place, set())
        if place in self.guards and self.guards[place] not in decided:
            written = set()
        left = [(p, value) for p, value in decided if p not in written]
        return [
            (after, frozenset(d for d in left if after in self._places_ahead_of(d[0])))
            for after in following
        ]

    def _places_ahead_of(self, predicate: Lane) -> set[int]:
        """The places from which something that the predicate guards can be reached as it is."""
        if predicate not in self._ahead:
            guarded = [*self.guards.items(), *self.branches.items()]
            places = [place for place, (guard, _) in guarded if guard == predicate]
            self._ahead[predicate] = self._backwards(predicate, places)
        return self._ahead[predicate]

    def _needed_after(self, lane: Lane, definition: int, tracked: frozenset[Lane]) -> set[State]:
        starts: list[State] = [(0, frozenset())]
        if definition != ENTRY:
            starts = [
                state
                for decided in self._possible(tracked)[definition]
                if self._acts(definition, decided)
                for state in self._beyond(definition, decided)
            ]
        before, reads = self._explore(lane, starts, tracked)
        needed = {(2 * place, decided) for place, decided in reads}
        passed: set[State] = set()
        pending = list(reads)
        while pending:
            for state in before[pending.pop()]:
                if state not in passed:
                    passed.add(state)
                    pending.append(state)
        for place, decided in passed:
            needed.add((2 * place, decided))
            needed.add((2 * place + 1, decided))
        return needed

    def _ahead_of_uses(self, lane: Lane) -> set[int]:
        """The places from which a use of a lane can be reached: beyond them nothing matters."""
        if lane not in self._useful:
            found = set(self.used_at[lane])
            pending = list(found)
            while pending:
                for place in self.preceding[pending.pop()]:
                    if place not in found:
                        found.add(place)
                        if place in self.guards or lane not in self.stops.get(place, ()):
                            pending.append(place)
            self._useful[lane] = found
        return self._useful[lane]

    def _explore(
        self, lane: Lane, starts: list[State], tracked: frozenset[Lane]
    ) -> tuple[dict[State, list[State]], list[State]]:
        """All states that a value can live to see, with those before each; and the reads."""
        before: dict[State, list[State]] = {
            (place, choice): []
            for place, decided in starts
            for choice in self._choices(place, decided, tracked)
        }
        pending = list(before)
        reads: list[State] = []
        ahead = self._ahead_of_uses(lane)
        while pending:
            state = pending.pop()
            place, decided = state
            guard = self.guards.get(place)
            acts = guard is None or guard in decided
            if (acts and lane in self.uses.get(place, ())) or (guard and guard[0] == lane):
                reads.append(state)
            if acts and lane in self.stops.get(place, ()):
                continue
            for after, left in self._beyond(place, decided):
                if after not in ahead:
                    continue
                for choice in self._choices(after, left, tracked):
                    if (after, choice) not in before:
                        before[after, choice] = []
                        pending.append((after, choice))
                    before[after, choice].append(state)
        return before, reads

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
