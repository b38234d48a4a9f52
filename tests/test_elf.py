"""ELF files with damaged headers are refused in one line, whatever the library raises."""

from __future__ import annotations

import pytest

from tests.machine.assembly import assembled
from verilocc_bench.elf import read_elf, read_notes
from verilocc_bench.errors import InputError
from verilocc_bench.machine.code_object import load_code_object

pytestmark = pytest.mark.slow

HEADER_BYTES = 64
SECTIONS_FIELD = slice(40, 48)
"""Of the file's header: where the table of sections begins."""


@pytest.fixture(name="whole", scope="module")
def _whole() -> bytes:
    return assembled("s_endpgm")


def patched(data: bytes, at: int, value: bytes) -> bytes:
    return data[:at] + value + data[at + len(value) :]


def test_a_whole_file(whole: bytes) -> None:
    file = read_elf(whole, "execute")
    assert file.machine == "EM_AMDGPU"
    text = file.section(".text")
    assert text is not None
    assert text.data == whole[text.offset : text.offset + 4]
    assert file.section(".none") is None
    (kernel,) = [symbol for symbol in file.symbols if symbol.is_function]
    assert (kernel.name, kernel.section) == ("k", text.index)
    (note,) = [
        note
        for each in file.sections
        if each.kind == "SHT_NOTE"
        for note in read_notes(each, "AMDGPU")
    ]
    assert b"amdhsa.kernels" in note


@pytest.mark.parametrize("value", [b"\xff", b"\x7f", b"\0"])
def test_every_field_of_every_header(whole: bytes, value: bytes) -> None:
    """Every field of the file's and of the sections' headers, with the largest and smallest."""
    table = int.from_bytes(whole[SECTIONS_FIELD], "little")
    refused = set()
    for at in (*range(16, HEADER_BYTES, 4), *range(table, len(whole), 4)):
        try:
            load_code_object(patched(whole, at, value * 8)[: len(whole)])
        except InputError as error:
            refused.add(str(error))
    assert len(refused) > 10


def test_damage_is_placed(whole: bytes) -> None:
    table = int.from_bytes(whole[SECTIONS_FIELD], "little")
    with pytest.raises(InputError, match="section 0, whose header is at byte"):
        read_elf(patched(whole, table, b"\xff" * 64), "execute")
    with pytest.raises(InputError, match=r"the table of .* goes beyond the end"):
        read_elf(whole[:-1], "execute")
    with pytest.raises(InputError, match="the header cannot be read"):
        read_elf(whole[:20], "execute")


def test_metadata_of_another_shape(whole: bytes) -> None:
    for before, after in (
        (b"amdhsa.kernels", b"amdhsa.kernelz"),
        (b".offset", b".offsex"),
        (b".args", b".argz"),
        (b".value_kind", b".value_kinx"),
    ):
        changed = whole.replace(before, after)
        assert changed != whole
        if before == b".args":  # a kernel may have no arguments
            assert load_code_object(changed).kernel().arguments == ()
            continue
        with pytest.raises(InputError, match=r"the code object has no kernel|no (int|str) as"):
            load_code_object(changed)
