"""Decision diagrams of both judges against truth tables, and the bounds on their work."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping

import pytest

from verilocc_bench.analysis import conditions as conditions_module
from verilocc_bench.analysis.conditions import FALSE, TRUE, Conditions, add_lanes
from verilocc_bench.errors import InputError
from verilocc_bench.verification.symbolic import conditional
from verilocc_bench.verification.symbolic.conditional import (
    EVERYTHING,
    Diagram,
    Diagrams,
    floor_of,
    places_of,
    support_of,
)

VARIABLES = (2, 5, 6, 9)
Values = Mapping[int, bool]
Table = tuple[bool, ...]


def all_values() -> Iterator[dict[int, bool]]:
    for values in itertools.product((False, True), repeat=len(VARIABLES)):
        yield dict(zip(VARIABLES, values, strict=True))


def holds(conditions: Conditions, function: int, values: Values) -> bool:
    while function not in (FALSE, TRUE):
        side = conditions._high if values[conditions._variable[function]] else conditions._low
        function = side[function]
    return function == TRUE


def table(conditions: Conditions, function: int) -> Table:
    return tuple(holds(conditions, function, values) for values in all_values())


def drawn_conditions(seed: int, count: int = 24) -> tuple[Conditions, list[int]]:
    """Functions of the variables, made of each other by every operation."""
    conditions, generator = Conditions(), random.Random(seed)
    found = [FALSE, TRUE]
    found += [conditions.literal((v, value)) for v in VARIABLES for value in (False, True)]
    for _ in range(count):
        a, b = generator.choice(found), generator.choice(found)
        found.append(
            generator.choice(
                (
                    conditions.both,
                    conditions.either,
                    lambda a, _: conditions.negation(a),
                )
            )(a, b)
        )
    return conditions, found


@pytest.mark.parametrize("seed", range(4))
def test_conditions_are_their_truth_tables(seed: int) -> None:
    conditions, found = drawn_conditions(seed)
    for index, variable in enumerate(VARIABLES):
        for value in (False, True):
            expected = tuple(values[variable] == value for values in all_values())
            assert table(conditions, found[2 + 2 * index + value]) == expected
    tables = {function: table(conditions, function) for function in found}
    assert len(set(tables.values())) == len(tables)  # equal functions are equal numbers
    for a, b in itertools.product(found, repeat=2):
        both = tuple(x and y for x, y in zip(tables[a], tables[b], strict=True))
        either = tuple(x or y for x, y in zip(tables[a], tables[b], strict=True))
        assert table(conditions, conditions.both(a, b)) == both
        assert table(conditions, conditions.either(a, b)) == either
        assert table(conditions, conditions.negation(a)) == tuple(not x for x in tables[a])
    for a in found:
        for variables in ((2,), (9,), (5, 6), (9, 2), VARIABLES, (), (7,)):
            expected = tuple(
                any(holds(conditions, a, {**values, **other}) for other in _others(variables))
                for values in all_values()
            )
            assert table(conditions, conditions.without(a, variables)) == expected
        depends = {
            variable
            for variable in VARIABLES
            if any(
                holds(conditions, a, {**values, variable: False})
                != holds(conditions, a, {**values, variable: True})
                for values in all_values()
            )
        }
        assert conditions.support(a) == depends


def _others(variables: tuple[int, ...]) -> Iterator[dict[int, bool]]:
    for values in itertools.product((False, True), repeat=len(variables)):
        yield dict(zip(variables, values, strict=True))


def lane_tables(conditions: Conditions, lanes: Mapping[int, int]) -> dict[int, Table]:
    """The condition of each of 6 lanes as a table; disjoint sets and no false ones."""
    seen = 0
    for condition, mask in lanes.items():
        assert mask
        assert not mask & seen
        assert condition != FALSE
        seen |= mask
    nothing = table(conditions, FALSE)
    found = dict.fromkeys(range(6), nothing)
    for condition, mask in lanes.items():
        for lane in range(6):
            if mask >> lane & 1:
                found[lane] = table(conditions, condition)
    return found


@pytest.mark.parametrize("seed", range(12))
def test_sets_of_lanes_under_conditions(seed: int) -> None:
    conditions, found = drawn_conditions(seed)
    generator = random.Random(seed)

    def drawn() -> dict[int, int]:
        lanes: dict[int, int] = {}
        for lane in range(6):
            if generator.random() < 0.8:
                add_lanes(lanes, generator.choice(found), 1 << lane)
        return lanes

    for _ in range(6):
        a, b, condition = drawn(), drawn(), generator.choice(found)
        first, second = lane_tables(conditions, a), lane_tables(conditions, b)
        union = lane_tables(conditions, conditions.union(a, b))
        restricted = lane_tables(conditions, conditions.restrict(a, condition))
        only = table(conditions, condition)
        meeting = conditions.meeting(a, b)
        keep = generator.getrandbits(10)
        forgotten = lane_tables(conditions, conditions.forget(a, keep))
        gone = tuple(v for v in VARIABLES if not keep >> v & 1)
        for lane in range(6):
            pairs = list(zip(first[lane], second[lane], strict=True))
            assert union[lane] == tuple(x or y for x, y in pairs)
            assert restricted[lane] == tuple(
                x and y for x, y in zip(first[lane], only, strict=True)
            )
            assert bool(meeting >> lane & 1) == any(x and y for x, y in pairs)
            own = [c for c, mask in a.items() if mask >> lane & 1] or [FALSE]
            assert forgotten[lane] == table(conditions, conditions.without(own[0], gone))


def test_lanes_are_added_to_those_of_the_same_condition() -> None:
    lanes: dict[int, int] = {}
    add_lanes(lanes, TRUE, 1)
    add_lanes(lanes, TRUE, 4)
    add_lanes(lanes, FALSE, 8)
    add_lanes(lanes, 5, 0)
    assert lanes == {TRUE: 5}


def test_what_is_equal_or_empty_costs_nothing() -> None:
    conditions = Conditions()
    p = conditions.literal((2, True))
    conditions.negation(p)
    before = conditions.work
    a, b = {p: 1}, {p: 1}
    assert conditions.union(a, b) is a
    assert conditions.union(a, {}) is a
    assert conditions.union({}, b) is b
    assert conditions.restrict(a, TRUE) is a
    always = {TRUE: 7}
    assert conditions.forget(always, 0) is always
    assert conditions.both(TRUE, p) == conditions.either(FALSE, p) == p
    assert conditions.work == before


def test_parts_that_conditions_share_are_looked_at_once() -> None:
    """The parity of forty predicates has 2 nodes for each of them, and 2**40 paths."""
    conditions, parity = Conditions(), FALSE
    for variable in range(40):
        own = conditions.literal((variable, True))
        other = conditions.negation(parity)
        parity = conditions.either(
            conditions.both(own, other), conditions.both(conditions.negation(own), parity)
        )
    assert conditions.support(parity) == set(range(40))
    assert conditions.without(parity, [39]) == TRUE


def test_steps_are_counted_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    conditions = Conditions()
    p, q = conditions.literal((2, True)), conditions.literal((5, True))
    assert conditions.work == 0
    conditions.both(p, q)
    assert conditions.work == 1
    conditions.both(p, q)  # remembered
    assert conditions.work == 1
    conditions.union({p: 1, q: 2, TRUE: 4}, {p: 2, q: 1})
    assert conditions.work == 1 + 6 + 2
    conditions.meeting({p: 1, q: 2}, {p: 2, q: 1, TRUE: 4})
    assert conditions.work == 9 + 6 + 3
    conditions.restrict({p: 1, q: 2}, p)
    assert conditions.work == 18 + 2
    monkeypatch.setattr(conditions_module, "WORK_LIMIT", 24)
    conditions.spend(4)
    with pytest.raises(InputError, match="depend on each other in too many ways to analyse"):
        conditions.spend(1)


def test_a_condition_depends_on_so_many_predicates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions_module, "DEPTH_LIMIT", 3)
    conditions = Conditions()
    three = TRUE
    for variable in (7, 5, 3):
        three = conditions.both(conditions.literal((variable, True)), three)
    other = conditions.negation(three)
    assert conditions.support(other) == {7, 5, 3}
    with pytest.raises(InputError, match="depend on more than 3 predicates at once"):
        conditions.both(conditions.literal((1, True)), three)


# The symbolic checker's diagrams: sets of places in the leaves.


def leaf(diagram: Diagram, values: Values) -> int:
    while not isinstance(diagram, int):
        diagram = diagram.high if values[diagram.variable] else diagram.low
    return diagram


def leaves(diagram: Diagram) -> tuple[int, ...]:
    return tuple(leaf(diagram, values) for values in all_values())


def well_formed(diagram: Diagram) -> bool:
    """Reduced, ordered, and with the right figures at each node."""
    if isinstance(diagram, int):
        return floor_of(diagram) == diagram and support_of(diagram) == 0
    floor, places = EVERYTHING, 0
    for each in leaves(diagram):
        floor &= each
        places |= each if each != EVERYTHING else 0
    below = [side for side in (diagram.low, diagram.high) if not isinstance(side, int)]
    depends = 1 << diagram.variable
    for side in below:
        depends |= support_of(side)
    return (
        leaves(diagram.low) != leaves(diagram.high)
        and all(side.variable > diagram.variable and well_formed(side) for side in below)
        and (floor_of(diagram), places_of(diagram), support_of(diagram)) == (floor, places, depends)
    )


def drawn_diagrams(seed: int) -> tuple[Diagrams, list[Diagram], list[Diagram]]:
    """Conditions and diagrams."""
    diagrams, generator = Diagrams(), random.Random(seed)
    tests: list[Diagram] = [conditional.FALSE, conditional.TRUE]
    tests += [diagrams.literal(v, value) for v in VARIABLES for value in (False, True)]
    for _ in range(10):
        a, b = generator.choice(tests), generator.choice(tests)
        tests.append(diagrams.either(a, b) if generator.random() < 0.5 else diagrams.meet(a, b))
    sets: list[Diagram] = [EVERYTHING, 0, 1, 6, 7, 10]
    for _ in range(14):
        condition = generator.choice(tests)
        sets.append(diagrams.choose(condition, generator.choice(sets), generator.choice(sets)))
    return diagrams, tests, sets


@pytest.mark.parametrize("seed", range(8))
def test_diagrams_are_their_tables(seed: int) -> None:
    diagrams, tests, sets = drawn_diagrams(seed)
    generator = random.Random(seed)
    for index, variable in enumerate(VARIABLES):
        for value in (False, True):
            expected = tuple(-(values[variable] == value) for values in all_values())
            assert leaves(tests[2 + 2 * index + value]) == expected
    tables = {leaves(diagram): diagram for diagram in (*tests, *sets)}
    for diagram in (*tests, *sets):
        assert well_formed(diagram)
        other = tables[leaves(diagram)]
        assert other is diagram or (isinstance(diagram, int) and other == diagram)
    for _ in range(60):
        c, d = generator.choice(tests), generator.choice(tests)
        a, b = generator.choice(sets), generator.choice(sets)
        variable = generator.choice((*VARIABLES, 7))
        made = {
            "meet": diagrams.meet(a, b),
            "and": diagrams.meet(c, d),
            "or": diagrams.either(c, d),
            "not": diagrams.negation(c),
            "choose": diagrams.choose(c, a, b),
            "within": diagrams.within(c, a),
            "merge": diagrams.merge(c, a, d, b),
            "forget": diagrams.forget(a, variable),
            "exists": diagrams.exists(c, variable),
            "change": diagrams.transform(a, lambda places: places & ~2 | 32),
        }
        for values in all_values():
            x, y, p, q = (leaf(each, values) for each in (a, b, c, d))
            both = [{**values, variable: value} for value in (False, True)]
            merged = (x if p else EVERYTHING) & (y if q else EVERYTHING)
            expected = {
                "meet": x & y,
                "and": p & q,
                "or": p | q,
                "not": ~p,
                "choose": x if p else y,
                "within": x if p else EVERYTHING,
                "merge": merged if p or q else None,
                "forget": leaf(a, both[0]) & leaf(a, both[1]),
                "exists": leaf(c, both[0]) | leaf(c, both[1]),
                "change": x if x == EVERYTHING else x & ~2 | 32,
            }
            for name, diagram in made.items():
                if expected[name] is not None:
                    if name == "merge" and (a is b or c is d or (isinstance(a, int) and a == b)):
                        assert p == 0 or q == 0 or leaf(diagram, values) == merged
                    else:
                        assert leaf(diagram, values) == expected[name], name
        assert all(well_formed(diagram) for diagram in made.values())


def test_visits_are_counted_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    diagrams = Diagrams()
    p, q = diagrams.literal(2, True), diagrams.literal(5, True)
    assert diagrams.work == 0
    both = diagrams.meet(p, q)
    assert diagrams.work == 2
    assert diagrams.meet(p, q) is both
    assert diagrams.work == 2
    assert diagrams.choose(p, q, 0) is both
    assert diagrams.work == 3
    assert diagrams.choose(p, q, 0) is both
    assert diagrams.work == 3
    diagrams.forget(both, 5)
    assert diagrams.work == 5
    diagrams.transform(both, abs)
    assert diagrams.work == 7
    monkeypatch.setattr(conditional, "WORK_LIMIT", 8)
    diagrams.transform(p, abs)
    with pytest.raises(InputError, match=r"guards .* limit is 8 steps"):
        diagrams.transform(p, abs)


def test_a_diagram_depends_on_so_many_predicates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditional, "SUPPORT_LIMIT", 3)
    diagrams = Diagrams()
    three: Diagram = conditional.TRUE
    for variable in (7, 5, 3):
        three = diagrams.meet(diagrams.literal(variable, True), three)
    with pytest.raises(InputError, match="more than 3 predicates"):
        diagrams.meet(diagrams.literal(1, True), three)
