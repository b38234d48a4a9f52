"""The graph of an allocation problem, as arrays.

All arrays have one dimension and the type int32. Their names say what they describe:
every `instruction_…` array has one entry for each instruction, and so on. Edges are
arrays of the same length. docs/views.md shows how they are used.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int32]


class OperandRole(IntEnum):
    """The role of an operand in its instruction."""

    DEFINITION = 0
    USE = 1
    GUARD = 2


class OperandFlag(IntFlag):
    """Marks of an operand; see ir.Operand, and ir.Guard for NEGATED."""

    UNDEF = 1
    EARLY_CLOBBER = 2
    IMPLICIT = 4
    NEGATED = 8


@dataclass(frozen=True, slots=True, eq=False)
class ProblemGraph:
    """One function: its instructions, virtual registers and blocks, and the edges among them.

    *Files* are numbered as in `file_names`; the *base* of a register is the
    index of its first unit in its file. A virtual register has the legal bases
    of its class c: entries `class_first[c]` to `class_first[c + 1]` of
    `base_file` and `base_index`, without those that `blocked_…` lists for it. An
    assignment is valid exactly if each virtual register has such a base and

    - no conflict holds. A conflict holds if `conflict_left` and `conflict_right` are in
      one file and the base of the right less the base of the left is
      `conflict_distance`;
    - every tie holds. A tie holds if `tie_left` and `tie_right` are in one file and
      their bases have the distance `tie_distance`; a fixed tie holds if
      `fixed_tie_register` is at its base of its file.

    *Points* number the places of the program: 0 is the entry, and `instruction_point`
    is the point after each instruction (analysis.liveness). The range of a lane is
    from `live_first` to `live_last`, both included.

    `label_file` and `label_base` are -1 without a label.
    `operand_place` counts the definitions of an instruction, or its uses;
    `operand_tied_to` is the place of the definition that a use is tied to, or -1.
    """

    id: str
    target: str
    point_count: int
    file_names: tuple[str, ...]
    file_budget: Integers
    class_names: tuple[str, ...]
    class_first: Integers
    base_file: Integers
    base_index: Integers
    block_depth: Integers
    flow_from: Integers
    flow_to: Integers
    instruction_opcode: Integers
    instruction_block: Integers
    instruction_place: Integers
    instruction_depth: Integers
    instruction_point: Integers
    register_class: Integers
    register_width: Integers
    register_alignment: Integers
    register_files: Integers
    operand_instruction: Integers
    operand_register: Integers
    operand_role: Integers
    operand_place: Integers
    operand_first_lane: Integers
    operand_lanes: Integers
    operand_flags: Integers
    operand_tied_to: Integers
    fixed_instruction: Integers
    fixed_file: Integers
    fixed_role: Integers
    fixed_place: Integers
    fixed_first_unit: Integers
    fixed_units: Integers
    fixed_flags: Integers
    fixed_tied_to: Integers
    live_register: Integers
    live_lane: Integers
    live_first: Integers
    live_last: Integers
    defined_register: Integers
    defined_lane: Integers
    defined_point: Integers
    conflict_left: Integers
    conflict_right: Integers
    conflict_distance: Integers
    blocked_register: Integers
    blocked_file: Integers
    blocked_base: Integers
    tie_left: Integers
    tie_right: Integers
    tie_distance: Integers
    fixed_tie_register: Integers
    fixed_tie_file: Integers
    fixed_tie_base: Integers
    label_file: Integers
    label_base: Integers

    @property
    def register_count(self) -> int:
        """The number of virtual registers."""
        return len(self.register_class)

    @property
    def instruction_count(self) -> int:
        """The number of instructions."""
        return len(self.instruction_opcode)

    @property
    def interference(self) -> Integers:
        """The pairs of registers that conflict at some distance, each once; shape (2, pairs)."""
        left, right = self.conflict_left, self.conflict_right
        new = np.ones(len(left), np.bool_)
        new[1:] = (left[1:] != left[:-1]) | (right[1:] != right[:-1])
        return np.stack([left[new], right[new]])
