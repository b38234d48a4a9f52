"""Paths of a function whose instructions are guarded, for the brute-force judge.

A walk carries the predicate values that its path has decided. An instruction
whose guard is undecided acts in one continuation and not in the other. Writing a
predicate makes it undecided again. Definitions that no path from the entry can
bring about do not count. A block that the entry does not lead to is entered
under any decisions. A predicate that is read before it is written holds a value
from the entry on.

Cost: exponential in the predicates that decide about one lane.
"""

from __future__ import annotations

from collections import defaultdict

from verilocc_bench.selftest.oracle_program import ENTRY, Lane, OracleProgram

Decided = frozenset[tuple[Lane, bool]]
"""The predicate values that a path has decided."""

State = tuple[int, Decided]
"""A place, with the decisions of the path to it."""


class GuardedPaths:
    """All paths of one function that its guards allow."""

    def __init__(self, program: OracleProgram) -> None:
        self.following, self.entries = program.following, program.entries
        self.uses, self.stops = program.uses, program.stops
        self.guards, self.branches = program.guards, program.branches
        self.definitions, self.writes = program.definitions, program.writes
        self._paths: dict[tuple[Lane, frozenset[Lane]], dict[int, set[Decided]]] = {}
        self._ahead: dict[Lane, set[int]] = {}
        self._twice: set[Lane] | None = None
        self._useful: dict[Lane, set[int]] = {}
        self._states: dict[frozenset[Lane], dict[int, set[Decided]]] = {}
        self._after: dict[frozenset[Lane], dict[State, list[State]]] = defaultdict(dict)
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
        self._settle_entry()

    def collide(self, a: Lane, b: Lane) -> bool:
        """True if two lanes in one unit destroy each other's values."""
        return self._destroys(a, b) or self._destroys(b, a)

    def _settle_entry(self) -> None:
        """Finds the entry values: live-ins that are read, and predicates read before written."""
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

    def _destroys(self, writer: Lane, victim: Lane) -> bool:
        """True if on some path an instruction that acts writes one lane while the other is needed.

        A predicate matters if it guards a definition or a use of the victim, one
        of these writes, two branches on one path, or the definition of a
        predicate that matters. For all others the walk goes both ways.
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
        """The predicates that matter for a victim and for these places."""
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
        """The possible decisions at each place, with its own guard."""
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
        """The places that lead to a branch on a predicate without a write to it."""
        branches = [place for place, (guard, _) in self.branches.items() if guard == predicate]
        return self._backwards(predicate, branches)

    def _backwards(self, predicate: Lane, places: list[int]) -> set[int]:
        """The places that lead to one of `places` without a write to a predicate."""
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
        """True if the instruction at a place acts; its guard must be decided."""
        guard = self.guards.get(place)
        return guard is None or guard in decided

    def _needed_under(self, lane: Lane, tracked: frozenset[Lane]) -> dict[int, set[Decided]]:
        """The moments at which a lane must be left alone, with the decisions of the paths there.

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
        """The possible decisions about the guard of a place, if it matters."""
        guard = self.guards.get(place) or self.branches.get(place)
        if guard is None or guard[0] not in tracked:
            return [decided]
        known = [value for predicate, value in decided if predicate == guard[0]]
        return [decided | {(guard[0], value)} for value in known or (False, True)]

    def _beyond(self, place: int, decided: Decided) -> list[State]:
        """The states after a place whose guard is decided."""
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

    def _steps(self, state: State, tracked: frozenset[Lane]) -> list[State]:
        """The states after a state, with the guard of their own place decided."""
        known = self._after[tracked]
        if state not in known:
            known[state] = [
                (after, choice)
                for after, left in self._beyond(*state)
                for choice in self._choices(after, left, tracked)
            ]
        return known[state]

    def _places_ahead_of(self, predicate: Lane) -> set[int]:
        """The places that lead to something the predicate guards without a write to it."""
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
        """The places that lead to a use of a lane; the walk stops beyond them."""
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
        """All states that a value reaches, with their predecessors, and the states that read it."""
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
            for following in self._steps(state, tracked):
                if following[0] in ahead:
                    if following not in before:
                        before[following] = []
                        pending.append(following)
                    before[following].append(state)
        return before, reads
