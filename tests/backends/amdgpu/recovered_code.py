"""Random code of gfx942 as recovery sees it, made without an assembler, and what it computes."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from verilocc_bench.backends.amdgpu.recovery.records import (
    RecoveredInstruction,
    RecoveredOperand,
    units_of,
)

PAIRS = ("sgpr0_sgpr1", "sgpr2_sgpr3", "vcc")
VECTORS = ("vgpr0", "vgpr1")
VECTOR_PAIRS = ("vgpr0_vgpr1",)
LIVE_IN = [*units_of("vgpr0"), *units_of("sgpr0_sgpr1")]
HALVES = {"exec": (-1, -2), "exec_lo": (-1,), "exec_hi": (-2,)}
LOGIC = {
    "S_AND": lambda a, b: a & b,
    "S_OR": lambda a, b: a | b,
    "S_ANDN2": lambda a, b: a & ~b,
    "S_XOR": lambda a, b: a ^ b,
}

FORMS = """
V_MOV =v #
V_ADD =v v v
V_FMAC =v v ~
V_MOV_dpp =v v !
V_PK_ADD =w w w
V_PART +v v
V_CMP =p v v
V_READLANE =s v
V_MFMA =v v v
S_MOV_B32 =s #
S_ADD_U32 =s s s
S_CMOV_B32 +s s
S_MOV_B64 =p p
S_MOV_B64 =p -1
S_OR_B64 =p p p
S_ANDN2_B64 =p p p
S_AND_SAVEEXEC_B64 =p p
""".strip().splitlines()

MASKS = """
S_AND_SAVEEXEC_B64 =p p
S_OR_SAVEEXEC_B64 =p p
S_MOV_B64 =p exec
S_MOV_B64 =p -1
S_AND_B64 =p p p
S_CSELECT_B64 =p p p
S_MOV_B32 =s m0
S_MOV_B64 =exec p
S_MOV_B64 =exec -1
S_MOV_B32 =exec_lo s
S_MOV_B32 =exec_hi -1
S_MOV_B32 =exec_lo m0
S_MOV_B32 =s exec_lo
S_MOV_B32 =s -1
S_OR_B32 =exec_lo exec_lo s
S_AND_B32 =s s exec_hi
S_AND_B64 =exec p exec
S_AND_B64 =exec exec p
S_AND_B64 =exec p p
S_OR_B64 =exec exec p
S_XOR_B64 =exec exec p
S_ANDN2_B64 =exec exec p
S_ANDN2_B64 =exec p exec
S_CSELECT_B64 =exec p p
""".strip().splitlines()


def instruction(
    address: int, form: str, generator: random.Random, target: int | None = None
) -> RecoveredInstruction:
    """An instruction of a form.

    `=` defines, `+` keeps bits; `~` repeats the definition, and so does `!`, to no effect.
    """
    opcode, *words = form.split()
    names = {"v": VECTORS, "w": VECTOR_PAIRS, "p": PAIRS, "s": tuple(f"sgpr{n}" for n in range(4))}
    operands: list[RecoveredOperand] = []
    for word in words:
        kind = word.lstrip("=+")
        if kind in {"#", "-1"}:
            operands.append(RecoveredOperand(None, -1 if kind == "-1" else 5))
            continue
        tied = 0 if kind in {"~", "!"} else None
        register = operands[0].register if tied == 0 else generator.choice(names.get(kind, (kind,)))
        assert register is not None
        operands.append(
            RecoveredOperand(
                register,
                None,
                units_of(register),
                definition=word[0] in "=+",
                undef=kind == "!",
                tied_to=tied,
            )
        )
    if "SAVEEXEC" in opcode:
        operands += [
            RecoveredOperand("exec", None, definition=definition, implicit=True)
            for definition in (True, False)
        ]
    return RecoveredInstruction(
        address, form, b"", opcode, None, tuple(operands), target,  # type: ignore[arg-type]
        any(word[0] == "+" for word in words), opcode in {"V_READLANE", "V_MFMA"},
    )  # fmt: skip


def code_of(generator: random.Random, *, masks: bool) -> list[RecoveredInstruction]:
    """Code with jumps back and forth that ends at its last instruction."""
    count = generator.randint(4, 14)
    # Few forms in one code, so that they meet each other.
    forms = generator.sample(FORMS if masks else FORMS[:-1], 5)
    forms += generator.sample(MASKS, 4) if masks else []
    code = []
    for at in range(count):
        if generator.random() < 0.25:
            opcode = generator.choice(("S_BRANCH", "S_CBRANCH_SCC0", "S_CBRANCH_EXECZ"))
            code.append(instruction(4 * at, opcode, generator, 4 * generator.randint(0, count)))
        else:
            code.append(instruction(4 * at, generator.choice(forms), generator))
    return [*code, instruction(4 * count, "S_ENDPGM", generator)]


def following(code: Sequence[RecoveredInstruction], at: int) -> list[int]:
    """The instructions that may come after one, by its opcode alone."""
    if code[at].opcode == "S_ENDPGM":
        return []
    target = code[at].target
    if target is None:
        return [at + 1]
    return [target // 4] if code[at].opcode == "S_BRANCH" else [target // 4, at + 1]


def reachable(code: Sequence[RecoveredInstruction]) -> set[int]:
    found, pending = {0}, [0]
    while pending:
        new = set(following(code, pending.pop())) - found
        found |= new
        pending += new
    return found


def recovered_code(seed: int, *, masks: bool) -> tuple[list[RecoveredInstruction], random.Random]:
    """Code whose end is reached."""
    for attempt in range(100):
        generator = random.Random(100 * seed + attempt)
        code = code_of(generator, masks=masks)
        if len(code) - 1 in reachable(code):
            return code, generator
    raise AssertionError("no code reaches its end")


Term = tuple[Callable[..., int], Sequence[int | None]]
"""What makes two bits of a scalar of two bits of others; None stands for ones."""


def terms(each: RecoveredInstruction) -> dict[int, list[Term]]:
    """What the scalars that an instruction writes may be; no terms for what may be anything.

    The halves of EXEC are -1 and -2.
    """

    def units(operand: RecoveredOperand) -> Sequence[int | None]:
        if operand.register is None:
            return (None, None)
        return HALVES.get(operand.register) or operand.units

    first, *others = each.operands or [RecoveredOperand(None, 0)]
    if not first.definition or first.register in {*VECTORS, *VECTOR_PAIRS}:
        return {}
    target = [unit for unit in units(first) if unit is not None]
    sources = [units(o) for o in others if not o.implicit and o.number != 5]
    name = each.opcode.rpartition("_")[0]
    if name.endswith("SAVEEXEC"):
        change = LOGIC[name.removesuffix("_SAVEEXEC")]
        saved: dict[int, list[Term]] = {
            unit: [(lambda a: a, (-1 - half,))] for half, unit in enumerate(target)
        }
        return saved | {-1 - half: [(change, (-1 - half, sources[0][half]))] for half in (0, 1)}
    found: dict[int, list[Term]] = {}
    for half, unit in enumerate(target):
        found[unit] = []
        if not all(sources):  # of a register like M0 nothing is known
            continue
        if name in LOGIC:
            found[unit] = [(LOGIC[name], [source[half] for source in sources])]
        elif name in {"S_MOV", "S_CSELECT"}:
            found[unit] = [(lambda a: a, (source[half],)) for source in sources]
    return found
