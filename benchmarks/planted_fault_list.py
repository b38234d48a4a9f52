"""The faults of planted_faults.py: one changed line each, in the AMD back end."""

from __future__ import annotations

from dataclasses import dataclass

_LOWER = "backends.amdgpu.write_back"
_FLOW = "backends.amdgpu.mir_flow"
_MOVES = "backends.amdgpu.parallel_moves"
_NORMALIZE = "backends.amdgpu.normalize"
_PARSE = "backends.amdgpu.mir_instruction"
_CLASSES = "targets.amdgpu_classes"

READING = (_NORMALIZE, _PARSE, _CLASSES)
"""The modules whose faults may change what is read."""


@dataclass(frozen=True)
class PlantedFault:
    """`old` becomes `new` in a module; `old` stands there once."""

    name: str
    module: str
    old: str
    new: str


FAULTS = (
    PlantedFault("sub-registers are written as the tuple's first lanes", _LOWER,
          "location = VirtualLanes(number, lanes.first, lanes.count)",
          "location = VirtualLanes(number, 0, lanes.count)"),
    PlantedFault("killed marks stay", _LOWER,
          'flags = tuple(flag for flag in token.flags if flag != "killed")', "flags = token.flags"),
    PlantedFault("undef stays on definitions of lanes", _LOWER,
          "if token.is_definition:", "if False:"),
    PlantedFault("copies between registers of one first digit go away", _LOWER,
          'match["to"] != match["from"]', 'match["to"][:6] != match["from"][:6]'),
    PlantedFault("copies of one register to another of its file go away", _LOWER,
          'match["to"] != match["from"]', 'match["to"][0] != match["from"][0]'),
    PlantedFault("defined uses are marked undef", _LOWER,
          "elif mask and not mask & step.defined_before",
          "elif mask and mask & step.defined_before"),
    PlantedFault("undefined uses are not marked", _LOWER,
          "elif mask and not mask & step.defined_before", "elif False and mask"),
    PlantedFault("dead marks stay where the value is read", _LOWER,
          "if mask & step.live_after:", "if False:"),
    PlantedFault("blocks name no live-in registers", _LOWER,
          "for unit in units_of_mask(mask & ~self.reserved)]", "for unit in units_of_mask(0)]"),
    PlantedFault("blocks name half of their live-in registers", _LOWER,
          "for unit in units_of_mask(mask & ~self.reserved)]",
          "for unit in list(units_of_mask(mask & ~self.reserved))[::2]]"),
    PlantedFault("16-bit halves are written as whole registers", _LOWER,
          "return token.spelled(register_name(units, half), flags)",
          "return token.spelled(register_name(units, None), flags)"),
    PlantedFault("replaced operands are forgotten", _LOWER,
          "replaced.get(token.number, location)", "location"),
    PlantedFault("replacements reach the operand before", _LOWER,
          "token = _token_numbers(code[index])[operand]",
          "token = _token_numbers(code[index])[max(0, operand - 1)]"),
    PlantedFault("moves take registers that hold values", _LOWER,
          "taken = step.live_after | step.reads | step.writes | self.reserved",
          "taken = step.reads | step.writes"),
    PlantedFault("undef reads count as reads", _FLOW,
          "elif not operand.flags & (Flag.UNDEF | Flag.INTERNAL):", "else:"),
    PlantedFault("a written half ends the life of the whole", _FLOW,
          "if not is_half(operand):", "if True:"),
    PlantedFault("nothing is defined at the entry", _FLOW,
          "defined[0] = live_in", "defined[0] = 0"),
    PlantedFault("live-in registers may be undefined", _FLOW,
          "tuple(a & b for a, b in pairs)", "tuple(a for a, b in pairs)"),
    PlantedFault("sub-registers of physical registers are the first lanes", _FLOW,
          "units = FixedUnits(units.file, units.first + lanes.first, lanes.count)",
          "units = FixedUnits(units.file, units.first, lanes.count)"),
    PlantedFault("moves are carried out in any order", _MOVES,
          "ready = [destination for destination in sources if destination not in waiting]",
          "ready = list(sources)"),
    PlantedFault("moves in a circle turn the wrong way", _MOVES,
          "    yield _COPY, temporary, cycle[0]", "    yield _COPY, temporary, cycle[-1]"),
    PlantedFault("two moves form a pair whatever their sources", _MOVES,
          "for (file, unit), following in ((first[1], second[1]), (first[2], second[2])):",
          "for (file, unit), following in ((first[1], second[1]),):"),
    PlantedFault("pairs may begin at odd registers", _MOVES,
          "if unit % 2 or following != (file, unit + 1):", "if following != (file, unit + 1):"),
    PlantedFault("implicit uses are dropped", _NORMALIZE,
          "            if use is not None:",
          "            if use is not None and not use.implicit:"),
    PlantedFault("ties are dropped", _NORMALIZE,
          "use = replace(use, tied_to=places.get(operand.tied_to))", "pass"),
    PlantedFault("early clobbers are dropped", _NORMALIZE,
          "early_clobber=MachineOperandFlag.EARLY_CLOBBER in machine.flags", "early_clobber=False"),
    PlantedFault("undef marks are dropped", _NORMALIZE,
          "undef=MachineOperandFlag.UNDEF in machine.flags", "undef=False"),
    PlantedFault("every use is undef", _NORMALIZE,
          "undef=MachineOperandFlag.UNDEF in machine.flags",
          "undef=MachineOperandFlag.DEFINITION not in machine.flags"),
    PlantedFault("a definition of a half overwrites the whole", _NORMALIZE,
          "if _keeps_half(operand):", "if False:"),
    PlantedFault("blocks have one successor", _NORMALIZE,
          "return tuple(order[number] for number in numbers)",
          "return tuple(order[number] for number in numbers[:1])"),
    PlantedFault("blocks have one successor, the last", _NORMALIZE,
          "return tuple(order[number] for number in numbers)",
          "return tuple(order[number] for number in numbers[-1:])"),
    PlantedFault("sub-registers of several lanes count as one", _NORMALIZE,
          "return VirtualLanes(number, lanes.first, lanes.count)",
          "return VirtualLanes(number, lanes.first, 1)"),
    PlantedFault("whole tuples count as their first lane", _NORMALIZE,
          "return VirtualLanes(number, 0, width)", "return VirtualLanes(number, 0, 1)"),
    PlantedFault("sub-registers count as the first lanes", _NORMALIZE,
          "return VirtualLanes(number, lanes.first, lanes.count)",
          "return VirtualLanes(number, 0, lanes.count)"),
    PlantedFault("no register is live into the function", _NORMALIZE,
          "return self.in_order({unit for unit in units if unit is not None})", "return ()"),
    PlantedFault("no register is reserved", _NORMALIZE,
          "return self.in_order(set(units))", "return ()"),
    PlantedFault("physical registers are not seen", _NORMALIZE,
          "else self.physical(machine, line)", "else None"),
    PlantedFault("dead definitions are dropped", _NORMALIZE,
          "            definition = self.operand(operand, machine.line)",
          "            definition = None if MachineOperandFlag.DEAD in operand.flags else "
          "self.operand(operand, machine.line)"),
    PlantedFault("uses after the second are dropped", _NORMALIZE,
          "                uses.append(use)",
          "                uses.append(use) if len(uses) < 2 else None"),
    PlantedFault("the table of early clobbers is not read", _PARSE,
          "for early in early_clobbers(match[1]):", "for early in ():"),
    PlantedFault("tuples may begin anywhere", _CLASSES,
          "BaseRange(file, first, last, step))", "BaseRange(file, first, last, 1))"),
    PlantedFault("the last register of a class is one too far", _CLASSES,
          "BaseRange(file, first, last, step))", "BaseRange(file, first, last + step, step))"),
    PlantedFault("tuples of physical registers are one register", _CLASSES,
          "units = FixedUnits(file, first, count) if exists else None",
          "units = FixedUnits(file, first, 1) if exists else None"),
    PlantedFault("physical registers are one too high", _CLASSES,
          "units = FixedUnits(file, first, count) if exists else None",
          "units = FixedUnits(file, first + 1, count) if exists else None"),
)  # fmt: skip
