"""Cubins: what is read of whole ones, and that broken ones are told in one line."""

from __future__ import annotations

import random
import sys

import pytest

from tests.backends.nvidia.assembled_kernels import LOOP, SEVERAL, assembled
from verilocc_bench.backends.nvidia.cubin import is_cubin, read_cubin
from verilocc_bench.errors import InputError, MissingExtraError

# Where the header of an ELF file of 64 bits has them.
FLAGS, TYPE, MACHINE, ABI, SECTIONS = 48, 16, 18, 8, 40


def patched(data: bytes, offset: int, *values: int) -> bytes:
    return data[:offset] + bytes(values) + data[offset + len(values) :]


def test_a_kernel_and_its_registers() -> None:
    data = assembled(LOOP)
    assert is_cubin(data)
    cubin = read_cubin(data, "loop.cubin")
    assert cubin.architecture == "sm_80"
    (kernel,) = cubin.kernels
    assert cubin.kernel(None) == cubin.kernel("sums") == kernel
    assert kernel.launch_bounds.threads == 128
    assert kernel.code_size % 16 == 0
    assert data[kernel.register_count_offset] == kernel.register_count > 4
    (offset,) = kernel.register_attribute_offsets
    assert int.from_bytes(data[offset : offset + 4], "little") == kernel.register_count


def test_several_kernels_in_the_order_of_the_symbols() -> None:
    cubin = read_cubin(assembled(SEVERAL))
    assert sorted(kernel.name for kernel in cubin.kernels) == ["calls", "plain"]
    assert len({kernel.code_offset for kernel in cubin.kernels}) == 2
    with pytest.raises(InputError, match=r"x: the file has several kernels.*--function .*: "):
        cubin.kernel(None, "x")
    with pytest.raises(InputError, match="there is no kernel 'squared'; there are "):
        cubin.kernel("squared")


def test_architectures_of_both_headers() -> None:
    assert read_cubin(assembled(LOOP.replace("sm_80", "sm_90"), "sm_90")).architecture == "sm_90"
    # As ptxas 12 writes it.
    old = patched(patched(assembled(LOOP), 7, 51, 7), FLAGS, 0x50, 0x05, 0x50, 0x00)
    assert read_cubin(old).architecture == "sm_80"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: b"", "expected a cubin"),
        (lambda data: b".version 8.7", "expected a cubin: byte 0"),
        (lambda data: data[:20], "expected 64 bytes of ELF header, the file has 20"),
        (lambda data: patched(data, 4, 1), "ELF file of 64 bits"),
        (lambda data: patched(data, MACHINE, 62, 0), "for machine 190, not 62"),
        (lambda data: patched(data, TYPE, 1, 0), "expected a linked cubin, ELF type 2, not 1"),
        (lambda data: data[:-100], "it is not whole"),
        (lambda data: data[:70], "it is not whole"),
        (lambda data: patched(data, SECTIONS, *b"\xff" * 8), "it is not whole"),
        (lambda data: data.replace(b"\0.symtab\0", b"\0.symtax\0"), "symbol table"),
        (lambda data: data.replace(b".text.sums\0", b".text.sumz\0"), "the code of kernel 'sums'"),
    ],
)
def test_what_is_no_whole_cubin_is_an_input_error(change, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=words) as error:
        read_cubin(change(assembled(LOOP)), "k.cubin")
    assert str(error.value).startswith("k.cubin: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("ptx", [LOOP, SEVERAL], ids=["loop", "several"])
def test_truncated_and_garbled_files_are_told_or_read(ptx: str) -> None:
    data = assembled(ptx)
    cases = [data[:size] for size in range(0, len(data), 512)]
    chance = random.Random(3)
    table = int.from_bytes(data[SECTIONS : SECTIONS + 8], "little")
    for _ in range(300):
        garbled = bytearray(data)
        for _ in range(chance.choice((1, 2, 8))):
            start = chance.choice((0, table, 0))
            place = start + chance.randrange(min(len(data) - start, chance.choice((64, 1 << 20))))
            garbled[place] ^= 1 << chance.randrange(8)
        cases.append(bytes(garbled))
    errors: list[str] = []
    for case in cases:
        try:
            read_cubin(case, "k.cubin")
        except InputError as error:
            errors.append(str(error))
    assert len(errors) > 50
    assert all(error.startswith("k.cubin: ") for error in errors), errors


def test_without_pyelftools_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    data = assembled(LOOP)
    monkeypatch.setitem(sys.modules, "elftools.elf.elffile", None)
    with pytest.raises(MissingExtraError, match=r"verilocc-bench\[cubin\]"):
        read_cubin(data)
