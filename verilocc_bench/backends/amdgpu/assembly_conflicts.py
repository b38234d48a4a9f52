"""Bank conflicts of a kernel's assembly (gfx90a, gfx942), whoever allocated its registers.

Counts the same as `analysis.bank_conflicts` counts on an answer: instructions with
three distinct 32-bit vector sources of which two or more lie in one bank of a file.
It reads operands of vector instructions and of stores to LDS. Other instructions never
have three such sources. LLVM changes some instructions after allocation, so the two
counts can differ. Cost: linear in the text.
"""

from __future__ import annotations

import re
from collections import Counter

from verilocc_bench.analysis.bank_conflicts import LOOP_WEIGHT
from verilocc_bench.backends.amdgpu.assembly import blocks_of_assembly
from verilocc_bench.targets import get_target

_VECTOR_REGISTER = re.compile(r"-?(?:\||sext\()?([va])(\d+)[|)]?")
# These read the register that they write: it is a source, too.
_READS_ITS_RESULT = re.compile(r"v_(?:(?:pk_)?(?:fmac|mac|dot\d+c)_|fma_mixhi_)")
# The second result is a carry or a scale mask, in scalar registers.
_TWO_RESULTS = re.compile(
    r"v_(?:(?:add|sub|subrev|addc|subb|subbrev)_co|div_scale|mad_u64_u32|mad_i64_i32)_"
)
_WRITES_TO_LDS = re.compile(r"ds_write2?(?:st64)?_b")


def conflicts_of_assembly(assembly: str, function: str, arch: str) -> int:
    """The conflicts `any` of a function, each weighed 10 to the power of its loop depth.

    Raises InputError if the assembly does not contain the function.
    """
    target = get_target(arch)
    banks = {name: target.file(name).banks for name in target.vector_files}
    found = 0
    for depth, instructions in blocks_of_assembly(assembly, function):
        for instruction in instructions:
            sources = dict.fromkeys(_sources(instruction))
            if len(sources) == 3:
                per_bank = Counter((file, index % banks[file]) for file, index in sources)
                found += LOOP_WEIGHT**depth * (max(per_bank.values()) > target.bank_ports)
    return found


def _sources(instruction: str) -> list[tuple[str, int]]:
    """(file, number) of each source that is one vector register."""
    opcode, _, text = instruction.partition(" ")
    operands = [operand.strip() for operand in text.split(", ")]
    if _WRITES_TO_LDS.match(opcode):
        read = operands
    elif opcode.startswith("v_"):
        results = 1 + bool(_TWO_RESULTS.match(opcode))
        read = operands[results:]
        if _READS_ITS_RESULT.match(opcode):
            read = [operands[0], *read]
    else:
        return []
    matches = (_VECTOR_REGISTER.fullmatch(operand.split(" ")[0]) for operand in read)
    return [(match[1], int(match[2])) for match in matches if match]
