"""What findings tell of colliding lanes: who defined them, who reads them next."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

import pytest

from tests.generated import random_function
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.edits.findings import Finding, FindingKind, InvolvedLane, Place
from verilocc_bench.ir import Function, parse_function
from verilocc_bench.selftest.oracle_program import ENTRY, Lane, OracleProgram
from verilocc_bench.verification import FastVerifier

AMD = """verilocc-bench 1
target gfx942
registers v:64 a:8 s:102 vcc:2=vcc_lo,vcc_hi
class V 1 v
class V2 2 v/2
class S2 2 s/2 vcc/2
"""
NVIDIA = """verilocc-bench 1
target sm_80
registers R:60 UR:63 P:7 UP:7
class R 1 R
class P 1 P
"""


def judge(body: str, *bases: str, header: str = AMD) -> list[Finding]:
    problem = AllocationProblem(parse_function(header + body, canonical=False))
    answer = {f"%{number}": base for number, base in enumerate(bases)}
    return list(FastVerifier(problem).verify(answer).findings)


def only(body: str, *bases: str, header: str = AMD) -> Finding:
    (finding,) = judge(body, *bases, header=header)
    return finding


def test_a_value_of_two_definitions_has_both() -> None:
    body = (
        "bb0->bb1,bb2\nbb1->bb3\n%0:V=ONE\nbb2->bb3\n%0=TWO\n"
        "bb3\n%1:V=KILL\nNOP\nUSE %0\nUSE %1\nUSE %0\n"
    )
    finding = only(body, "v0", "v0")
    assert finding.lanes == (
        InvolvedLane("%1", ((3, 0),), (3, 3)),
        InvolvedLane("%0", ((1, 0), (2, 0)), (3, 2)),
    )
    assert (finding.operand, finding.registers) == (0, ("%1", "%0"))
    assert finding.message == (
        "bb3 instruction 0 (KILL) writes %1 to v0, which holds %0, defined at bb1 instruction 0 "
        "or bb2 instruction 0 and next read at bb3 instruction 2"
    )


def test_the_message_names_three_definitions_and_counts_the_rest() -> None:
    arms = [f"bb{n}->bb6\n%0{':V' if n == 1 else ''}=OP\n" for n in range(1, 6)]
    body = f"bb0->bb1,bb2,bb3,bb4,bb5\n{''.join(arms)}bb6\n%1:V=KILL\nUSE %0,%1\n"
    finding = only(body, "v0", "v0")
    assert finding.lanes[1].defined == tuple((n, 0) for n in range(1, 6))
    assert "or bb3 instruction 0 or 2 more and next read" in finding.message


def test_a_loop_carries_values_to_reads_above() -> None:
    body = "bb0->bb1\n%0:V=INIT\nbb1->bb1,bb2\nUSE %0\n%0=STEP\n%1:V=KILL\nUSE %1\nbb2\n"
    finding = only(body, "v0", "v0")
    assert (finding.block, finding.instruction) == (1, 2)
    assert finding.lanes == (
        InvolvedLane("%1", ((1, 2),), (1, 3)),
        InvolvedLane("%0", ((1, 1),), (1, 0)),
    )


@pytest.mark.parametrize(
    ("header", "body", "bases", "lane"),
    [
        # Loops bring values back; of several reads the nearest is told, of equals the first.
        (AMD, "bb0->bb1\n%0:V=INIT\nbb1->bb1,bb2\n%1:V=KILL\nUSE %0,%1\n%0=STEP\nbb2\n"
         "NOP\n",
         "v0 v0", InvolvedLane("%0", ((0, 0), (1, 2)), (1, 1))),
        (AMD, "bb0->bb1,bb2\n%0:V=OP\n%1:V=KILL\nUSE %1\nbb1->bb3\nNOP\nNOP\nUSE %0\n"
         "bb2->bb3\nNOP\nUSE %0\nbb3\n",
         "v0 v0", InvolvedLane("%0", ((0, 0),), (2, 1))),
        (AMD, "bb0->bb1,bb2\n%0:V=OP\n%1:V=KILL\nUSE %1\nbb1->bb3\nNOP\nUSE %0\n"
         "bb2->bb3\nNOP\nUSE %0\nbb3\n",
         "v0 v0", InvolvedLane("%0", ((0, 0),), (1, 1))),
        (AMD, "bb0->bb1\n%0:V2=OLD\nbb1->bb1,bb2\nUSE %0.1\n%0.0!=NEW\n%0.1=NEW\n"
         "%1:V=KILL\nUSE %0.0,%1\nbb2\nNOP\n",
         "v2 v3", InvolvedLane("%0.1", ((1, 2),), (1, 0))),
        # The entry is a definition. A guarded one does not hide those before.
        (AMD, "bb0(v0)->bb0,bb1\n%0:V=OP\nUSE v0,%0\nv0=NEXT\nbb1\n",
         "v0", InvolvedLane("v0", ((0, -1), (0, 2)), (0, 1))),
        (NVIDIA, "bb0\n%0:R=ONE\n%1:P=SETP\n@%1 %0=TWO\n%2:R=KILL\nUSE %0,%2\n",
         "R0 P0 R0", InvolvedLane("%0", ((0, 0), (0, 2)), (0, 4))),
        # Where a guarded instruction acts, those of the opposite guard do not, nor their readers.
        (NVIDIA, "bb0\n%0:R=ONE\n%1:P=SETP\n@%1 %0=TWO\n@!%1 %2:R=KILL\n@%1 USE %0\n"
         "@!%1 USE %2\nNOP\nUSE %0\n",
         "R0 P0 R0", InvolvedLane("%0", ((0, 0),), (0, 7))),
        (NVIDIA, "bb0\n%0:R=ONE\n%1:P=SETP\n@%1 %0=TWO\n@!%1 %2:R=KILL\n@%1 USE %0\n"
         "@!%1 USE %2\nNOP\nUSE %0\n",
         "R0 P0 R0", InvolvedLane("%2", ((0, 3),), (0, 5))),
        (NVIDIA, "bb0\n%0:R=ONE\n%1:P=SETP\n@%1 %0=TWO\n%1=SETP\n@!%1 %2:R=KILL\n"
         "@%1 USE %0\n@!%1 USE %2\nNOP\nUSE %0\n",
         "R0 P0 R0", InvolvedLane("%0", ((0, 0), (0, 2)), (0, 8))),
        # Branches on the same guard, onwards and backwards; a guard is a use.
        (NVIDIA, "bb0->bb1,bb2\n%0:P=SETP\n%1:R=OP\n@!%0 %2:R=KILL\n@%0 BRA\nbb1\nUSE %1\n"
         "bb2\nNOP\nUSE %1,%2\n",
         "P0 R0 R0", InvolvedLane("%1", ((0, 1),), (2, 1))),
        (NVIDIA, "bb0->bb1,bb2\n%0:P=SETP\n%1:R=ONE\nbb1->bb3,bb4\n%1=TWO\n@%0 BRA\n"
         "bb2->bb3\nbb3\n@!%0 %2:R=KILL\nUSE %1,%2\nbb4\nNOP\n",
         "P0 R0 R0", InvolvedLane("%1", ((0, 1),), (3, 1))),
        (NVIDIA, "bb0\n%0:P=SETP\n%1:P=KILL\n@%0 USE %1\n",
         "P0 P0", InvolvedLane("%0", ((0, 0),), (0, 2))),
        # What a guard says holds in the blocks before and behind, until its predicate is written.
        (NVIDIA, "bb0->bb1\n%0:P=SETP\n%1:R=ONE\n@%0 %1=TWO\nbb1->bb2\nNOP\nbb2->bb3\n"
         "@!%0 %2:R=KILL\nbb3->bb4\nNOP\nbb4->bb5,bb6\n@%0 USE %1\n@%0 BRA\nbb5\nUSE %1\nbb6\n"
         "NOP\nUSE %1,%2\n",
         "P0 R0 R0", InvolvedLane("%1", ((0, 1),), (6, 1))),
        (NVIDIA, "bb0\n%0:P=SETP\n%1:R=OP\n@!%0 %2:R=KILL\n@%0 USE %2\nUSE %2\nUSE %1\n",
         "P0 R0 R0", InvolvedLane("%2", ((0, 2),), (0, 4))),
        (NVIDIA, "bb0->bb1\n%0:P=SETP\n%1:R=ONE\n@%0 %1=TWO\nbb1\n%0=SETP\n@!%0 %2:R=KILL\n"
         "USE %1,%2\n",
         "P0 R0 R0", InvolvedLane("%1", ((0, 1), (0, 2)), (1, 2))),
        (NVIDIA, "bb0->bb1,bb2\n%0:P=SETP\n%1:R=OP\n@%0 %2:R=KILL\n@%0 BRA\nbb1->bb3\nNOP\n"
         "NOP\nbb2->bb3\nUSE %1\nbb3\nUSE %1,%2\n",
         "P0 R0 R0", InvolvedLane("%1", ((0, 1),), (3, 0))),
    ],
)  # fmt: skip
def test_definitions_and_the_next_read(
    header: str, body: str, bases: str, lane: InvolvedLane
) -> None:
    finding = only(body, *bases.split(), header=header)
    assert {each.name: each for each in finding.lanes}[lane.name] == lane


def test_lanes_of_a_tuple_have_their_own_definitions() -> None:
    body = "bb0\n%0:V2.0!=LOW\n%0.1=HIGH\n%1:V=KILL\nUSE %0,%1\n"
    finding = only(body, "v2", "v3")
    assert finding.lanes[1] == InvolvedLane("%0.1", ((0, 1),), (0, 3))
    assert finding.unit == "v3"
    assert "writes %1 to v3, which holds %0.1, defined at bb0 instruction 1" in finding.message


def test_the_operand_is_the_definition_that_destroys() -> None:
    finding = only("bb0\n%0:V=OP\n%1:V,%2:V=TWO\nUSE %0,%1,%2\n", "v0", "v1", "v0")
    assert finding.operand == 1
    assert finding.lanes[0].name == "%2"


def test_a_dead_definition_is_said_to_be_never_read() -> None:
    finding = only("bb0\n%0:V=OP\n%1:V=DEAD\nUSE %0\n", "v0", "v0")
    assert finding.lanes[0] == InvolvedLane("%1", ((0, 1),), None)
    assert finding.message.endswith("next read at bb0 instruction 2; %1 is never read")


def test_two_definitions_of_one_instruction() -> None:
    finding = only("bb0\n%0:V,%1:V=TWO\nUSE %1\n", "v0", "v0")
    assert finding.lanes == (
        InvolvedLane("%0", ((0, 0),), None),
        InvolvedLane("%1", ((0, 0),), (0, 1)),
    )
    assert finding.message == (
        "bb0 instruction 0 (TWO) writes both %0 and %1 to v0: "
        "%0 is never read, %1 is next read at bb0 instruction 1"
    )


def test_an_early_clobber_destroys_what_its_instruction_reads() -> None:
    finding = only("bb0\n%0:V=OP\n%1:V,%2:V&=EARLY %0\nUSE %1,%2\n", "v0", "v1", "v0")
    assert finding.kind is FindingKind.EARLY_CLOBBER
    assert finding.operand == 1
    assert finding.lanes == (
        InvolvedLane("%2", ((0, 1),), (0, 2)),
        InvolvedLane("%0", ((0, 0),), (0, 1)),
    )
    assert finding.message == (
        "bb0 instruction 1 (EARLY) writes %2 to v0, which holds %0, "
        "defined at bb0 instruction 0 and still to be read by the same instruction"
    )


def test_an_early_clobber_that_destroys_more_than_that_is_an_overlap() -> None:
    finding = only("bb0\n%0:V=OP\n%1:V&=EARLY\nUSE %0,%1\n", "v0", "v0")
    assert finding.kind is FindingKind.OVERLAP
    assert finding.lanes[1] == InvolvedLane("%0", ((0, 0),), (0, 2))


def test_the_function_holds_its_live_ins_from_the_entry() -> None:
    finding = only("bb0(v0)\n%0:V=OP\nUSE v0,%0\n", "v0")
    assert finding.kind is FindingKind.FIXED_REGISTER_CLOBBERED
    assert finding.lanes[1] == InvolvedLane("v0", ((0, -1),), (0, 1))
    assert finding.message == (
        "bb0 instruction 0 (OP) writes %0 to v0, which holds the function's own v0, "
        "defined at the entry and next read at bb0 instruction 1"
    )


def test_fixed_definitions_destroy_too() -> None:
    first, second = judge("bb0\n%0:S2=OP\nvcc=V_CMP\nS_CBRANCH vcc\nUSE %0\n", "vcc")
    assert [f.lanes[0].name for f in (first, second)] == ["vcc_hi", "vcc_lo"]
    assert first.lanes[1] == InvolvedLane("%0.1", ((0, 0),), (0, 3))
    assert first.message.startswith(
        "bb0 instruction 1 (V_CMP) writes vcc_hi, which holds %0.1, defined at"
    )


def test_values_at_the_entry_itself() -> None:
    """A predicate that nothing writes has a value from the entry on; so has a live-in one."""
    finding = only("bb0(P0)\n@%0:P USE P0\n", "P0", header=NVIDIA)
    assert (finding.block, finding.instruction, finding.operand) == (0, -1, None)
    assert finding.lanes == (
        InvolvedLane("%0", ((0, -1),), (0, 0)),
        InvolvedLane("P0", ((0, -1),), (0, 0)),
    )
    assert finding.message == (
        "the entry leaves both %0 and the function's own P0 in P0: "
        "%0 is next read at bb0 instruction 0, P0 is next read at bb0 instruction 0"
    )


def test_tied_operands_tell_of_both() -> None:
    finding = only("bb0\n%0:V=OP\n%1:V=TIED %0,%0~0\nUSE %1\n", "v0", "v1")
    assert finding.kind is FindingKind.TIED_MISMATCH
    assert (finding.operand, finding.unit) == (2, "v1")
    assert finding.lanes == (
        InvolvedLane("%1", ((0, 1),), (0, 2)),
        InvolvedLane("%0", ((0, 0),), (0, 1)),
    )
    assert finding.message == (
        "bb0 instruction 1 (TIED) writes %1 to v1, tied to its use of %0 in v0, defined at "
        "bb0 instruction 0 and still to be read by the same instruction: "
        "the two must be in one register"
    )
    undef = only("bb0\n%0:V=OP\n%1:V=TIED %0!~0\nUSE %1\n", "v0", "v1")
    assert undef.lanes[1] == InvolvedLane("%0", ((0, 0),), None)


def test_what_a_guard_says_holds_until_its_predicate_is_written() -> None:
    """Where `@%0 KILL` acts, `@!%0` does not, until %0 has another value."""
    body = "bb0\n%0:P=SETP\n%1:R=OP\n@%0 %2:R=KILL\n{}@!%0 USE %1\nUSE %1\nUSE %2\n{}"

    def next_use(before: str = "", behind: str = "", kill: str = "%2:R") -> Place | None:
        lines = body.format(before, behind).replace("%2:R", kill)
        return only(lines, "P0", "R0", "R0", header=NVIDIA).lanes[1].next_use

    assert next_use() == (0, 4)
    assert next_use(behind="%0=SETP\n@%0 NOP\n") == (0, 4)  # written, but later
    assert next_use(before="%0=SETP\n") == (0, 4)
    # By the instruction itself, which acts by the old value.
    assert next_use(kill="%2:R,%0") == (0, 3)
    # The reader's guard is the value from before the instruction.
    reader = "bb0\n%0:P=SETP\n%1:R=OP\n@%0 %2:R=KILL\n@!%0 %0=SETP %1\nNOP %1\nUSE %2\n"
    assert only(reader, "P0", "R0", "R0", header=NVIDIA).lanes[1].next_use == (0, 4)


def test_two_that_act_by_opposite_guards_destroy_different_values() -> None:
    body = (
        "bb0\n%0:P=SETP\n%1:R=ONE\n@%0 %1=TWO\n@!%0 %2:R=KILL\n@%0 %3:R=KILL\n"
        "USE %1\n@!%0 USE %2\n@%0 USE %3\n"
    )
    first, second = judge(body, "P0", "R0", "R0", "R0", header=NVIDIA)
    assert [first.registers, second.registers] == [("%2", "%1"), ("%3", "%1")]
    assert first.lanes[1].defined == ((0, 1),)
    assert second.lanes[1].defined == ((0, 2),)


def test_a_reader_of_the_next_turn_of_a_loop_is_not_still_to_read() -> None:
    body = "bb0->bb1\n%0:V=INIT\nbb1->bb1,bb2\n%1:V=KILL %0\nUSE %1\nbb2\nNOP\n"
    finding = only(body, "v0", "v0")
    assert finding.lanes[1] == InvolvedLane("%0", ((0, 0),), (1, 0))
    assert finding.message == (
        "bb1 instruction 0 (KILL) writes %1 to v0, which holds %0, "
        "defined at bb0 instruction 0 and next read at bb1 instruction 0"
    )


def test_ties_to_what_has_no_value_or_a_register_of_its_own() -> None:
    undefined = only("bb0\n%0:V=TIED %1:V!~0\nUSE %0\n", "v0", "v1")
    assert undefined.message == (
        "bb0 instruction 0 (TIED) writes %0 to v0, tied to its use of %1 in v1: "
        "the two must be in one register"
    )
    assert undefined.lanes[1] == InvolvedLane("%1", (), None)
    fixed = only("bb0(v4)\n%0:V=TIED v4~0\nUSE %0\n", "v5")
    assert fixed.message == (
        "bb0 instruction 0 (TIED) writes %0 to v5, tied to its use of v4, defined at the entry "
        "and still to be read by the same instruction: the two must be in one register"
    )


def test_a_tied_value_that_the_instruction_replaces_is_never_read() -> None:
    """Where it acts the old %1 is gone, though it gives the guard another value, too."""
    body = "bb0\n%0:P=SETP\n%1:R=ONE\n@%0 %2:R,%1,%0=TIED %1!~0\nUSE %1,%2\n"
    finding = only(body, "P0", "R0", "R1", header=NVIDIA)
    assert finding.kind is FindingKind.TIED_MISMATCH
    assert finding.lanes[1] == InvolvedLane("%1", ((0, 1),), None)


def test_a_tie_that_holds_is_no_finding_beside_others() -> None:
    body = "bb0\n%0:V=OP\nv4=TIED %0~0\nUSE v4\n"
    assert [f.kind for f in judge(body, "v4", "v9")] == [FindingKind.UNKNOWN_VIRTUAL_REGISTER]
    assert [f.kind for f in judge(body, "v0", "v9")] == [
        FindingKind.UNKNOWN_VIRTUAL_REGISTER,
        FindingKind.TIED_MISMATCH,
    ]


def test_findings_as_json_say_the_same() -> None:
    body = "bb0\n%0:V2=OP\n%1:V=KILL\nUSE %0\n"
    problem = AllocationProblem(parse_function(AMD + body, canonical=False))
    verdict = FastVerifier(problem).verify({"%0": "v2", "%1": "v3"})
    document = json.loads(json.dumps(verdict.to_json()))
    assert document == verdict.to_json()
    (finding,) = document["findings"]
    assert finding.pop("message") == verdict.findings[0].message
    assert finding == {
        "kind": "overlap",
        "block": 0,
        "instruction": 1,
        "operand": 0,
        "registers": ["%1", "%0"],
        "unit": "v3",
        "lanes": [
            {"lane": "%1", "defined": [[0, 1]], "next_use": None},
            {"lane": "%0.1", "defined": [[0, 0]], "next_use": [0, 2]},
        ],
    }


class Walk:
    """The same histories, instruction by instruction, guards taken for what may happen."""

    def __init__(self, function: Function) -> None:
        self.program = program = OracleProgram(function)
        self.places = [
            (block, index)
            for block, each in enumerate(function.blocks)
            for index in range(len(each.instructions) + 1)
        ]
        self.number = {place: number for number, place in enumerate(self.places)} | {(0, -1): ENTRY}
        files = {file.name: file for file in function.files}
        self.lanes = {}
        guards = {lane for lane, _ in program.guards.values()}
        for owner, lane in guards.union(program.writes, *program.uses.values()):
            if isinstance(owner, str):
                name = files[owner].unit_name(lane)
            else:
                wide = function.virtual_registers[owner].width > 1
                name = f"%{owner}.{lane}" if wide else f"%{owner}"
            self.lanes[name] = owner, lane

    def after(self, place: int, passed: tuple[int, ...] = ()) -> Iterator[int]:
        """The next instructions, beyond the ends of blocks, which may be empty."""
        for each in [0] if place == ENTRY else self.program.following[place]:
            if each in self.program.uses:
                yield each
            elif each not in passed:
                yield from self.after(each, (*passed, each))

    def reads(self, place: int, lane: Lane) -> bool:
        guard = self.program.guards.get(place)
        return lane in self.program.uses[place] or (guard is not None and guard[0] == lane)

    def ends(self, place: int, lane: Lane) -> bool:
        return lane in self.program.stops[place] and place not in self.program.guards

    def reaches(self, name: str, start: Place, end: Place) -> bool:
        """Whether what is defined at `start` may still be there before `end`."""
        lane, pending, seen = self.lanes[name], [*self.after(self.number[start])], set[int]()
        while pending:
            place = pending.pop()
            if self.places[place] == end:
                return True
            if place not in seen:
                seen.add(place)
                if not self.ends(place, lane):
                    pending += self.after(place)
        return False

    def nearest(self, name: str, start: Place) -> Place | None:
        """The next read after a place."""
        lane, front, seen = self.lanes[name], [*self.after(self.number[start])], set[int]()
        while front:
            if found := [place for place in front if self.reads(place, lane)]:
                return self.places[min(found)]
            seen.update(front)
            passed = [place for place in front if not self.ends(place, lane)]
            front = [n for place in passed for n in self.after(place) if n not in seen]
        return None


def collisions(seed: int, guarded: bool) -> Iterator[tuple[Function, Finding]]:
    function = random_function(seed, registers=7, guarded=guarded)
    problem = AllocationProblem(function)
    generator = random.Random(seed)
    verifier = FastVerifier(problem)
    for _ in range(6):
        answer = {
            f"%{number}": generator.choice(list(problem.placements.legal[register_class].values()))
            for number, register_class in enumerate(function.virtual_registers)
        }
        for finding in verifier.verify(answer).findings:
            yield function, finding


@pytest.mark.slow
@pytest.mark.parametrize("guarded", [False, True], ids=["plain", "guarded"])
def test_histories_agree_with_a_walk_over_instructions(guarded: bool) -> None:
    told = 0
    for seed in range(220):
        for function, finding in collisions(seed, guarded):
            told += 1
            walk = Walk(function)
            assert finding.block is not None
            assert finding.instruction is not None
            place = finding.block, finding.instruction
            destroyer, victim = finding.lanes
            assert destroyer.defined == (place,)
            if not guarded:
                assert destroyer.next_use == walk.nearest(destroyer.name, place)
            if victim.defined == (place,) and place[1] < 0:
                continue
            if f" writes both {destroyer.name} " not in finding.message:
                assert victim.next_use is not None
                assert victim.defined
            for definition in victim.defined:
                assert definition == place or walk.reaches(victim.name, definition, place)
            if place[1] >= 0 and victim.defined != (place,):
                written = walk.program.definitions[walk.lanes[victim.name]]
                defining = {walk.places[number] for number in written if number != ENTRY}
                expected = {p for p in defining if walk.reaches(victim.name, p, place)}
                kept = set(victim.defined) - {(0, -1)}
                assert kept == expected or (guarded and kept < expected)
            if not guarded and finding.kind is not FindingKind.EARLY_CLOBBER:
                nearest = walk.nearest(victim.name, place)
                assert victim.next_use in (nearest, place)
    assert told > 500
