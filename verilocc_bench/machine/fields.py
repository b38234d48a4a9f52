"""A decoded instruction as a row of numbers, for compiled code.

A source or destination is a number: below VECTOR it is a place in the scalar
registers, from VECTOR on a vector register. Both files are laid out here.
"""

from __future__ import annotations

LANES = 64
VECTORS = 512
ACCUMULATORS = 256
"""Vector registers: v0 to v255, then a0 to a255."""

FLAT_SCRATCH, VCC, M0, EXEC, SCC, MODE = 102, 106, 124, 126, 128, 129
FIRST_CONSTANT = 136
SCALARS = FIRST_CONSTANT + 1024
"""Scalar places: s0 to s101 and the others by their encodings, SCC, MODE, the constants of the
program. A pair is the place and the one after it."""

NONE = -1
VECTOR = 4096

# What kind of instruction it is, and which one of its kind.
(
    GROUP, OPERATION,
    # Operands and their widths in registers: two destinations, four sources.
    RESULT, RESULT_WIDTH, SECOND, SECOND_WIDTH,
    A, A_WIDTH, B, B_WIDTH, C, C_WIDTH, D, D_WIDTH,
    # How a source is read (see modifiers below) and the result is written.
    A_MODIFIERS, B_MODIFIERS, C_MODIFIERS, RESULT_MODIFIERS,
    # Data-parallel primitives: which lane src0 is read from, and which lanes are written.
    LANE_PATTERN, LANE_VALUE, LANE_MASKS,
    # Numbers of the instruction.
    OFFSET, OFFSET_1, SIZE, TARGET, FLAGS,
    # What the hazard rules ask of it.
    TRAITS, PASSES, BYTES,
) = range(29)  # fmt: skip
FIELDS = 29

# Groups.
(
    SPECIAL, BRANCH, SCALAR_32, SCALAR_64, INTEGER, FLOAT_32, FLOAT_64, FLOAT_16, COMPARE, CARRY,
    SELECT, ACROSS_LANES, MATRIX, SCALAR_LOAD, VECTOR_MEMORY, LDS, LDS_LANES,
) = range(17)  # fmt: skip

# Bits of *_MODIFIERS of sources.
ABSOLUTE, NEGATE, SIGN_EXTEND, HIGH_HALF, HALF_AS_FLOAT, NEGATE_HIGH, HIGH_FROM_HIGH = (
    1, 2, 4, 8, 16, 32, 64,
)  # fmt: skip
SELECT_SHIFT = 8
"""From this bit on, three bits of SDWA's selection: 0 the register, 1 to 4 its bytes, 5 and 6 its
halves."""
NUMBER_SHIFT = 12
"""From this bit on, two bits: where the sign is (0 bit 31, 1 bit 15, 2 bit 63)."""

# Bits of RESULT_MODIFIERS.
CLAMP = 1
OUTPUT_SHIFT = 1
"""Two bits of output modifier: 1 times two, 2 times four, 3 by two."""
DESTINATION_SHIFT = 8
"""Three bits of SDWA's dst_sel, as in SELECT_SHIFT; two bits above it of dst_unused."""
UNUSED_SHIFT = 11
FORMAT_SHIFT = 13
"""Two bits: which numbers clamp and output modifier change."""
AS_FLOAT_32, AS_FLOAT_16, AS_FLOAT_64, AS_HALVES = range(4)
PAD, EXTEND, PRESERVE = 0, 1, 2

# Lane patterns (DPP).
(NO_PATTERN, QUAD, ROW_SHIFT_LEFT, ROW_SHIFT_RIGHT, ROW_ROTATE, WAVE_SHIFT_LEFT, WAVE_ROTATE_LEFT,
 WAVE_SHIFT_RIGHT, WAVE_ROTATE_RIGHT, ROW_MIRROR, ROW_HALF_MIRROR, ROW_BROADCAST_15,
 ROW_BROADCAST_31, ROW_NEW_BROADCAST) = range(14)  # fmt: skip
BOUND_CONTROL = 256

# FLAGS of vector instructions.
PACKED_32, PACKED_16, WRITES_EXEC, TO_HIGH_HALF, KEEP_HIGH_HALF = 1, 2, 4, 8, 16
FLUSHES_SOURCE, FLUSHES_RESULT = 32, 256
"""Denormal float32 numbers become zero: FLUSHES_SOURCE times 1, 2 and 4 for the three sources."""
QUIETS_SOURCES = 512
"""Minima outside of IEEE mode: a NaN that signals loses to a number, as a quiet one does."""
# FLAGS of memory instructions.
STORES, ATOMIC, RETURNS, TO_LDS, SIGNED, DATA_HIGH = 1, 2, 4, 8, 16, 128
ADDRESS_OFFEN, ADDRESS_IDXEN, ADDRESS_GLOBAL, ADDRESS_SCRATCH, ADDRESS_BUFFER = (
    256, 512, 1024, 2048, 4096,
)  # fmt: skip
TWO_PLACES = 8192

# TRAITS.
(
    IS_VALU, IS_MATRIX, IS_DOUBLE_MATRIX, IS_XDL, IS_MEMORY, IS_DPP, IS_TRANSCENDENTAL,
    WRITES_HALF, IS_DIV_FMAS, IS_LANE_ACCESS, READS_VCC, IS_WIDE_STORE, READS_M0, IS_FMA_64,
    IS_SALU, IS_DOT, IS_READ_LANE, IS_VECTOR_MEMORY,
) = (1 << bit for bit in range(18))  # fmt: skip
