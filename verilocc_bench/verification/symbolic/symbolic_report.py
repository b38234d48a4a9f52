"""The checker's findings in words."""

from __future__ import annotations

from collections.abc import Sequence

from verilocc_bench.edits.findings import Finding, FindingKind, InvolvedLane
from verilocc_bench.ir import FixedUnits, Operand
from verilocc_bench.verification.symbolic.conditional import Diagram
from verilocc_bench.verification.symbolic.origins import NOTHING, Origins
from verilocc_bench.verification.symbolic.places import Places
from verilocc_bench.verification.symbolic.symbolic_flow import Flow, FlowState
from verilocc_bench.verification.symbolic.symbolic_lanes import (
    DESTROYED_OPERAND,
    GUARD_OPERAND,
    Definition,
    Lanes,
)
from verilocc_bench.verification.symbolic.symbolic_program import (
    NOWHERE,
    Compiler,
    Execute,
    Read,
    SymbolicProgram,
)

NAMED = 3
"""The most places that a message names; the finding has all."""


def _listed(names: Sequence[str]) -> str:
    """The names as a list in words: `a`, `b or c`, …, and the number of further ones."""
    more = [] if len(names) <= NAMED else [f"{len(names) - NAMED} more"]
    return " or ".join([*names[:NAMED], *more])


class Reporter:
    """Puts findings about one answer into words. With edits, all wrong values are of one kind."""

    def __init__(
        self,
        lanes: Lanes,
        compiler: Compiler,
        places: Places,
        program: SymbolicProgram,
        with_edits: bool,
    ) -> None:
        self.lanes, self.compiler, self.places = lanes, compiler, places
        self.origins = Origins(lanes, program)
        self.with_edits = with_edits

    @property
    def steps(self) -> int:
        """The number of blocks that the walks for all findings have visited."""
        return self.origins.steps

    def wrong_value(
        self,
        step: Execute,
        read: Read,
        state: FlowState,
        condition: Diagram,
        flow: Flow,
    ) -> Finding:
        """The finding for a use that misses its value on some path where a condition is true."""
        lane, unit = self.lane_name(read.lane), self.unit_name(read.place)
        verb = "is guarded by" if read.operand == GUARD_OPERAND else "reads"
        holders: list[int] = []
        if read.asked == NOWHERE:
            what = "the instruction itself writes before it reads"
        else:
            holders = [
                lane
                for lane in sorted(set(state.contents.get(read.place, ())))
                if lane != read.lane and flow.holds(state.rows[lane], read.place, condition)
            ]
            held = " and ".join(self.lane_name(lane) for lane in holders)
            what = f"holds {held} there" if holders else "holds another value there on some path"
            writers = self.origins.writers(step, read.place)
            if writers == [NOTHING]:
                what = "nothing has written"
            else:
                what += f": {unit} was last written by {_listed(writers)}"
        place = (step.block, step.index)
        defined = self.origins.definitions(step, read.lane)
        places = _listed(["the entry" if i < 0 else f"bb{b} instruction {i}" for b, i in defined])
        return Finding(
            FindingKind.WRONG_VALUE,
            f"{self._where(step)} {verb} {lane}, defined at {places}, from {unit}, which {what}",
            *place,
            self._registers(read.lane, *holders),
            unit,
            read.operand,
            (
                *(
                    InvolvedLane(self.lane_name(holder), self.origins.definitions(step, holder))
                    for holder in holders
                ),
                InvolvedLane(lane, defined, place),
            ),
        )

    def collision(self, step: Execute, first: Definition, second: Definition, bit: int) -> Finding:
        """The finding for two lanes that one instruction writes to one place."""
        kind = self._kind(first.lane, second.lane, first.early or second.early)
        names = [self.lane_name(each.lane) for each in (first, second)]
        unit = self.unit_name(bit)
        place = (step.block, step.index)
        message = f"{self._where(step)} writes both {names[0]} and {names[1]} to {unit}"
        if second.operand == DESTROYED_OPERAND:
            message = f"{self._where(step)} writes {names[0]} to {unit}, which it destroys"
        elif first.early != second.early:
            early = names[0] if first.early else names[1]
            message += f", {early} before it reads its uses"
        return Finding(
            kind,
            message,
            *place,
            self._registers(first.lane, second.lane),
            unit,
            first.operand if second.operand == DESTROYED_OPERAND else second.operand,
            tuple(InvolvedLane(name, (place,)) for name in names),
        )

    def entry_collision(self, lane: int, other: int, bit: int) -> Finding:
        """The finding for two lanes that hold values in one place at the entry."""
        names = [self.lane_name(lane), self.lane_name(other)]
        unit = self.unit_name(bit)
        return Finding(
            self._kind(lane, other, False),
            f"at the entry both {names[0]} and {names[1]} are in {unit}",
            0,
            -1,
            self._registers(lane, other),
            unit,
            lanes=tuple(InvolvedLane(name, ((0, -1),)) for name in names),
        )

    def tied_mismatch(
        self,
        place: tuple[int, int],
        operand: int,
        tied: tuple[Operand, Operand],
        bits: Sequence[int],
    ) -> Finding:
        """The finding for a definition and its tied use that lie in two registers."""
        units = [self.unit_name(bit) for bit in bits]
        registers = [
            f"%{each.location.register}"
            for each in tied
            if not isinstance(each.location, FixedUnits)
        ]
        return Finding(
            FindingKind.TIED_MISMATCH,
            f"bb{place[0]} instruction {place[1]}: a definition in {units[0]} is tied to "
            f"a use in {units[1]}: they must be in one register",
            *place,
            tuple(dict.fromkeys(registers)),
            units[0],
            operand,
        )

    def lane_name(self, lane: int) -> str:
        """The name of a lane: `%5`, `%6.1`, or a physical unit."""
        owner, index = self.lanes.names[lane]
        if isinstance(owner, str):
            return self.places.unit_name((owner, index))
        width = self.lanes.function.virtual_registers[owner].width
        return f"%{owner}.{index}" if width > 1 else f"%{owner}"

    def unit_name(self, bit: int) -> str:
        """The assembler's name of the unit that a bit stands for."""
        place = self.compiler.names[bit.bit_length() - 1]
        assert place is not None
        return self.places.unit_name(place)

    def _kind(self, lane: int, other: int, early: bool) -> FindingKind:
        if self.with_edits:
            return FindingKind.WRONG_VALUE
        if any(isinstance(self.lanes.names[each][0], str) for each in (lane, other)):
            return FindingKind.FIXED_REGISTER_CLOBBERED
        return FindingKind.EARLY_CLOBBER if early else FindingKind.OVERLAP

    def _where(self, step: Execute) -> str:
        opcode = self.lanes.effects[step.block][step.index].opcode
        return f"bb{step.block} instruction {step.index} ({opcode})"

    def _registers(self, *lanes: int) -> tuple[str, ...]:
        """The registers of some lanes: virtual ones first, then physical ones."""
        owners = [self.lanes.names[lane] for lane in lanes]
        virtual = [f"%{owner}" for owner, _ in owners if not isinstance(owner, str)]
        physical = [
            self.places.unit_name((owner, index))
            for owner, index in owners
            if isinstance(owner, str)
        ]
        return tuple(dict.fromkeys([*virtual, *physical]))
