"""Write-back: what must stay stays, what must change is exactly the renaming."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.backends.nvidia.assembled_kernels import (
    LOOP,
    PRODUCT,
    SEVERAL,
    START,
    assembled,
    code,
    embedded,
    entry,
    linear_scan,
    lowered_kernel,
    module,
    normalized,
    permuted,
)
from tests.sampling import few_rows
from verilocc_bench.backends.kernel import ReadOptions
from verilocc_bench.backends.nvidia import flow, read
from verilocc_bench.backends.nvidia.architectures import KNOWN
from verilocc_bench.backends.nvidia.cubin import read_cubin
from verilocc_bench.backends.nvidia.encoding import BitField, reuse_fields, reuse_mask
from verilocc_bench.backends.nvidia.flow import control_flow
from verilocc_bench.backends.nvidia.kernel import read_kernel
from verilocc_bench.backends.nvidia.normalize import normalize_sass
from verilocc_bench.backends.nvidia.proof import ProofFailed, prove_bytes, prove_instructions
from verilocc_bench.backends.nvidia.read import disassembled_function
from verilocc_bench.backends.nvidia.records import SassFunction
from verilocc_bench.backends.nvidia.tools import disassemble
from verilocc_bench.backends.nvidia.write_back import stale_reuse_marks, write_assignment
from verilocc_bench.dataset import Row, load_rows
from verilocc_bench.errors import AllocationFailed, InputError
from verilocc_bench.ir import PhysicalRegister

pytestmark = pytest.mark.slow

KERNELS = pytest.mark.parametrize("ptx", [LOOP, PRODUCT], ids=["loop", "product"])
MASKED = module(
    entry(
        "masked",
        f"""{START}
    ld.global.b32 %r1, [%d1];
    ld.global.b32 %r2, [%d1+4];
    match.any.sync.b32 %r3, %r1, %r2;
    redux.sync.add.s32 %r4, %r3, %r2;
    st.global.b32 [%d1+8], %r4;
    """,
    )
)
ROWS = [row for row in load_rows("mini").rows if row.arch == "sm_80"]


@KERNELS
def test_own_registers_give_the_same_bytes_and_permuted_groups_a_renaming_that_runs(
    ptx: str,
) -> None:
    cubin = assembled(ptx)
    problem = normalized(cubin)
    lowered = lowered_kernel(cubin, problem, problem.assignment)
    assert lowered.data == cubin
    assert (lowered.changed_instructions, lowered.cleared_reuse_marks) == (0, 0)
    assert lowered.runnable
    assert lowered.hazards == ()
    lowered = lowered_kernel(cubin, problem, permuted(problem, 2))
    assert lowered.changed_instructions
    assert lowered.cleared_reuse_marks == 0
    assert lowered.runnable, lowered.reasons
    # The inverse, from the patched cubin's own problem, leads back.
    again = normalized(lowered.data)
    assert again.function == problem.function
    assert lowered_kernel(lowered.data, again, problem.assignment).data == cubin


def test_each_file_is_read_once_and_its_flow_worked_out_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cubin = assembled(PRODUCT)
    counts = Counter[str]()
    for where, name in ((flow, "_Flow"), (read, "read_cubin"), (read, "parse_sass")):
        monkeypatch.setattr(where, name, counting(counts, name, getattr(where, name)))
    kernel = read_kernel(cubin, Path("k.cubin"), ReadOptions())
    lowered = write_assignment(kernel.code, permuted(kernel.code.normalized, 0))
    assert lowered.changed_instructions
    # Of the cubin with the answer, the code is read for the proof, and nothing else.
    assert counts == {"_Flow": 1, "read_cubin": 2, "parse_sass": 2}
    assert write_assignment(kernel.code, kernel.code.normalized.assignment).data == cubin
    assert counts["read_cubin"] == 2


def counting(
    counts: Counter[str], name: str, function: Callable[..., object]
) -> Callable[..., object]:
    def counted(*arguments: object) -> object:
        counts[name] += 1
        return function(*arguments)

    return counted


def test_attributes_that_name_a_register_name_none_afterwards() -> None:
    cubin = assembled(MASKED)
    kernel = read_cubin(cubin).kernel(None)
    assert kernel.mask_register_offsets

    def named(data: bytes) -> set[bytes]:
        return {data[offset : offset + 4] for offset in kernel.mask_register_offsets}

    assert any(each.endswith(b"\x05") for each in named(cubin))
    problem = normalized(cubin)
    lowered = lowered_kernel(cubin, problem, permuted(problem, 2))
    assert named(lowered.data) == {b"\xff" * 4}
    assert lowered.runnable, lowered.reasons


@KERNELS
def test_another_allocators_registers_are_written_but_not_said_to_run(ptx: str) -> None:
    cubin = assembled(ptx)
    problem = normalized(cubin)
    lowered = lowered_kernel(cubin, problem, linear_scan(problem))
    assert not lowered.runnable
    assert lowered.reasons
    kernel = read_cubin(lowered.data).kernel(problem.name)
    highest = max(
        reference.first + reference.count - 1
        for instruction in lowered.function.instructions
        for reference in (*instruction.definitions, *instruction.uses)
        if reference.file == "R"
    )
    assert kernel.register_count == lowered.register_count == highest + 3
    assert f"SHI_REGISTERS={highest + 3}" in disassemble(lowered.data)
    (offset,) = kernel.register_attribute_offsets
    assert int.from_bytes(lowered.data[offset : offset + 4], "little") == highest + 3


def test_a_mark_is_cleared_where_its_next_reader_is_another() -> None:
    function = code(embedded(min(ROWS, key=lambda row: row.n_instructions)))
    original = [instruction.encoding for instruction in function.instructions]
    assert list(stale_reuse_marks(function, original)) == []
    checked = 0
    for index, slot, register, readers in marks_with_readers(function):
        mark = index, reuse_mask(slot)
        assert is_cleared(function, mark, *readers[0], 250)
        # A later reader of the register reads it anew.
        assert not any(is_cleared(function, mark, *reader, 250) for reader in readers[1:2])
        for between in range(index + 1, readers[0][0]):
            field = reuse_fields(function.instructions[between]).get(slot)
            assert field is None or is_cleared(function, mark, between, field, register)
        checked += 1
    assert checked >= 5


def is_cleared(
    function: SassFunction, mark: tuple[int, int], place: int, field: BitField, number: int
) -> bool:
    """True if a mark must go where a field of another instruction has another number."""
    words = [instruction.encoding for instruction in function.instructions]
    words[place] = field.write(words[place], number)
    index, bit = mark
    return any(n == index and mask & bit for n, mask in stale_reuse_marks(function, words))


def marks_with_readers(function: SassFunction):  # type: ignore[no-untyped-def]
    """Each mark: its instruction, slot and register, and the readers through the slot behind it."""
    for block in control_flow(function):
        for place, index in enumerate(block.instructions):
            word = function.instructions[index].encoding
            for slot, field in reuse_fields(function.instructions[index]).items():
                if not word & reuse_mask(slot):
                    continue
                register = field.read(word)
                readers = [
                    (later, its)
                    for later in block.instructions[place + 1 :]
                    if (its := reuse_fields(function.instructions[later]).get(slot)) is not None
                    and its.read(function.instructions[later].encoding) == register
                ]
                yield index, slot, register, readers


def test_other_kernels_of_the_cubin_stay() -> None:
    cubin = assembled(SEVERAL)
    problem = normalize_sass(code(cubin, "plain"), 255)
    lowered = lowered_kernel(cubin, problem, permuted(problem, 1))
    assert lowered.data != cubin
    other = read_cubin(cubin).kernel("calls")
    assert read_cubin(lowered.data).kernel("calls") == other
    place = slice(other.code_offset, other.code_offset + other.code_size)
    assert lowered.data[place] == cubin[place]


def test_a_cubin_of_another_architecture_is_refused() -> None:
    with pytest.raises(InputError, match=f"x: expected a cubin for {KNOWN}, this is one for sm_75"):
        disassembled_function(assembled(LOOP.replace("sm_80", "sm_75"), "sm_75"), "x", "sums")


def test_the_problem_of_another_cubin_is_refused() -> None:
    problem = normalized(assembled(PRODUCT))
    with pytest.raises(ProofFailed, match="not of this cubin"):
        lowered_kernel(assembled(LOOP), replace(problem, name="sums"), problem.assignment)


def test_the_proof_sees_every_change() -> None:
    cubin = assembled(LOOP)
    problem = normalized(cubin)
    kernel = read_cubin(cubin).kernel("sums")
    original = code(cubin, "sums")
    chance = random.Random(8)
    prove_instructions(original, original, {})
    data = bytearray(cubin)
    indices = chance.sample(range(len(original.instructions) - 8), 6)
    for index in indices:
        data[kernel.code_offset + 16 * index + chance.randrange(16)] ^= 1 << chance.randrange(8)
    patched = code(bytes(data), "sums")
    for index in indices:
        instructions = [*original.instructions]
        instructions[index] = patched.instructions[index]
        with pytest.raises(ProofFailed, match=r"sums at 0x|changed"):
            prove_instructions(original, replace(original, instructions=tuple(instructions)), {})
    outside = bytearray(cubin)
    outside[kernel.code_offset - 1] ^= 1
    with pytest.raises(ProofFailed, match=f"byte {kernel.code_offset - 1} "):
        prove_bytes(cubin, bytes(outside), kernel)
    number = next(iter(problem.assignment))
    wrong = {**problem.assignment, number: PhysicalRegister("UP", 0)}
    with pytest.raises(ProofFailed, match="another register file"):
        lowered_kernel(cubin, problem, wrong)


@pytest.mark.parametrize("row", few_rows(ROWS), ids=[row.id for row in ROWS])
def test_round_trip_of_the_embedded_kernels(row: Row) -> None:
    cubin = embedded(row)
    problem = normalized(cubin)
    assert lowered_kernel(cubin, problem, problem.assignment).data == cubin
    lowered = lowered_kernel(cubin, problem, permuted(problem, 1))
    assert lowered.runnable, lowered.reasons
    # The registers leave no trace in the problem.
    assert normalize_sass(lowered.function, 255).function == problem.function
    try:
        other = linear_scan(problem)
    except AllocationFailed:
        return
    lowered = lowered_kernel(cubin, problem, other)
    assert not lowered.runnable
    assert all(hazard.registers for hazard in lowered.hazards)
