"""Control flow of SASS, thread by thread.

Blocks begin at branch targets and after instructions that leave. A guarded branch
falls through if its guard fails; a guarded EXIT leads to the empty block at the
end. BRX jumps to one of the labels that ptxas lists for it. A branch on an operand besides
its guard (`@!P1 BRA P0, label`, `BRA.DIV UR4, label`) is taken or falls through, whatever
the guard is.

CALL.REL.NOINC to a function of the same section (its label has a name of its own, such as
`$__internal_0_$__cuda_sm20_div_s64`) calls a subroutine; to any other label it is a jump, by
which ptxas leaves long loops. A subroutine has a copy of its blocks for each chain of calls
that leads to it: what returns goes on behind its own call, never behind another one. All
copies name the same registers, so one assignment holds for the one piece of code.
`return_addresses` proves that each RET returns there. Recursion rejects the kernel by name,
and so does a jump without a list of targets.

A call through a register pair calls what is not known here, by the ABI: it falls through.
The callee may be code of the section that nothing else reaches; that keeps its registers.

BSSY, BSYNC, BREAK, WARPSYNC and the like make threads wait for each other. They
jump only to places to which falling through leads as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from verilocc_bench.backends.nvidia.records import (
    BRANCHES,
    SassBlock,
    SassFunction,
    SassInstruction,
)
from verilocc_bench.backends.nvidia.return_addresses import check_returns
from verilocc_bench.errors import RejectedKernel

_LEAVES = {"BRA", "EXIT", "CALL", "RET", "BRX", "BRXU", "JMP", "JMX", "JMXU", "KILL", "RPCMOV"}
_CALL = "CALL.REL.NOINC"
_RETURN = "RET.REL.NODEC"
_MOST_COPIED = 50_000

_Place = tuple[tuple[int, ...], int]
"""A chain of calls, and the first instruction of a block; _EXIT for the exit block."""

_EXIT: _Place = ((), -1)


def has_effect(instruction: SassInstruction) -> bool:
    """True unless an instruction is a NOP or never executes (@!PT)."""
    return not instruction.never and opcode_stem(instruction.opcode) != "NOP"


def opcode_stem(opcode: str) -> str:
    """The opcode without its modifiers."""
    return opcode.partition(".")[0]


def calls_subroutine(instruction: SassInstruction) -> bool:
    """True for a call of a function in the same section."""
    target = instruction.target
    return (
        instruction.opcode == _CALL
        and target is not None
        and not target.startswith(".")
        and not instruction.never
        and not instruction.is_call_by_the_abi
    )


def returns(instruction: SassInstruction) -> bool:
    """True for the return of a subroutine."""
    return instruction.opcode == _RETURN and not instruction.never


def control_flow(function: SassFunction) -> tuple[SassBlock, ...]:
    """The blocks that the entry reaches, the exit block last.

    They are in order of address; copies follow by their chains of calls. Raises
    RejectedKernel for control flow that cannot be analysed. The blocks are worked out
    at the first call: each step of reading and lowering asks for them.
    """
    if not function.known_blocks:
        function.known_blocks.extend(_Flow(function).blocks())
        check_returns(function, function.known_blocks)
        _check_callees(function, function.known_blocks)
    return tuple(function.known_blocks)


def _check_callees(function: SassFunction, blocks: Sequence[SassBlock]) -> None:
    """Raises RejectedKernel if an unknown callee may run a subroutine that is called here, too.

    The subroutine may get other registers, which only the calls that are known follow.
    """
    reached = {index for block in blocks for index in block.instructions}
    if not any(function.instructions[index].is_call_by_the_abi for index in reached):
        return
    called = {index for block in blocks if block.calls for index in block.instructions}
    # Helpers of the compiler's own have no address that code can take.
    entries = [name for name in function.labels if not name.startswith((".", "$__internal_"))]
    entries += [
        instruction.target
        for index, instruction in enumerate(function.instructions)
        if index not in reached and instruction.target is not None
    ]
    for name in entries:
        if function.labels.get(name) in called:
            reason = f"a callee that is not known may run {name} as well, which is not modelled"
            raise RejectedKernel("call", f"{function.name}: {reason}")


class _Flow:
    def __init__(self, function: SassFunction) -> None:
        self.function, self.instructions = function, function.instructions
        if not self.instructions:
            raise RejectedKernel("control-flow", f"{function.name} has no instruction")
        targets: dict[int, tuple[int, ...]] = {}
        for index, instruction in enumerate(self.instructions):
            if found := self._jump_targets(instruction):
                targets[index] = found
        self.targets: Mapping[int, tuple[int, ...]] = targets
        leaders = {0, *(target for found in targets.values() for target in found)}
        leaders |= {index + 1 for index, i in enumerate(self.instructions) if _leaves(i)}
        starts = sorted(start for start in leaders if start < len(self.instructions))
        self.ends = dict(zip(starts, [*starts[1:], len(self.instructions)], strict=True))

    def blocks(self) -> Iterator[SassBlock]:
        successors: dict[_Place, tuple[_Place, ...]] = {}
        pending: list[_Place] = [((), 0)]
        copied = 0
        while pending:
            place = pending.pop()
            if place in successors or place == _EXIT:
                continue
            successors[place] = self._successors(*place)
            pending += successors[place]
            copied += self.ends[place[1]] - place[1] if place[0] else 0
            if copied > _MOST_COPIED:
                reason = f"the copies of its subroutines have more than {_MOST_COPIED} instructions"
                raise RejectedKernel("call", f"{self.function.name}: {reason}")
        numbers = {place: number for number, place in enumerate(sorted(successors))}
        numbers[_EXIT] = len(numbers)
        for calls, start in sorted(successors):
            members = tuple(range(start, self.ends[start]))
            leads = tuple(dict.fromkeys(numbers[each] for each in successors[calls, start]))
            yield SassBlock(members, leads, calls)
        if any(_EXIT in found for found in successors.values()):
            yield SassBlock((), ())

    def _rejected(self, instruction: SassInstruction, kind: str, reason: str) -> RejectedKernel:
        place = f"{self.function.name} at 0x{instruction.address:x}: {instruction.opcode}"
        return RejectedKernel(kind, f"{place}: {reason}")

    def _jump_targets(self, instruction: SassInstruction) -> tuple[int, ...]:
        """The indices that an instruction may jump to; none for one that does not jump."""
        opcode = instruction.opcode
        if not _leaves(instruction) or opcode == "EXIT" or returns(instruction):
            return ()
        if instruction.is_call_by_the_abi:
            return ()
        labels: tuple[str | None, ...] = (instruction.target,)
        if opcode in {"BRX", "BRXU"} and instruction.table and instruction.guard is None:
            labels = instruction.table
        elif opcode not in BRANCHES and opcode != _CALL:
            how = "jumps under a guard or without a list of targets"
            if opcode_stem(opcode) == "CALL":
                how = "calls by other rules than those of a subroutine or of the ABI"
            raise self._rejected(instruction, "control-flow", f"{how}, which is not modelled")
        found = [None if label is None else self.function.labels.get(label) for label in labels]
        targets = [t for t in found if t is not None and t < len(self.instructions)]
        if len(targets) < len(found):
            raise self._rejected(instruction, "control-flow", "leads out of the function")
        return tuple(dict.fromkeys(targets))

    def _successors(self, calls: tuple[int, ...], start: int) -> tuple[_Place, ...]:
        """The successors of the block that begins at `start`, called by that chain."""
        last = self.ends[start] - 1
        instruction = self.instructions[last]
        following = (calls, last + 1)
        found: tuple[_Place, ...]
        if not _leaves(instruction) or instruction.is_call_by_the_abi:
            found = (following,)
        elif returns(instruction):
            if not calls:
                raise self._rejected(instruction, "call", "returns, but nothing has called")
            found = ((calls[:-1], calls[-1] + 1),)
        elif calls_subroutine(instruction):
            (target,) = self.targets[last]
            if any(self.targets[call] == (target,) for call in calls):
                reason = f"{instruction.target} calls itself, which is not modelled"
                raise self._rejected(instruction, "call", reason)
            found = (((*calls, last), target),)
        else:
            found = tuple((calls, target) for target in self.targets.get(last, ()))
        if instruction.guard is not None or instruction.is_conditional_branch:
            found = tuple(dict.fromkeys((*(found or (_EXIT,)), following)))
        if any(at == len(self.instructions) for _, at in found):
            raise RejectedKernel("control-flow", f"{self.function.name} ends without an EXIT")
        return found


def _leaves(instruction: SassInstruction) -> bool:
    opcode = instruction.opcode
    return (opcode in BRANCHES or opcode_stem(opcode) in _LEAVES) and not instruction.never
