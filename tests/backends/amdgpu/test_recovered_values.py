"""Recovered webs of random code keep every value, by executions of both.

The code runs on four lanes, once in its own registers, and once with a storage of its own for
each web. There a definition that does not read its own register leaves nothing in the lanes that
EXEC does not select: something else may have been in its register before.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from verilocc_bench.backends.amdgpu.recovery.execution_mask import MaskFlow, analyse_mask
from verilocc_bench.backends.amdgpu.recovery.flow import find_blocks
from verilocc_bench.backends.amdgpu.recovery.records import (
    FIRST_VCC,
    CodeBlock,
    RecoveredInstruction,
    RecoveredOperand,
    is_vector,
    units_of,
)
from verilocc_bench.backends.amdgpu.recovery.webs import CodeWebs, find_webs

PAIRS = ("sgpr0_sgpr1", "sgpr2_sgpr3", "sgpr4_sgpr5", "vcc")
VECTORS = ("vgpr0", "vgpr1", "vgpr2")
LIVE_IN = [*units_of("vgpr0"), *units_of("sgpr0_sgpr1")]
HALVES = {"exec": (0, 1), "exec_lo": (0,), "exec_hi": (1,)}
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
S_MOV_B64 =exec p
S_MOV_B64 =exec -1
S_MOV_B32 =exec_lo s
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
    """An instruction of a form: `=` defines, `+` keeps bits, `~` repeats the definition."""
    opcode, *words = form.split()
    names = {"v": VECTORS, "p": PAIRS, "s": tuple(f"sgpr{n}" for n in range(6))}
    operands: list[RecoveredOperand] = []
    for word in words:
        kind = word.lstrip("=+")
        if kind in {"#", "-1"}:
            operands.append(RecoveredOperand(None, -1 if kind == "-1" else 5))
            continue
        tied = 0 if kind == "~" else None
        register = (
            operands[0].register if kind == "~" else generator.choice(names.get(kind, (kind,)))
        )
        assert register is not None
        operands.append(
            RecoveredOperand(
                register, None, units_of(register), definition=word[0] in "=+", tied_to=tied
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
    code = []
    for at in range(count):
        if generator.random() < 0.25:
            opcode = generator.choice(("S_BRANCH", "S_CBRANCH_SCC0", "S_CBRANCH_EXECZ"))
            code.append(instruction(4 * at, opcode, generator, 4 * generator.randint(0, count)))
        else:
            chosen = MASKS if masks and generator.random() < 0.4 else FORMS if masks else FORMS[:-1]
            code.append(instruction(4 * at, generator.choice(chosen), generator))
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


def test_blocks_have_the_edges_of_the_code() -> None:
    for seed in range(120):
        code, _ = recovered_code(seed, masks=True)
        blocks = find_blocks(code)
        reached = reachable(code)
        assert [each for block in blocks for each in block.instructions] == [
            code[at] for at in sorted(reached)
        ]
        edges = {
            (one.address, other.address)
            for block in blocks
            for one, other in pairwise(block.instructions)
        }
        for block in blocks:
            last = block.instructions[-1].address
            edges |= {(last, blocks[n].instructions[0].address) for n in block.successors}
            assert len(set(block.successors)) == len(block.successors)
        assert edges == {(4 * at, 4 * to) for at in reached for to in following(code, at)}
        # A block ends where another path may come in, and nowhere else.
        for at in reached - {0}:
            begins = any(block.instructions[0] is code[at] for block in blocks)
            is_target = any(4 * at == each.target for each in code)
            after_jump = code[at - 1].target is not None or code[at - 1].opcode == "S_ENDPGM"
            assert begins == (is_target or after_jump)


def read_webs(webs: CodeWebs) -> set[int]:
    operands = (operand for rows in webs.operands for row in rows for operand in row)
    return {web for operand in operands if not operand.definition for web in operand.webs}


Values = dict[int, list[object]]
"""For each unit or web what is in its lanes; scalars have it in lane 0. None is nothing known."""


class Execution:
    """One random execution, in registers and in webs."""

    def __init__(
        self, blocks: tuple[CodeBlock, ...], mask: MaskFlow, webs: CodeWebs, seed: int
    ) -> None:
        self.blocks, self.mask, self.webs = blocks, mask, webs
        self.chance = random.Random(seed)
        self.all = self.exec = self.chance.choice((0b1111, 0b1111, 0b0111, 0b0101))
        self.bits = {unit: self.chance.randrange(4) for name in PAIRS for unit in units_of(name)}
        self.values: Values = defaultdict(lambda: [None] * 4)
        self.stored: Values = defaultdict(lambda: [None] * 4)
        self.read = read_webs(webs)
        for unit in LIVE_IN:
            self.values[unit] = [f"argument {unit}"] * 4
        for unit, web in webs.live_ins:
            self.stored[web] = [f"argument {unit}"] * 4

    def run(self) -> None:
        b = 0
        for step in range(30):
            for i in range(len(self.blocks[b].instructions)):
                self.step(b, i, step)
            if not self.blocks[b].successors:
                break
            b = self.chance.choice(self.blocks[b].successors)

    def step(self, b: int, i: int, step: int) -> None:
        each = self.blocks[b].instructions[i]
        assert self.mask.partial[b][i] or self.exec == self.all
        lanes = self.exec
        self.check_uses(b, i, self.all if each.reads_all_lanes else lanes)
        new, mask = self.results(each), self.exec
        tied = {o.tied_to for o in each.operands if o.tied_to is not None}
        assert not tied & self.webs.kept[b][i]
        for operand in self.webs.operands[b][i]:
            if operand.definition:
                for offset, (unit, web) in enumerate(zip(operand.units, operand.webs, strict=True)):
                    value = f"{step} {b} {i} {operand.operand} {offset}"
                    kept = operand.operand in tied | self.webs.kept[b][i]
                    for lane in range(4 if is_vector(unit) else 1):
                        if lanes >> lane & 1 or not is_vector(unit):
                            self.values[unit][lane] = self.stored[web][lane] = value
                        elif not kept:
                            self.stored[web][lane] = "lost"
        for unit, bits in new.items():
            if unit >= 0:
                self.bits[unit] = bits
            else:
                half = -1 - unit
                mask = mask & ~(3 << 2 * half) | (bits << 2 * half & self.all)
        assert self.mask.widens[b][i] or not mask & ~self.exec
        self.exec = mask

    def check_uses(self, b: int, i: int, lanes: int) -> None:
        each = self.blocks[b].instructions[i]
        for operand in self.webs.operands[b][i]:
            if operand.definition and not each.keeps_lanes:
                own = operand.operand in self.webs.kept[b][i]
                assert not own or (is_vector(operand.units[0]) and self.mask.partial[b][i])
                continue
            for unit, web in zip(operand.units, operand.webs, strict=True):
                # What nobody reads may be made of anything.
                for lane in range(4 if is_vector(unit) else 1) if web in self.read else ():
                    value = self.values[unit][lane]
                    if value is None or not (lanes >> lane & 1 or not is_vector(unit)):
                        continue
                    assert not operand.undefined
                    assert not operand.definition or operand.operand in self.webs.kept[b][i]
                    assert self.stored[web][lane] == value

    def results(self, each: RecoveredInstruction) -> dict[int, int]:
        """The two bits that scalar units hold afterwards; the halves of EXEC are -1 and -2."""

        def units(register: str | None) -> list[int]:
            assert register is not None
            return [-1 - n for n in HALVES.get(register, ())] or list(units_of(register))

        def read(unit: int) -> int:
            return self.bits[unit] if unit >= 0 else self.exec >> 2 * (-1 - unit) & 3

        written = [o for o in each.operands if o.definition and not o.implicit]
        if not written or written[0].register in VECTORS:
            return {}
        target = units(written[0].register)
        sources = [
            [3] * len(target) if o.number is not None else [read(u) for u in units(o.register)]
            for o in each.operands
            if not (o.definition or o.implicit or o.register in VECTORS)
        ]
        name = each.opcode.rpartition("_")[0]
        if "SAVEEXEC" in name:
            saved = dict(zip(target, (read(-1), read(-2)), strict=True))
            change = LOGIC[name.removesuffix("_SAVEEXEC")]
            return saved | {-1 - n: change(read(-1 - n), sources[0][n]) for n in range(2)}
        if name in LOGIC and len(target) == 2:
            return {u: LOGIC[name](a, b) for u, a, b in zip(target, *sources, strict=True)}
        if name == "S_CSELECT":
            return dict(zip(target, self.chance.choice(sources), strict=True))
        if name == "S_MOV" and each.operands[1].number != 5:
            return dict(zip(target, sources[0], strict=True))
        return {unit: self.chance.randrange(4) for unit in target}


def test_every_use_finds_the_value_that_the_registers_have() -> None:
    hidden = 0
    for seed in range(150):
        code, _ = recovered_code(seed, masks=True)
        blocks = find_blocks(code)
        mask = analyse_mask(blocks)
        webs = find_webs(blocks, mask, LIVE_IN)
        for attempt in range(4):
            Execution(blocks, mask, webs, attempt).run()
        hidden += sum(bool(each) for row in webs.kept for each in row)
    assert hidden > 30


def test_where_different_versions_meet_a_version_begins() -> None:
    """A version has the place where it begins: a block, or an instruction that widens EXEC."""
    met = 0
    for seed in range(120):
        blocks = find_blocks(recovered_code(seed, masks=True)[0])
        mask = analyse_mask(blocks)
        arriving: dict[int, set[tuple[int, int]]] = {n: set() for n in range(len(blocks))}
        arriving[0].add((0, -1))
        pending = [(0, (0, -1))]
        while pending:
            b, version = pending.pop()
            if mask.merges[b]:
                version = b, -1
            version = max(
                [version, *((b, i) for i, wider in enumerate(mask.widens[b]) if wider)],
                key=lambda place: (place[0] == b, place[1]),
            )
            for successor in blocks[b].successors:
                if version not in arriving[successor]:
                    arriving[successor].add(version)
                    pending.append((successor, version))
        assert mask.merges[0]
        assert any(map(any, mask.widens)) or not any(mask.merges[1:])
        for b, versions in arriving.items():
            assert mask.merges[b] or len(versions) == 1
            met += len(versions) > 1
    assert met > 30


def reaching(
    code: Sequence[RecoveredInstruction], *, scalars: bool
) -> Iterator[set[tuple[int, int, int]]]:
    """The (instruction, operand, unit) that one definition reaches, with that definition.

    Walks every path from it until its unit is written again.
    """
    arguments = [(-1, 0, unit) for unit in LIVE_IN]
    definitions = [
        (at, number, unit)
        for at in sorted(reachable(code))
        for number, operand in enumerate(code[at].operands)
        for unit in operand.units
        if operand.definition
    ]
    for at, number, unit in arguments + definitions:
        if unit >= FIRST_VCC or (scalars and is_vector(unit)):
            continue
        found, pending, seen = {(at, number, unit)}, following(code, at) if at >= 0 else [0], set()
        if at >= 0:  # a use that repeats the definition belongs to it, whatever it reads
            found |= {(at, n, unit) for n, o in enumerate(code[at].operands) if o.tied_to == number}
        while pending:
            place = pending.pop()
            if place in seen:
                continue
            seen.add(place)
            writes = False
            for other, operand in enumerate(code[place].operands):
                if unit in operand.units:
                    writes |= operand.definition
                    if not operand.definition or code[place].keeps_lanes:
                        found.add((place, other, unit))
                    if operand.tied_to is not None:
                        found.add((place, operand.tied_to, unit))
            pending += [] if writes else following(code, place)
        yield found


def test_values_that_share_no_use_share_no_web() -> None:
    """Where nothing writes EXEC, and of scalars everywhere: webs are unions of what is reached."""
    for seed in range(120):
        masks = bool(seed % 2)
        code, _ = recovered_code(seed, masks=masks)
        group: dict[tuple[int, int, int], set[tuple[int, int, int]]] = {}
        for found in reaching(code, scalars=masks):
            joined = set(found).union(*(group.get(each, ()) for each in found))
            group.update(dict.fromkeys(joined, joined))
        blocks = find_blocks(code)
        webs = find_webs(blocks, analyse_mask(blocks), LIVE_IN)
        by_web: dict[int, set[tuple[int, int, int]]] = defaultdict(set)
        for unit, web in webs.live_ins:
            by_web[web].add((-1, 0, unit))
        for block, rows in zip(blocks, webs.operands, strict=True):
            for each, row in zip(block.instructions, rows, strict=True):
                for operand in row:
                    for unit, web in zip(operand.units, operand.webs, strict=True):
                        if not (masks and is_vector(unit)):
                            by_web[web].add((each.address // 4, operand.operand, unit))
        read = read_webs(webs)
        for web, members in by_web.items():
            known = {frozenset(group.get(each, {each})) for each in members}
            if web not in read:  # an argument that only stays beside what nobody reads
                known = {frozenset(each for each in found if each[0] >= 0) for found in known}
            assert known == {frozenset(members)}, (seed, members)
