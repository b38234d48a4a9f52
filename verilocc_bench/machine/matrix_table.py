"""The matrix instructions of gfx90a and gfx942, by the assembler's name.

A shape is rows x columns x depth; rows and columns are equal in all of them. An
instruction of several blocks multiplies that many independent pairs of matrices.
Both spellings of a name are known where LLVM 22 prints one for gfx90a
(`v_mfma_f32_32x32x8f16`) and another for gfx942 (`v_mfma_f32_32x32x8_f16`).

Sources: the lists of VOP3P-MAI opcodes in the "AMD Instinct MI200" and "AMD Instinct
MI300" Instruction Set Architecture guides; LLVM 22's assembler agrees on which
target has which (a test asks it). Sparse matrix instructions (`v_smfmac_*`) are not
modelled.
"""

from __future__ import annotations

from dataclasses import dataclass

from verilocc_bench.machine.matrix_formats import Format

_LANES = 64


@dataclass(frozen=True, slots=True)
class MatrixInstruction:
    """D = A B + C for `blocks` independent matrices.

    A is `side` x `depth`, B `depth` x `side`, C and D are `side` x `side`.
    `flushes_denormals` says that denormal inputs and results count as zero.
    """

    mnemonic: str
    side: int
    depth: int
    blocks: int
    left: Format
    right: Format
    result: Format
    flushes_denormals: bool = False

    @property
    def elements_per_lane(self) -> int:
        """How many elements of A (or of B) a lane holds."""
        return self.side * self.depth * self.blocks // _LANES

    @property
    def operand_registers(self) -> int:
        """The registers of A, and as many of B."""
        return self.elements_per_lane * self.left.bits // 32

    @property
    def result_registers(self) -> int:
        """The registers of C, and as many of D."""
        return self.side * self.side * self.blocks * self.result.bits // (32 * _LANES)


# name part: (side, depth, blocks) of each shape, in the guides' order
_F32 = ((32, 1, 2), (16, 1, 4), (4, 1, 16), (32, 2, 1), (16, 4, 1))
_16_BIT = ((32, 4, 2), (16, 4, 4), (4, 4, 16), (32, 8, 1), (16, 16, 1))
_BF16_OLD = ((32, 2, 2), (16, 2, 4), (4, 2, 16), (32, 4, 1), (16, 8, 1))
_I8_BLOCKS = ((32, 4, 2), (16, 4, 4), (4, 4, 16))
_F64 = ((16, 4, 1), (4, 4, 4))
_BYTES = ((16, 32, 1), (32, 16, 1))
_BYTE_FLOATS = (Format.BF8, Format.FP8)


def _gfx90a() -> list[MatrixInstruction]:
    found: list[MatrixInstruction] = []

    def add(
        shapes: tuple[tuple[int, int, int], ...],
        source: Format,
        result: Format,
        suffix: str = "",
        flushes: bool = False,
    ) -> None:
        for side, depth, blocks in shapes:
            name = f"v_mfma_{result.value}_{side}x{side}x{depth}{source.value}{suffix}"
            found.append(
                MatrixInstruction(name, side, depth, blocks, source, source, result, flushes)
            )

    add(_F32, Format.F32, Format.F32)
    add(_16_BIT, Format.F16, Format.F32, flushes=True)
    add(_BF16_OLD, Format.BF16, Format.F32, flushes=True)
    add(_16_BIT, Format.BF16, Format.F32, "_1k", flushes=True)
    add((*_I8_BLOCKS, (32, 8, 1), (16, 16, 1)), Format.I8, Format.I32)
    add(_F64, Format.F64, Format.F64)
    return found


def _gfx942() -> list[MatrixInstruction]:
    found: list[MatrixInstruction] = []

    def add(
        shapes: tuple[tuple[int, int, int], ...],
        source: Format,
        result: Format,
        right: Format | None = None,
    ) -> None:
        types = source.value if right is None else f"{source.value}_{right.value}"
        for side, depth, blocks in shapes:
            in_blocks = f"_{blocks}b" if blocks > 1 else ""
            name = f"v_mfma_{result.value}_{side}x{side}x{depth}{in_blocks}_{types}"
            found.append(
                MatrixInstruction(name, side, depth, blocks, source, right or source, result)
            )

    add(_F32, Format.F32, Format.F32)
    add(_16_BIT, Format.F16, Format.F32)
    add(_16_BIT, Format.BF16, Format.F32)
    add((*_I8_BLOCKS, *_BYTES), Format.I8, Format.I32)
    add(_F64, Format.F64, Format.F64)
    add(((16, 8, 1), (32, 4, 1)), Format.XF32, Format.F32)
    for left in _BYTE_FLOATS:
        for right in _BYTE_FLOATS:
            add(_BYTES, left, Format.F32, right)
    return found


MATRIX_INSTRUCTIONS: dict[str, dict[str, MatrixInstruction]] = {
    "gfx90a": {instruction.mnemonic: instruction for instruction in _gfx90a()},
    "gfx942": {instruction.mnemonic: instruction for instruction in _gfx942()},
}
"""Every matrix instruction of each target, by its name in LLVM's disassembly."""
