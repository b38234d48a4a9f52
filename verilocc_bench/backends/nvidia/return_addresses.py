"""Proof that each RET of a subroutine returns behind the call that its copy belongs to.

A call holds its return address in a register pair: the offset in the section, written by
MOV or the like, with zero above it; for a callee by the ABI, which need not lie in the
section, the whole address, by LEPC and an offset. Code may move the pair, and keep it on
the stack. A forward dataflow over all copies follows these values through the operations
by which ptxas does that; every other definition makes a register unknown. A RET whose pair
is not known to be the place of its successor rejects the kernel, and so does a call by the
ABI whose pair is not.

Stores at addresses that are not known do not meet the words of the stack in which the
compiler keeps registers, and a callee by the ABI leaves its caller's frame alone: a program
keeps to its own variables.

Cost: a forward dataflow; a state has the known words, which are few.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from verilocc_bench.backends.nvidia.records import SassBlock, SassFunction, SassInstruction
from verilocc_bench.errors import RejectedKernel

_Value = tuple[str, int]
"""(base, offset): the base is "number", "stack", "code", or "high" for the high word of code."""

_State = dict[str, _Value]
"""What is known: by `R4` for a register, by `[8` for a word of the stack."""

_ZERO: _Value = ("number", 0)
_WORD = 0xFFFFFFFF
_RETURN_PAIR = 20
_INSTRUCTION_BYTES = 16
_STACK = re.compile(r"\[R1(?:\+(-?0x[0-9a-f]+))?\]")
_INTEGER = re.compile(r"-?(?:0x[0-9a-f]+|\d+)")
_STACK_START = "c[0x0][0x28]"
_MOVES = frozenset({"MOV", "IMAD.MOV", "IMAD.MOV.U32", "LDC"})
_SUMS = frozenset({"IADD3", "IMAD.IADD", "VIADD"})


def check_returns(function: SassFunction, blocks: Sequence[SassBlock]) -> None:
    """Raises RejectedKernel (`call`) if something returns to an unknown place."""
    instructions = function.instructions
    returning = [
        number
        for number, block in enumerate(blocks)
        if block.instructions and _comes_back(instructions[block.instructions[-1]])
    ]
    if not returning:
        return
    entries = _entries(function, blocks)
    for number in returning:
        block = blocks[number]
        last = instructions[block.instructions[-1]]
        state = _after(function, block.instructions[:-1], entries[number])
        pair = _RETURN_PAIR if last.is_call_by_the_abi else last.uses[0].first
        place = blocks[block.successors[0]].instructions[0] * _INSTRUCTION_BYTES
        known = state.get(f"R{pair}"), state.get(f"R{pair + 1}")
        relative = function.labels.get(last.target or "") == 0
        wanted = (("number", place), _ZERO) if relative else (("code", place), ("high", 0))
        if known != wanted:
            where = f"{function.name} at 0x{last.address:x}: {last.opcode}"
            raise RejectedKernel("call", f"{where}: it is not known where the call returns to")


def _comes_back(instruction: SassInstruction) -> bool:
    returns = instruction.opcode.startswith("RET.") and not instruction.never
    return returns or instruction.is_call_by_the_abi


def _entries(function: SassFunction, blocks: Sequence[SassBlock]) -> list[_State]:
    """What is known before each block."""
    entries: list[_State | None] = [None] * len(blocks)
    entries[0] = {}
    pending = {0}
    while pending:
        number = min(pending)
        pending.remove(number)
        state = _after(function, blocks[number].instructions, entries[number] or {})
        for successor in blocks[number].successors:
            old = entries[successor]
            new = state if old is None else dict(old.items() & state.items())
            if new != old:
                entries[successor] = new
                pending.add(successor)
    return [entry or {} for entry in entries]


def _after(function: SassFunction, indices: Sequence[int], entry: _State) -> _State:
    """What is known behind these instructions."""
    state = dict(entry)
    for index in indices:
        instruction = function.instructions[index]
        if instruction.never:
            continue
        found = _found(function, instruction, state)
        for reference in (*instruction.definitions, *instruction.destroys):
            if reference.file == "R":
                for register in range(reference.first, reference.first + reference.count):
                    state.pop(f"R{register}", None)
        if instruction.opcode.startswith("STL"):
            for word in _words(instruction, instruction.operands[0], state):
                state.pop(word, None)
        if instruction.guard is None:
            state |= found
    return state


def _words(instruction: SassInstruction, address: str, state: _State) -> list[str]:
    """The words of the stack at an address from R1 on; none for another address."""
    match = _STACK.fullmatch(address)
    base, offset = state.get("R1", _ZERO)
    if match is None or base != "stack":
        return []
    modifiers = instruction.opcode.split(".")
    count = 2 if "64" in modifiers else 4 if "128" in modifiers else 1
    first = offset + int(match[1] or "0", 0) & ~3
    return [f"[{first + 4 * number & _WORD}" for number in range(count)]


def _found(function: SassFunction, instruction: SassInstruction, state: _State) -> _State:
    """What an instruction makes known if it takes effect."""
    opcode, operands = instruction.opcode, instruction.operands
    if opcode.startswith(("STL", "LDL")):
        if {"U8", "S8", "U16", "S16"} & {*opcode.split(".")}:
            return {}
        register, address = sorted(operands, reverse=True, key=lambda text: text.startswith("R"))
        words = _words(instruction, address, state)
        first = register.removeprefix("R")
        if not first.isdecimal():
            return dict.fromkeys(words, _ZERO) if opcode.startswith("STL") else {}
        names = [f"R{int(first) + number}" for number in range(len(words))]
        pairs = zip(names, words, strict=True)
        if opcode.startswith("STL"):
            return {word: state[name] for name, word in pairs if name in state}
        return {name: state[word] for name, word in pairs if word in state}
    result = instruction.definitions[0] if instruction.definitions else None
    if result is None or result.file != "R":
        return {}
    low, high = f"R{result.first}", f"R{result.first + 1}"
    if opcode == "LEPC":
        place = instruction.address
        if instruction.target is not None:
            place = function.labels[instruction.target] * _INSTRUCTION_BYTES
        return {low: ("code", place), high: ("high", 0)}
    if opcode == "CS2R" and "SRZ" in operands:
        return {low: _ZERO, high: _ZERO}
    value: _Value | None = None
    if opcode in _MOVES:
        is_stack = low == "R1" and operands[-1] == _STACK_START
        value = ("stack", 0) if is_stack else _value(operands[-1], state)
    elif (
        opcode in ("HFMA2.MMA", "HFMA2") and operands[1:3] == ("-RZ", "RZ") and (len(operands) == 5)
    ):
        value = ("number", instruction.encoding >> 32 & _WORD)
    elif opcode in _SUMS or opcode == "IADD3.X":
        terms = [each for each in operands[1:] if "P" not in each]
        if opcode == "IMAD.IADD":
            terms = [terms[0], terms[2]] if terms[1] == "0x1" else []
        values = [_value(term, state) for term in terms]
        value = _high_word(values) if opcode == "IADD3.X" else _sum(values)
    return {} if value is None else {low: value}


def _value(text: str, state: _State) -> _Value | None:
    sign, name = (text[0], text[1:]) if text[0] in ("-", "~") else ("", text)
    value = _ZERO if name == "RZ" else state.get(name)
    if _INTEGER.fullmatch(text):
        return "number", int(text, 0) & _WORD
    if value is None or not sign:
        return value
    base, offset = value
    return ("number", (-offset if sign == "-" else ~offset) & _WORD) if base == "number" else None


def _sum(values: Sequence[_Value | None]) -> _Value | None:
    known = [value for value in values if value is not None]
    bases = [base for base, _ in known if base != "number"]
    if not known or len(known) < len(values) or len(bases) > 1:
        return None
    return (bases or ["number"])[0], sum(offset for _, offset in known) & _WORD


def _high_word(values: Sequence[_Value | None]) -> _Value | None:
    """The high word of a place in the code, if all else adds a small number to its low word."""
    rest = [value for value in values if value != ("high", 0)]
    if len(rest) + 1 == len(values) and all(v in (_ZERO, ("number", _WORD)) for v in rest):
        return "high", 0
    return None
