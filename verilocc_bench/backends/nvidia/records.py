"""SASS from nvdisasm: functions of instructions with their definitions and uses.

Sources: CUDA Binary Utilities, "nvdisasm"; the register files of
the Volta to Hopper generations (R, UR, P, UP).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

BRANCHES = frozenset({"BRA", "BRA.CONV", "BRA.DIV", "BRA.U", "BRA.U.ANY", "WARPSYNC.COLLECTIVE"})
"""What goes to its label or falls through. A warp takes BRA.U as a whole. The label of
WARPSYNC.COLLECTIVE stands behind the code that the warp runs together; whoever runs it
falls through to there."""


@dataclass(frozen=True, slots=True)
class RegisterReference:
    """`count` consecutive registers of `file` ("R", "UR", "P" or "UP") from `first`.

    `operand` is the index of the printed operand that names them, or -1 if they stand
    in the encoding alone (the uniform pair that addresses global memory). `fixed` is
    True if the instruction can name no other registers (the predicates in a mask).
    `first` is a multiple of `alignment`; 0 stands for `count`. The constants RZ, URZ, PT
    and UPT are not references.
    """

    file: str
    first: int
    count: int
    operand: int
    fixed: bool = False
    alignment: int = 0

    @property
    def step(self) -> int:
        """The alignment of the first register."""
        return self.alignment or self.count


@dataclass(frozen=True, slots=True)
class SassGuard:
    """The predicate under which an instruction takes effect: `@P0`, `@!UP1`."""

    file: str
    index: int
    negated: bool


@dataclass(frozen=True, slots=True)
class SassInstruction:
    """One instruction.

    `address` is its offset in the section, in bytes. `line` is its 1-based line in the
    disassembly. `opcode` includes its modifiers (`IMAD.WIDE.U32`). `operands` are the
    printed ones, without `.reuse`. `guard` is None for `@PT`. `never` is True for
    `@!PT`: the instruction has no effect. `definitions` and `uses` are in the order
    of the print, hidden ones last, without the guard. `encoding` is the 128-bit word.
    `target` is the label that a branch, a call or a BSSY names. `table` are the labels
    that a jump through a table (BRX) can lead to, as ptxas lists them. With
    `variable_latency` only a barrier shows when it has read and written. `destroys` are
    the registers, beside the definitions, that a callee by the ABI may write.
    `architecture` decides where the fields of `encoding` lie.
    """

    address: int
    line: int
    opcode: str
    operands: tuple[str, ...]
    guard: SassGuard | None
    never: bool
    definitions: tuple[RegisterReference, ...]
    uses: tuple[RegisterReference, ...]
    encoding: int
    target: str | None
    table: tuple[str, ...] = ()
    variable_latency: bool = False
    destroys: tuple[RegisterReference, ...] = ()
    architecture: str = "sm_80"

    def numbered_writes(self) -> Iterator[tuple[int, RegisterReference]]:
        """The definitions by their numbers, then what it destroys by numbers of no reference."""
        yield from enumerate(self.definitions)
        yield from enumerate(self.destroys, len(self.definitions) + len(self.uses))

    @property
    def is_conditional_branch(self) -> bool:
        """True for a branch that the thread's own guard does not decide.

        It depends on an operand (`@P0 BRA P1, label`), or on the guards of other threads.
        """
        others = self.opcode.startswith("BRA.U") and self.guard is not None
        return self.opcode in BRANCHES and (len(self.operands) == 2 or others) and not self.never

    @property
    def is_call_by_the_abi(self) -> bool:
        """True for a call of a callee that is not known: a register pair has its address."""
        return bool(self.destroys) and not self.never


@dataclass(frozen=True, slots=True)
class SassBlock:
    """The indices of a block's instructions, and its successors as in the IR.

    A subroutine has a copy of its blocks for each chain of calls that leads to it. `calls`
    are the indices of these calls, the outermost first.

    If the last instruction is a guarded branch or exit, it leads to the first
    successor. Where the guard does not decide (`is_conditional_branch`), and after a
    jump through a table, any successor may follow. The exit block has no instruction.
    """

    instructions: tuple[int, ...]
    successors: tuple[int, ...]
    calls: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SassFunction:
    """A function: its instructions in order of address, 16 bytes each.

    `labels` maps a label to the instruction after it, or to the number of
    instructions at the end. `register_count` is the cubin's
    count; of a text alone the section's (SHI_REGISTERS), 0 if nvdisasm prints none (sm_90).
    `known_blocks` is empty until flow.control_flow fills it.
    """

    name: str
    instructions: tuple[SassInstruction, ...]
    labels: Mapping[str, int]
    register_count: int
    architecture: str = "sm_80"
    known_blocks: list[SassBlock] = field(
        default_factory=list, init=False, compare=False, repr=False
    )
