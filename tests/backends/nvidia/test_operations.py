"""Each row of the table of operations, on lines that nvdisasm prints."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.backends.nvidia.test_text import disassembly
from verilocc_bench.backends.nvidia.effects import effects_of, hidden_pair, matching_forms
from verilocc_bench.backends.nvidia.operations import OPERATION_FORMS
from verilocc_bench.backends.nvidia.records import RegisterReference
from verilocc_bench.backends.nvidia.text import parse_sass
from verilocc_bench.errors import InputError, RejectedKernel

SAMPLES = [
    tuple(part.strip() for part in line.split(";"))
    for line in Path(__file__).with_name("operation_samples.txt").read_text().splitlines()
]
"""An instruction, what it defines and what it uses: FILE INDEX [:COUNT], `!` where fixed."""


def shown(references: tuple[RegisterReference, ...]) -> str:
    return " ".join(
        f"{r.file}{r.first}{f':{r.count}' if r.count > 1 else ''}{'!' if r.fixed else ''}"
        for r in references
    )


@pytest.mark.parametrize(("line", "definitions", "uses"), SAMPLES, ids=[s[0] for s in SAMPLES])
def test_definitions_and_uses(line: str, definitions: str, uses: str) -> None:
    ((function),) = parse_sass(disassembly(line))
    instruction = function.instructions[0]
    assert shown(instruction.definitions) == definitions
    assert shown(instruction.uses) == uses
    assert all(0 <= r.operand < len(instruction.operands) for r in instruction.uses)


def _warp_group_samples() -> Iterator[tuple[str, str, str]]:
    for columns in range(8, 257, 8):
        for opcode, count in (
            (f"HGMMA.64x{columns}x16.F32.BF16", columns // 2),
            (f"HGMMA.64x{columns}x16.F16", columns // 4),
            (f"HGMMA.64x{columns}x8.F32.TF32", columns // 2),
            (f"IGMMA.64x{columns}x32.S8.S8", columns // 2),
            (f"QGMMA.64x{columns}x32.F32.E4M3.E5M2", columns // 2),
            (f"QGMMA.64x{columns}x32.F16.E4M3.E5M2", columns // 4),
        ):
            yield f"{opcode} R24, gdesc[UR8], R24, gsb0", f"R24:{count}", f"UR8:4 R24:{count}"


def _tensor_samples() -> Iterator[tuple[str, str, str]]:
    """Copies of a tensor of each rank, as nvdisasm's life ranges show them."""
    for rank in range(1, 6):
        loaded, stored, map_ = f"UR8:{rank + 2}", f"UR8:{rank + 1}", "UR18:2"
        named = f"UR8:{rank}" if rank > 1 else "UR8"
        for line, uses in (
            (f"UTMALDG.{rank}D [UR8], [UR18]", f"{loaded} {map_}"),
            (
                f"UTMALDG.{rank}D.IM2COL.MULTICAST [UR8], [UR18], UR7, desc[UR4]",
                f"{loaded} {map_} UR7 UR4:2",
            ),
            (f"UTMASTG.{rank}D [UR8], [UR18], desc[UR4]", f"{stored} {map_} UR4:2"),
            (f"UTMAREDG.{rank}D.ADD [UR8], [UR18]", f"{stored} {map_}"),
            (f"UTMAPF.L2.{rank}D [UR8], [UR18]", f"{named} {map_}"),
            (f"UTMAPF.L2.{rank}D.IM2COL [UR8], [UR18], UR5", f"{named} {map_} UR5"),
        ):
            yield line, "", uses


@pytest.mark.parametrize(
    ("line", "definitions", "uses"),
    [
        *_tensor_samples(),
        ("HGMMA.64x64x16.F32 R24, R64, gdesc[UR4].tnspB, RZ, !UPT", "R24:32", "R64:4 UR4:4"),
        ("HGMMA.64x64x16.F32 R24, gdesc[UR4].negB, R24, UP0", "R24:32", "UR4:4 R24:32 UP0"),
        *_warp_group_samples(),
    ],
)
def test_products_of_a_warp_group_and_copies_of_tensors(
    line: str, definitions: str, uses: str
) -> None:
    test_definitions_and_uses(line, definitions, uses)


@pytest.mark.parametrize(
    ("opcode", "at"),
    [
        ("HGMMA.64x64x16.F32", "R30"),
        ("HGMMA.64x64x8.F32.TF32", "R28"),
        ("IGMMA.64x16x32.S8.S8", "R28"),
    ],
)
def test_an_accumulator_elsewhere_is_rejected(opcode: str, at: str) -> None:
    with pytest.raises(RejectedKernel, match="GMMA"):
        effects_of(opcode, (at, "gdesc[UR4]", at))


def test_every_row_has_a_sample_and_no_opcode_two_rows() -> None:
    covered = set()
    for line, _, _ in (*SAMPLES, *_warp_group_samples(), *_tensor_samples()):
        forms = list(matching_forms(line.split(" ")[0]))
        assert len(forms) == 1, line
        covered.update(forms)
    assert set(OPERATION_FORMS) == covered


def test_a_hidden_pair_stands_in_the_encoding() -> None:
    assert hidden_pair(0x0000000406107981, 32) == RegisterReference("UR", 4, 2, -1)
    assert hidden_pair(0x000C101D08 << 64 | 0x6802007986, 64) == RegisterReference("UR", 8, 2, -1)
    assert hidden_pair(0x0000003F06107981, 32) is None
    assert hidden_pair(0x0000000406107381, 32) is None


@pytest.mark.parametrize(
    ("opcode", "operands", "bit"),
    [
        ("LDG.E", ("R16", "[R6.64]"), 32),
        ("STG.E", ("[R2.64]", "R104"), 64),
        ("LDGSTS.E.BYPASS.128", ("[RZ]", "[R6.64]"), 64),
        ("LDG.E", ("R16", "desc[UR6][R6.64]"), None),
        ("LD.E", ("R42", "[R38]"), None),
        ("LDS", ("R42", "[R38]"), None),
    ],
)
def test_only_an_address_of_64_bits_has_a_hidden_pair(
    opcode: str, operands: tuple[str, ...], bit: int | None
) -> None:
    assert effects_of(opcode, operands).hidden_bit == bit


@pytest.mark.parametrize(
    "opcode",
    [
        "FROB", "HMMA.16832.F32", "HMMA.16816.F32.TF32", "IMMA.16816.S4.S4", "LDG.E.256", "LDG",
        "LDS.96", "IMAD.WIDE.FOO", "MUFU", "MUFU.ACOS", "LDSM.16.M88.8", "LDG.E.64.U8", "BRA.FOO",
        "ATOMS.FOO", "DADD.FTZ", "I2F.F128", "SHFL", "CS2R.16", "IMAD.WIDES", "TEX",
    ],
)  # fmt: skip
def test_an_unknown_opcode_is_rejected_by_name(opcode: str) -> None:
    with pytest.raises(
        RejectedKernel, match=f"unknown-opcode.*{opcode} is not in the table"
    ) as caught:
        effects_of(opcode, ("R0", "R1"))
    assert caught.value.kind == "unknown-opcode"


@pytest.mark.parametrize(
    ("opcode", "operands"),
    [
        ("FADD", ("R0", "R1")),
        ("FADD", ("-R0", "R1", "R2")),
        ("FADD", ("UR4", "R1", "R2")),
        ("FADD", ("R0", "P1", "R2")),
        ("IADD3", ("R0", "!P1", "R2", "R3", "R4")),
        ("LDG.E.64", ("R3", "[R4.64]")),  # misaligned
        ("LDG.E", ("R3", "[R5.64]")),
        ("HMMA.16816.F32", ("R0", "R2", "R4", "R8")),
        ("LDG.E", ("R3", "[R4.64+UR4]")),
        ("LDG.E", ("R3", "[R4.U32+UR4]")),
        ("EXIT", ("P0",)),
        ("STS", ("R0", "[R4]")),
        ("UTMALDG.2D", ("[UR6]", "[UR18]")),  # four registers, misaligned
        ("UTMALDG.2D", ("[R8]", "[UR18]")),
        ("UTMALDG.2D", ("[R8+UR8]", "[UR18]")),
    ],
)
def test_unknown_operands_are_rejected(opcode: str, operands: tuple[str, ...]) -> None:
    with pytest.raises(RejectedKernel, match=opcode) as caught:
        effects_of(opcode, operands)
    assert caught.value.kind == "unknown-operands"


@pytest.mark.parametrize(
    "operand",
    [
        "", "R", "R255", "R256", "UR63", "P7", "UP9", "R4.FOO", "|R4", "R4|", "R4.H0_H0.H1_H1",
        "[R4", "[R4+R5]", "[UR4+R5]", "[R4.65]", "[UR4.64]", "[]", "c[0x0]", "|c[0x0][0x10]",
        "c[0x0][R4", "SB9", "{}", "{9}", "`(.L", "0xg", "1..2", "INFINITY", "!R4", "-P0", "foo",
    ],
)  # fmt: skip
def test_an_unknown_operand_is_bad_input(operand: str) -> None:
    with pytest.raises(InputError, match="expected"):
        effects_of("MOV", ("R0", operand))
