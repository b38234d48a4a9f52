"""What compilers and answers insert, counted."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from benchmarks import reference_splitting as module
from benchmarks.inserted_code import InsertedCode, InsertedKind, add_up, count_inserted
from benchmarks.reference_splitting import (
    ALLOCATION_OPTIONS,
    inserted_between,
    reference_splitting,
)
from tests.backends.amdgpu.machine_ir import ROWS, SPLIT_ROWS, load
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.backends.amdgpu.read import parse_mir
from verilocc_bench.backends.amdgpu.tools import run_llc
from verilocc_bench.dataset import Row
from verilocc_bench.edits import Answer, parse_edits
from verilocc_bench.errors import InputError

NUMBER = re.compile(r",? debug-instr-number \d+")
split_row = pytest.mark.parametrize("row", SPLIT_ROWS, ids=lambda row: f"{row.arch}-{row.id}")


def opcodes(text: str) -> Counter[str]:
    body = text[text.index("\nbody:") :]
    return Counter(re.findall(r"^ +(?:.* = )?(?:[a-z-]+ )*([A-Z]\w+)(?= |$)", body, re.MULTILINE))


@pytest.mark.usefixtures("llc")
@split_row
def test_numbers_change_no_code_and_what_has_none_is_llvms(
    row: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = load(row)
    plain = run_llc(kernel.text, row.arch, "asm", ALLOCATION_OPTIONS).decode()
    seen: list[str] = []

    def spy(*arguments: object) -> bytes:
        seen.append(run_llc(*arguments).decode())  # type: ignore[arg-type]
        return seen[-1].encode()

    monkeypatch.setattr(module, "run_llc", spy)
    found = reference_splitting(kernel.text, kernel.machine, kernel.problem)
    assert NUMBER.sub("", seen[0]) == plain
    # By the texts alone: LLVM inserts spills and reloads, and nothing in them was there before.
    before, after = opcodes(kernel.text), opcodes(plain)
    spills = {name: count for name, count in after.items() if name.startswith("SI_SPILL_")}
    assert not any(name.startswith("SI_SPILL_") for name in before)
    kinds = found.kinds
    assert sum(spills.values()) == sum(
        kinds.get(kind, InsertedCode()).instructions
        for kind in InsertedKind
        if kind.endswith("spill") or kind in {"vector_reload"}
    )
    restored = after["SI_RESTORE_S32_FROM_VGPR"]
    assert kinds.get(InsertedKind.SCALAR_RELOAD, InsertedCode()).instructions == restored
    copies = sum(c.instructions for kind, c in kinds.items() if kind.endswith("copy"))
    assert after["COPY"] == before["COPY"] - found.vanished.instructions + copies
    depths = kernel.problem.loop_depths
    assert len(found.blocks) == len(depths)
    for block, depth in zip(found.blocks, depths, strict=True):
        for counts in block.values():
            assert counts.weighted_instructions == counts.instructions * 10**depth
            assert counts.weighted_lanes == counts.lanes * 10**depth
            assert counts.lanes >= counts.instructions > 0
    assert found.total.lanes == sum(counts.lanes for counts in kinds.values())
    assert found.llc_version.startswith("22.")
    assert (found.scratch_bytes or 0) >= 0


@pytest.mark.usefixtures("llc")
@pytest.mark.parametrize("arch", ["gfx90a", "gfx942"])
def test_nothing_is_inserted_where_one_register_each_is_enough(arch: str) -> None:
    row = min((row for row in ROWS if row.arch == arch), key=lambda row: row.n_instructions)
    kernel = load(row)
    found = reference_splitting(kernel.text, kernel.machine, kernel.problem)
    assert found.total == InsertedCode()
    assert found.kinds == {}
    assert (found.removed, found.scratch_bytes) == (InsertedCode(), 0)
    # As many copies become identities as the text has and LLVM's label says.
    assert found.vanished.instructions > 0


def test_an_answers_edits_are_counted_in_the_same_units() -> None:
    row = next(row for row in ROWS if row.arch == "gfx942" and row.kernel == "gemm_split_k")
    problem = AllocationProblem.from_text(row.normalized)
    classes = problem.function.virtual_registers
    depths = problem.loop_depths
    inside = next(b for b, depth in enumerate(depths) if depth)
    pair = next(n for n, c in enumerate(classes) if c.name.startswith("V2"))
    scalar = next(n for n, c in enumerate(classes) if c.name == "S")
    assert row.label is not None
    new = len(classes)
    names = {f"%{new}": row.label[f"%{pair}"], f"%{new + 1}": "a0", f"%{new + 2}": "s50"}
    edits = {
        "new": {f"%{new}": "V2 2 v/2", f"%{new + 1}": "A2 2 a/2", f"%{new + 2}": "S"},
        "insert": [
            # To itself: an identity, which costs nothing.
            {"at": [0, 0], "move": [[f"%{new}", f"%{pair}"]]},
            {"at": [0, 0], "move": [[f"%{new + 1}", f"%{pair}"]]},
            {"at": [inside, 0], "spill": ["slot0-1", f"%{pair}"]},
            {"at": [inside, 0], "reload": [f"%{pair}.0", "slot0"]},
            {"at": [0, 0], "spill": ["slot2", f"%{scalar}"]},
            {"at": [0, 0], "move": [[f"%{new + 2}", f"%{scalar}"]]},
        ],
    }
    answer = Answer({**row.label, **names}, parse_edits(edits))
    weight = 10 ** depths[inside]
    assert count_inserted(problem, answer) == {
        InsertedKind.ACCUMULATOR_COPY: InsertedCode(1, 2, 1, 2),
        InsertedKind.SCALAR_COPY: InsertedCode(1, 1, 1, 1),
        InsertedKind.VECTOR_SPILL: InsertedCode(1, 2, weight, 2 * weight),
        InsertedKind.VECTOR_RELOAD: InsertedCode(1, 1, weight, weight),
        InsertedKind.SCALAR_SPILL: InsertedCode(1, 1, 1, 1),
    }


@pytest.mark.usefixtures("llc")
@split_row
def test_texts_without_numbers_say_nearly_the_same(row: Row) -> None:
    kernel = load(row)
    exact = reference_splitting(kernel.text, kernel.machine, kernel.problem).kinds
    text = run_llc(kernel.text, row.arch, "asm", ALLOCATION_OPTIONS).decode()
    blocks = inserted_between(
        kernel.machine, parse_mir(text).functions[0], kernel.problem.loop_depths
    )
    for kind in InsertedKind:
        counts = add_up(block[kind] for block in blocks if kind in block)
        if kind.endswith(("spill", "reload")):
            assert counts == exact.get(kind, InsertedCode())
    least = add_up(add_up(block.values()) for block in blocks)
    assert least.lanes <= add_up(exact.values()).lanes
    with pytest.raises(InputError, match="blocks stand for"):
        inserted_between(kernel.machine, kernel.machine, kernel.problem.loop_depths[1:])
