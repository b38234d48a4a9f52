"""What is outstanding where paths meet, on functions made by hand."""

from __future__ import annotations

from dataclasses import replace

from verilocc_bench.backends.nvidia.hazards import Hazard, HazardKind, find_hazards
from verilocc_bench.backends.nvidia.records import (
    RegisterReference,
    SassFunction,
    SassGuard,
    SassInstruction,
)

NO_BARRIERS = 7 << 110 | 7 << 113


def write_barrier(number: int) -> int:
    return number << 110 | 7 << 113


def wait(*numbers: int) -> int:
    return NO_BARRIERS | sum(1 << 116 + number for number in numbers)


def instruction(
    opcode: str,
    encoding: int = NO_BARRIERS,
    defines: int | None = None,
    uses: int | None = None,
    target: str | None = None,
) -> SassInstruction:
    return SassInstruction(
        address=0,
        line=1,
        opcode=opcode,
        operands=() if target is None else (target,),
        guard=None,
        never=False,
        definitions=() if defines is None else (RegisterReference("R", defines, 1, 0),),
        uses=() if uses is None else (RegisterReference("R", uses, 1, 1),),
        encoding=encoding,
        target=target,
        variable_latency=opcode.startswith(("LD", "ST")),
    )


def hazards(*instructions: SassInstruction, **labels: int) -> tuple[Hazard, ...]:
    return find_hazards(SassFunction("f", instructions, labels, 8))


def load_on_two_paths(*, waits: int) -> tuple[Hazard, ...]:
    """A load whose own barrier says that it is done, and after it another on one path alone.

    Loads read their addresses in order, so where the second follows, waiting for its barrier
    says that the first has read too. At the join only what holds on both paths counts.
    """
    return hazards(
        instruction("LDG.E", write_barrier(0), defines=0, uses=2),
        replace(instruction("BRA", target="join"), guard=SassGuard("P", 0, False)),
        instruction("LDG.E", write_barrier(1), defines=4, uses=6),
        instruction("NOP", waits),  # where the paths meet
        instruction("IADD3", defines=2),
        instruction("EXIT"),
        join=3,
    )


def test_where_paths_meet_a_barrier_counts_only_if_it_does_on_both() -> None:
    assert load_on_two_paths(waits=wait(0)) == ()
    (hazard,) = load_on_two_paths(waits=wait(1))
    assert hazard == Hazard(HazardKind.WRITE_AFTER_READ, 0, 4, ("R2",))


def test_what_is_outstanding_on_one_path_is_outstanding() -> None:
    found = hazards(
        replace(instruction("BRA", target="join"), guard=SassGuard("P", 0, False)),
        instruction("LDG.E", write_barrier(1), defines=4, uses=6),
        instruction("NOP"),  # where the paths meet
        instruction("IADD3", uses=4),
        instruction("EXIT"),
        join=2,
    )
    assert found == (Hazard(HazardKind.READ_AFTER_WRITE, 1, 3, ("R4",)),)
