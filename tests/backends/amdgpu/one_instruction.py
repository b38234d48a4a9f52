"""Kernels with one instruction of a given opcode, made from the shipped table of opcodes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from verilocc_bench.targets.amdgpu_classes import _table, class_bases, operand_bases
from verilocc_bench.targets.amdgpu_instructions import instruction_form

HEAD = """--- |
  target triple = "amdgcn-amd-amdhsa"
{definitions}
...
"""
FUNCTION = """---
name: {name}
tracksRegLiveness: true
machineFunctionInfo:
  isEntryFunction: true
  argumentInfo:
    flatScratchInit: {{ reg: '$sgpr4_sgpr5' }}
    privateSegmentWaveByteOffset: {{ reg: '$sgpr6' }}
body: |
  bb.0:
    successors: %bb.1
    liveins: $sgpr4_sgpr5, $sgpr6
{before}    {instruction}

  bb.1:
    S_ENDPGM 0
...
"""
_BRANCH = re.compile(r"S_C?BRANCH\w*")


def module(functions: Sequence[str]) -> str:
    """Machine IR with the given functions."""
    names = [re.search(r"name: (\w+)", each) for each in functions]
    definitions = [
        f"  define amdgpu_kernel void @{name[1]}() {{ ret void }}" for name in names if name
    ]
    return HEAD.format(definitions="\n".join(definitions)) + "".join(functions)


def with_instruction(name: str, instruction: str, before: str = "") -> str:
    """A kernel of that name whose first block ends in an instruction."""
    return FUNCTION.format(name=name, instruction=instruction, before=before)


def kernel_of_opcode(name: str, opcode: str) -> str | None:
    """A kernel of that name with an instruction of an opcode of the table.

    None where its operands cannot be made up from their classes.
    """
    form = instruction_form(opcode)
    assert form is not None
    before, texts, registers = [], [], []
    for place, operand in enumerate(form.operands):
        if operand.class_name is None:
            registers.append("")
            texts.append("%bb.1" if _BRANCH.fullmatch(opcode) else "0")
            continue
        class_name = _class_inside(operand.class_name)
        if class_name is None:
            return None
        number = f"%{place}"
        if operand.tied_to is not None:
            number = registers[operand.tied_to]
        registers.append(number)
        if place < form.definitions:
            texts.append(f"{'early-clobber ' * operand.early_clobber}{number}:{class_name}")
        else:
            if opcode.startswith("IMAGE") and operand.class_name == "vgpr_32":
                class_name, number = "vreg_64_align2", f"{number}.sub0"  # it has to be even
            before.append(f"    {number.partition('.')[0]}:{class_name} = IMPLICIT_DEF\n")
            tie = "" if operand.tied_to is None else f"(tied-def {operand.tied_to})"
            texts.append(f"{number}{tie}")
    undefined = [register for register in form.implicit_uses if register in ("vcc", "scc")]
    before += [f"    ${register} = IMPLICIT_DEF\n" for register in undefined]
    definitions, uses = texts[: form.definitions], texts[form.definitions :]
    uses += [f"implicit-def ${register}" for register in form.implicit_definitions]
    uses += [f"implicit ${register}" for register in form.implicit_uses]
    left = f"{', '.join(definitions)} = " if definitions else ""
    memory = " :: (load (s32))" if form.may_load else " :: (store (s32))" * form.may_store
    text = f"{left}{opcode} {', '.join(uses)}".rstrip()
    return with_instruction(name, text + memory, "".join(before))


@cache
def _class_inside(wanted: str) -> str | None:
    """A class of virtual registers whose every register, even where it is wide, is in `wanted`."""
    if wanted == "*":
        return "vgpr_32"
    known = operand_bases(wanted)
    assert known is not None
    width, bases = known
    vectors = [name for name in (wanted, f"{wanted}_align2") if class_bases(name)]
    if wanted.startswith("vs_"):
        vectors = ["vgpr_32" if width == 1 else f"vreg_{32 * width}_align2"]
    if vectors and ("v" in bases or "a" in bases):
        return vectors[-1]
    for name in [wanted, *sorted(_table())]:
        own = class_bases(name)
        if own and own[0] == width and own[1] and own[1].keys() <= bases.keys():
            inside = {(f, b) for f, ranges in own[1].items() for r in ranges for b in r}
            if inside <= {(f, b) for f, ranges in bases.items() for r in ranges for b in r}:
                return name
    return None
