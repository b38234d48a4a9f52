"""RegisterState: what it calls legal is what the verifier accepts, and nothing else."""

from __future__ import annotations

import random

import pytest

from tests.generated import random_function
from verilocc_bench.allocators.register_state import RegisterState
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import load_rows
from verilocc_bench.findings import FindingKind
from verilocc_bench.ir import parse_function
from verilocc_bench.verify import Verifier

ROWS = load_rows("mini").rows
SMALL = [row for row in ROWS if row.n_virtual_registers < 650]
ARCHITECTURES = ("gfx90a", "gfx942", "sm_80")


def choose_at_random(problem: AllocationProblem, generator: random.Random) -> RegisterState:
    """A state after legal choices, low bases preferred, until all is placed or one fits nowhere."""
    state = RegisterState(problem)
    order = list(range(len(problem.function.virtual_registers)))
    generator.shuffle(order)
    order.sort(key=lambda register: -problem.function.virtual_registers[register].width)
    for register in order:
        legal = list(state.legal(register))
        if not legal:
            break
        low = legal[: max(1, len(legal) // 3)]
        state.place(register, generator.choice(low))
    return state


def named(state: RegisterState) -> dict[str, str]:
    classes, placements = state.problem.function.virtual_registers, state.problem.placements
    return {f"%{r}": placements.legal[classes[r]][base] for r, base in state.placed.items()}


def is_complete(state: RegisterState) -> bool:
    return len(state.placed) == len(state.problem.function.virtual_registers)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_completed_choices_are_valid_on_real_kernels(arch: str) -> None:
    completed = 0
    for row in [row for row in SMALL if row.arch == arch][::2]:
        problem = AllocationProblem.from_text(row.normalized)
        for seed in range(2):
            state = choose_at_random(problem, random.Random(seed))
            if is_complete(state):
                completed += 1
                assert Verifier(problem).verify(named(state)).valid
    assert completed >= 2


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_legal_is_exactly_what_the_verifier_accepts_in_a_complete_answer(arch: str) -> None:
    generator = random.Random(7)
    refused = 0
    for row in [row for row in SMALL if row.arch == arch][:3]:
        problem = AllocationProblem.from_text(row.normalized)
        verifier, label = Verifier(problem), row.label
        assert label is not None
        classes, placements = problem.function.virtual_registers, problem.placements
        for register in generator.sample(range(len(classes)), 4):
            state = RegisterState(problem)
            for other, register_class in enumerate(classes):
                if other != register:
                    state.place(other, placements.by_name[register_class][label[f"%{other}"]])
            bases = placements.legal[classes[register]]
            valid = {
                base: name
                for base, name in bases.items()
                if verifier.verify({**label, f"%{register}": name}).valid
            }
            assert state.legal(register) == valid
            refused += len(bases) - len(valid)
    assert refused > 100


def test_legal_is_exact_after_every_choice_on_generated_functions() -> None:
    """Ties, early clobbers, guards: each base is judged with what is placed, nothing else."""
    legal = refused = tied = 0
    for seed in range(120):
        target = ("gfx942", "sm_80")[seed % 2]
        problem = AllocationProblem(random_function(seed, guarded=seed % 2 == 1, target=target))
        generator = random.Random(seed)
        verifier = Verifier(problem)
        classes, placements = problem.function.virtual_registers, problem.placements
        state = RegisterState(problem)
        for register in generator.sample(range(len(classes)), len(classes)):
            found = state.legal(register)
            bases = list(placements.legal[classes[register]].items())
            for base, name in generator.sample(bases, min(6, len(bases))):
                kinds = {
                    finding.kind
                    for finding in verifier.verify({**named(state), f"%{register}": name}).findings
                    if finding.kind is not FindingKind.MISSING
                }
                if base in found:
                    assert not kinds, (seed, register, name)
                    legal += 1
                elif kinds:
                    refused += 1
                    tied += FindingKind.TIED_MISMATCH in kinds
                else:
                    # Tied to a register that is tied to one elsewhere: wrong, though not yet seen.
                    assert len(state.bases(register)) <= 1, (seed, register, name)
            if found:
                state.place(register, generator.choice(list(found)))
    assert legal > 500
    assert refused > 200
    assert tied > 5


TIED = """\
verilocc-bench 1
target gfx942
registers v:8 a:0 s:0 vcc:2=vcc_lo,vcc_hi
class V 1 v
class V2 2 v/2
bb0(v7)
%0:V2=OP
%1=TIED %0.1~0
%2=TIED %1~0
%3=TIED v7~0
USE %0,%1,%2,%3
"""


def test_ties_bind_what_is_placed_and_what_is_tied_to_that() -> None:
    problem = AllocationProblem(parse_function(TIED, canonical=False))
    state = RegisterState(problem)
    assert list(state.legal(3).values()) == ["v7"]
    assert len(state.legal(2)) == 7  # v7 is still to be read
    state.place(0, 2)
    # %1 is in lane 1 of %0, and %2 in %1, which is not placed yet.
    assert state.bases(1) == state.bases(2) == {3: "v3"}
    assert state.conflicts(2, 4) == (0,)
    state.undo()
    state.place(2, 4)
    assert not state.bases(0)
    assert state.conflicts(0) == (2,)


def test_ties_of_lanes() -> None:
    text = TIED.replace("%1=TIED %0.1~0", "%1:V2.1!=TIED %0.1~0").replace("%1~0", "%1.0~0")
    state = RegisterState(AllocationProblem(parse_function(text, canonical=False)))
    state.place(0, 2)
    assert state.bases(1) == {2: "v2"}


def test_ties_that_contradict_each_other_leave_nothing() -> None:
    text = TIED.replace("%2=TIED %1~0", "%2=TIED %1~0\n%2=TIED %0.0~0")
    state = RegisterState(AllocationProblem(parse_function(text, canonical=False)))
    assert [len(state.legal(register)) for register in range(4)] == [0, 0, 0, 1]


def test_conflicts_are_the_placed_registers_that_block() -> None:
    found = 0
    for seed in range(120):
        problem = AllocationProblem(random_function(seed))
        generator = random.Random(seed)
        state = choose_at_random(problem, generator)
        if not state.placed:
            continue
        order = list(state.placed)
        last = state.undo()
        placed = dict(state.placed)
        every: set[int] = set()
        for base in problem.placements.legal[problem.function.virtual_registers[last]]:
            blocking = state.conflicts(last, base)
            assert list(blocking) == sorted(blocking, key=order.index)
            alone = [
                other for other in placed if not fits(problem, {other: placed[other]}, last, base)
            ]
            if fits(problem, {}, last, base):
                assert set(blocking) == set(alone)
            rest = {other: b for other, b in placed.items() if other not in blocking}
            assert fits(problem, rest, last, base) == fits(problem, {}, last, base)
            every |= set(blocking)
            found += len(blocking)
        assert set(state.conflicts(last)) == every
    assert found > 100


def fits(problem: AllocationProblem, placed: dict[int, int], register: int, base: int) -> bool:
    state = RegisterState(problem)
    for other, other_base in placed.items():
        state.place(other, other_base)
    return base in state.legal(register)


def test_undo_and_copy() -> None:
    row = SMALL[0]
    problem = AllocationProblem.from_text(row.normalized)
    state = RegisterState(problem)
    before = [state.legal(register) for register in range(20)]
    twin = state.copy()
    for register in range(20):
        state.place(register, next(iter(state.legal(register))))
    assert not twin.placed
    later = state.copy()
    assert [state.undo() for _ in range(20)] == list(range(19, -1, -1))
    assert [state.legal(register) for register in range(20)] == before
    assert len(later.placed) == 20
    assert later.undo() == 19


def test_misuse() -> None:
    problem = AllocationProblem.from_text(SMALL[0].normalized)
    state = RegisterState(problem)
    state.place(0, 5)
    with pytest.raises(ValueError, match="%0 is placed already"):
        state.place(0, 6)
    with pytest.raises(ValueError, match="ends beyond the last unit"):
        state.place(1, problem.placements.unit_count)
