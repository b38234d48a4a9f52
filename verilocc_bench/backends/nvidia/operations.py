"""The operations of sm_80 and sm_90 and their effects on operands, with one row for each form.

Sources: CUDA Binary Utilities, "Instruction Set Reference", Ampere and Hopper; PTX ISA,
the shapes of `mma` and `ldmatrix` fragments; the widths were checked against
the life ranges that nvdisasm prints.

A row's `operands` is a list of slots; `|` separates alternatives, `?` marks a
slot that may be absent:

    D1 D2 D4     defines that many general registers      UD1 UD2   uniform ones
    PD           defines a predicate                      UPD       a uniform one
    S1 S2 S4     uses general or uniform registers, or an immediate or a constant
    R1 R2 R4     uses general registers                   US1 US2   as S, never general
    P            uses a predicate of either file          UP        a uniform one
    A1 A2        an address of that many registers, unless it says `.64`
    MD MU        PR, defined or used: the predicates in the mask that ends the operands
    J UJ         a pair, or a uniform pair, to jump to, with a label or an offset
    D8@8         as D8, with a first register that is a multiple of 8; so R8@8
    UA1 to UA7   an address in that many uniform registers from a multiple of the next power of two
    G            a matrix in shared memory, described by four uniform registers
    I C SR B SB L   immediate, constant, special register, B register, scoreboard(s), label
    H32 H64      (last) the uniform pair in the bits of the encoding from there on,
                 not printed, of an address `[Rn.64]`, where the opcode has bit 0x800

A jump that depends on an operand (BRX, BRXU, `BRA P0, …`) has uses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OperationForm:
    """One row.

    The opcode must start with `opcode`. Among its further modifiers there must be one
    of each group of `requires` (`S64|U64 F64` are two groups), and the others must be
    in `allows`.
    """

    opcode: str
    operands: str
    requires: str = ""
    allows: str = ""


_ROUNDING = "RM RP RZ "
_INTEGER_ROUNDING = "CEIL FLOOR TRUNC NTZ "
_FLOAT = _ROUNDING + "FTZ SAT "
_COMPARISON = "LT EQ LE GT NE GE AND OR XOR "
_PACKED = "U32 RELU S16x2 U16x2"
_FLOAT_COMPARISON = _COMPARISON + "LTU EQU LEU GTU NEU GEU NUM NAN F T MIN MAX FTZ "
_HALF = "FTZ SAT RELU BF16_V2 MMA "
_MEMORY = (
    "E STRONG WEAK CONSTANT CTA SM GPU SYS LU EF EL LTC64B LTC128B LTC256B NA BYPASS ZFILL PRIVATE "
)
_SMALL = "U8 S8 U16 S16 "
_ATOMIC = _MEMORY + "ADD MIN MAX INC DEC AND OR XOR EXCH S32 F32 F16x2 BF16x2 FTZ RN CAS "
_ATOMIC_64 = _MEMORY + "ADD MIN MAX AND OR XOR EXCH RN CAS "
_MMA_S8 = "S8 U8 SAT "
_MMA_S4 = "S4 U4 SAT "


def _memory() -> Iterator[OperationForm]:
    """Loads, stores and atomics; a modifier gives the width."""
    for count, width in ((1, ""), (2, "64"), (4, "128")):
        small = _SMALL if count == 1 else ""
        allows = _MEMORY + small
        yield OperationForm("LDG.E", f"D{count} A2 H32", width, allows)
        yield OperationForm("LD.E", f"D{count} A2 H32", width, allows)
        yield OperationForm("STG.E", f"A2 R{count} H64", width, allows)
        yield OperationForm("ST.E", f"A2 R{count} H64", width, allows)
        yield OperationForm("LDS", f"D{count} A1", width, small)
        yield OperationForm("LDL", f"D{count} A1", width, small + "LU ")
        yield OperationForm("STS", f"A1 R{count}", width, small)
        yield OperationForm("STL", f"A1 R{count}", width, small)
    for count, shape in ((1, ""), (2, "2"), (4, "4")):
        yield OperationForm("LDSM.16.M88", f"D{count} A1", shape)
        yield OperationForm("LDSM.16.MT88", f"D{count} A1", shape)
        yield OperationForm("STSM.16.M88", f"A1 R{count}", shape)
        yield OperationForm("STSM.16.MT88", f"A1 R{count}", shape)
    for count, requires, allows in (
        (1, "", _ATOMIC),
        (2, "64|S64|F64", _ATOMIC_64),
    ):
        for opcode in ("ATOMG.E", "ATOM.E"):
            yield OperationForm(opcode, f"PD D{count} A2 R{count} R{count}? H64", requires, allows)
        for opcode in ("RED.E", "REDG.E"):
            yield OperationForm(opcode, f"A2 R{count} H64", requires, allows)
    yield from (
        OperationForm("REDG.E", "A2 R4 H64", "F32x4|F16x8|BF16x8", _ATOMIC),
        OperationForm("REDG.E", "A2 R2 H64", "F32x2|F16x4|BF16x4", _ATOMIC),
        OperationForm("LDGSTS.E", "A1 A2 P? H64", "", _MEMORY + "64 128"),
        OperationForm("ATOMS", "D1 A1 R1", "ADD|MIN|MAX|INC|DEC|AND|OR|XOR|EXCH", "S32"),
        OperationForm("ATOMS", "D2 A1 R2", "EXCH 64"),
        OperationForm("ATOMS.CAS", "D1 A1 R1 R1"),
        OperationForm("ATOMS.CAS", "D2 A1 R2 R2", "64"),
        OperationForm("ATOM.E.CAST.SPIN", "PD D1 A2 R1 R1 H64", "", _MEMORY),
        OperationForm("ATOMS.CAST.SPIN", "D1 A1 R1 R1"),
        OperationForm("ATOMS.CAST.SPIN", "D2 A1 R2 R2", "64"),
        OperationForm("ATOMS.ARRIVE", "D2 A1", "64"),
        OperationForm("ATOMS.POPC.INC.32", "D1 A1"),
        OperationForm("ARRIVES.LDGSTSBAR.64", "A1", "", "ARVCNT TRANSCNT"),
        OperationForm("LDC", "D1 C", "", _SMALL),
        OperationForm("LDC", "D2 C", "64"),
        OperationForm("ULDC", "UD1 C", "", _SMALL),
        OperationForm("ULDC", "UD2 C", "64"),
        OperationForm("CCTL.E", "A2", "PF1|PF2|DML2|RML2"),
        OperationForm("CCTL.IVALL", ""),
        OperationForm("QSPC.E", "PD D1 A2", "D|G|L|S"),
    )


_MATRIX = (
    OperationForm("HMMA.16816.F32", "D4 R4 R2 R4", "", "BF16"),
    OperationForm("HMMA.16816.F16", "D2 R4 R2 R2"),
    OperationForm("HMMA.1688.F32", "D4 R2 R1 R4", "", "BF16"),
    OperationForm("HMMA.1688.F16", "D2 R2 R1 R2"),
    OperationForm("HMMA.1688.F32.TF32", "D4 R4 R2 R4"),
    OperationForm("HMMA.1684.F32.TF32", "D4 R2 R1 R4"),
    OperationForm("HMMA.SP.16816.F32", "D4 R2 R2 R4 R1 I", "", "BF16"),
    OperationForm("HMMA.SP.16832.F32", "D4 R4 R4 R4 R1 I", "", "BF16"),
    OperationForm("HMMA.SP.16816.F16", "D2 R2 R2 R2 R1 I"),
    OperationForm("HMMA.SP.16832.F16", "D2 R4 R4 R2 R1 I"),
    OperationForm("HMMA.SP.1688.F32.TF32", "D4 R2 R2 R4 R1 I"),
    OperationForm("HMMA.SP.16816.F32.TF32", "D4 R4 R4 R4 R1 I"),
    OperationForm("IMMA.8816", "D2 R1 R1 R2", "S8|U8", _MMA_S8),
    OperationForm("IMMA.16816", "D4 R2 R1 R4", "S8|U8", _MMA_S8),
    OperationForm("IMMA.16832", "D4 R4 R2 R4", "S8|U8", _MMA_S8),
    OperationForm("IMMA.8832", "D2 R1 R1 R2", "S4|U4", _MMA_S4),
    OperationForm("IMMA.16832", "D4 R2 R1 R4", "S4|U4", _MMA_S4),
    OperationForm("IMMA.16864", "D4 R4 R2 R4", "S4|U4", _MMA_S4),
    OperationForm("IMMA.SP.16832", "D4 R2 R2 R4 R1 I", "S8|U8", _MMA_S8),
    OperationForm("IMMA.SP.16864", "D4 R4 R4 R4 R1 I", "S8|U8", _MMA_S8),
    OperationForm("IMMA.SP.16864", "D4 R2 R2 R4 R1 I", "S4|U4", _MMA_S4),
    OperationForm("IMMA.SP.168128", "D4 R4 R4 R4 R1 I", "S4|U4", _MMA_S4),
    OperationForm("BMMA.88128", "D2 R1 R1 R2", "AND|XOR POPC"),
    OperationForm("BMMA.168128", "D4 R2 R1 R4", "AND|XOR POPC"),
    OperationForm("BMMA.168256", "D4 R4 R2 R4", "AND|XOR POPC"),
    OperationForm("DMMA.(884|8x8x4)", "D4 R2 R2 R4"),
    OperationForm("DMMA.16x8x8", "D8@8 R8@8 R4 R8@8"),
    OperationForm("DMMA.16x8x16", "D8@8 R16@16 R8@8 R8@8"),
)


def _warp_group_matrix() -> Iterator[OperationForm]:
    """Products of a warp group, 64 rows by 8 to 256 columns (wgmma of PTX).

    The first factor stands in registers or in shared memory. Of an accumulator each of
    128 threads has half a column's 64 elements of 32 bits, or a quarter of 16 bits.
    ptxas places accumulators at multiples of 8; at multiples of 4, too, those of the
    first kind, in 4 of 103 kernels.
    """
    for columns in range(8, 257, 8):
        for opcode, kind, allows, count, step in (
            ("HGMMA", f"64x{columns}x16.F32", "BF16", columns // 2, 4),
            ("HGMMA", f"64x{columns}x16.F16", "", columns // 4, 8),
            ("HGMMA", f"64x{columns}x8.F32.TF32", "", columns // 2, 8),
            ("IGMMA", f"64x{columns}x32.(S8|U8).(S8|U8)", "SAT", columns // 2, 8),
            ("QGMMA", f"64x{columns}x32.F32.(E4M3|E5M2).(E4M3|E5M2)", "", columns // 2, 8),
            ("QGMMA", f"64x{columns}x32.F16.(E4M3|E5M2).(E4M3|E5M2)", "", columns // 4, 8),
        ):
            d, c = f"D{count}@{step}", f"R{count}@{step}"
            operands = f"{d} G {c} UP? SB? | {d} G G {c} UP? SB? | {d} R4 G {c} UP? SB?"
            yield OperationForm(f"{opcode}.{kind}", operands, "", allows)
    yield OperationForm("WARPGROUP.ARRIVE", "")
    yield OperationForm("WARPGROUP.DEPBAR.LE", "SB I")
    yield OperationForm("FENCE.VIEW.ASYNC", "", "", "S G T")


def _asynchronous() -> Iterator[OperationForm]:
    """Barriers in shared memory (mbarrier of PTX), bulk copies and those of tensors (TMA).

    Uniform registers name a copy's two addresses, its barrier behind that in shared memory,
    and a tensor's coordinates behind both.
    """
    yield from (
        OperationForm("SYNCS.EXCH.64", "UD2 A1 US2"),
        OperationForm(
            "SYNCS.ARRIVE.TRANS64", "D2 A1 R1", "", "A1T0 ART0 A0T1 A0TR A0TX RED OPTOUT TMASK"
        ),
        OperationForm("SYNCS.PHASECHK.TRANS64", "PD A1 R1", "", "TRYWAIT"),
        OperationForm("SYNCS.CCTL.IV", "A1"),
        OperationForm("UBLKCP.S.G", "UA2 UA2 US1 UA2?"),
        OperationForm("UBLKCP.S.G.MULTICAST", "UA2 UA2 US1 UA2?"),
        OperationForm("UBLKCP.G.S", "UA2 UA1 US1 UA2?"),
        OperationForm("UBLKCP.S.S", "UA2 UA1 US1"),
        OperationForm("UBLKPF.L2", "UA2 US1"),
        OperationForm("UBLKRED.(G|S).S", "UA2 UA1 US1", "", _ATOMIC + "F16"),
        OperationForm("UTMACCTL", "UA2", "PF|IV"),
        OperationForm("UTMACMDFLUSH", ""),
        OperationForm("STAS", "A2 R1"),
        OperationForm("STAS", "A2 R2", "64"),
        OperationForm("STAS", "A2 R4", "128"),
        OperationForm("REDAS", "A2 R1", "ADD|MIN|MAX|INC|DEC|AND|OR|XOR", "S32"),
        OperationForm("REDAS.ADD", "A2 R2", "64"),
    )
    for rank in range(1, 6):
        loaded, stored = f"UA{rank + 2} UA2", f"UA{rank + 1} UA2"
        offsets = "IM2COL MULTICAST"
        yield from (
            OperationForm(f"UTMALDG.{rank}D", f"{loaded} UA2?"),
            OperationForm(
                f"UTMALDG.{rank}D", f"{loaded} US1 UA2?", offsets.replace(" ", "|"), offsets
            ),
            OperationForm(f"UTMASTG.{rank}D", f"{stored} UA2?", "", "IM2COL"),
            OperationForm(f"UTMAREDG.{rank}D", stored, "ADD|MIN|MAX|INC|DEC|AND|OR|XOR"),
            OperationForm(f"UTMAPF.L2.{rank}D", f"UA{rank} UA2"),
            OperationForm(f"UTMAPF.L2.{rank}D.IM2COL", f"UA{rank} UA2 US1"),
        )


_FLOATING_POINT = (
    OperationForm("FADD", "D1 S1 S1", "", _FLOAT),
    OperationForm("FMUL", "D1 S1 S1", "", _FLOAT),
    OperationForm("FFMA", "D1 S1 S1 S1", "", _FLOAT),
    OperationForm("FMNMX", "D1 S1 S1 P", "", "FTZ NAN"),
    OperationForm("FSEL", "D1 S1 S1 P", "", "FTZ"),
    OperationForm("FSET.BF", "D1 S1 S1 P", "", _FLOAT_COMPARISON),
    OperationForm("FSETP", "PD PD S1 S1 P", "", _FLOAT_COMPARISON),
    OperationForm("FCHK", "PD S1 S1"),
    OperationForm("MUFU", "D1 S1", "COS|EX2|LG2|RCP|RSQ|SIN|SQRT|TANH", "F16"),
    # The high word of a double: one register in, one out.
    OperationForm("MUFU", "D1 S1", "RCP64H|RSQ64H"),
    OperationForm("HADD2", "D1 S1 S1 | D1 S1 I I", "", _HALF + "F32"),
    OperationForm("HMUL2", "D1 S1 S1 | D1 S1 I I", "", _HALF),
    OperationForm("HFMA2", "D1 S1 S1 S1 | D1 S1 I I S1 | D1 S1 S1 I I", "", _HALF),
    OperationForm("HMNMX2", "D1 S1 S1 P | D1 S1 I I P", "", "FTZ NAN BF16_V2"),
    OperationForm("HSET2", "D1 S1 S1 P | D1 S1 I I P", "", _FLOAT_COMPARISON + "BF "),
    OperationForm("HSETP2", "PD PD S1 S1 P | PD PD S1 I I P", "", _FLOAT_COMPARISON),
    OperationForm("DADD", "D2 S2 S2", "", _ROUNDING),
    OperationForm("DMUL", "D2 S2 S2", "", _ROUNDING),
    OperationForm("DFMA", "D2 S2 S2 S2", "", _ROUNDING),
    OperationForm("DSETP", "PD PD S2 S2 P", "", _FLOAT_COMPARISON),
)

_CONVERSION = (
    OperationForm("F2F.F64", "D2 S1", "F32|F16", "FTZ"),
    OperationForm("F2F.(F32|F16)", "D1 S2", "F64", _FLOAT),
    OperationForm("F2F.(F16|BF16)", "D1 S1", "F32", _FLOAT),
    OperationForm("F2FP", "D1 S1 S1", "", "BF16 F16 F32 RELU PACK_AB MERGE_C RZ"),
    OperationForm("F2FP", "D1 S1 S1 S1", "E4M3|E5M2 PACK_AB_MERGE_C", "SATFINITE RELU F32"),
    OperationForm("F2FP", "D1 S1 S1", "E4M3|E5M2 UNPACK_B_MERGE_C", "SATFINITE RELU F16"),
    OperationForm("F2FP", "D1 S1", "E4M3|E5M2 UNPACK_B", "RELU F16"),
    OperationForm("I2FP.F32", "D1 S1", "S32|U32", _ROUNDING),
    OperationForm("F2I", "D2 S2", "S64|U64 F64", _INTEGER_ROUNDING),
    OperationForm("F2I", "D2 S1", "S64|U64", _INTEGER_ROUNDING + "FTZ F16"),
    OperationForm("F2I", "D1 S2", "F64", _INTEGER_ROUNDING + _SMALL + "U32"),
    OperationForm("F2I", "D1 S1", "", _INTEGER_ROUNDING + _SMALL + "U32 FTZ F16"),
    OperationForm("I2F", "D2 S2", "F64 S64|U64", _ROUNDING),
    OperationForm("I2F", "D2 S1", "F64", _ROUNDING + _SMALL + "U32"),
    OperationForm("I2F", "D1 S2", "S64|U64", _ROUNDING + "F16"),
    OperationForm("I2F", "D1 S1", "", _ROUNDING + _SMALL + "U32 F16"),
    OperationForm("FRND", "D2 S2", "F64", _INTEGER_ROUNDING),
    OperationForm("FRND", "D1 S1", "", _INTEGER_ROUNDING + "FTZ F16"),
    OperationForm("I2I", "D1 S1", "", _SMALL + "S32 SAT"),
    OperationForm("I2IP", "D1 S1 S1 S1", "", _SMALL + "U4 S4 S32 SAT"),
)

_INTEGER = (
    OperationForm("IADD3", "D1 PD? PD? S1 S1 S1", "", ""),
    OperationForm("IADD3", "D1 PD? PD? S1 S1 S1 P P?", "X"),
    OperationForm("IMAD", "D1 S1 S1 S1", "", "MOV IADD SHL U32"),
    OperationForm("IMAD", "D1 PD? S1 S1 S1 P", "X", "U32"),
    OperationForm("IMAD.WIDE", "D2 PD? S1 S1 S2", "", "U32"),
    OperationForm("IMAD.WIDE", "D2 PD? S1 S1 S2 P", "X", "U32"),
    OperationForm("IMAD.HI", "D1 PD? S1 S1 S2", "", "U32"),
    OperationForm("LEA", "D1 PD? S1 S1 S1"),
    OperationForm("LEA.HI", "D1 PD? S1 S1 S1 S1"),
    OperationForm("LEA.HI.X", "D1 PD? S1 S1 S1 S1 P"),
    OperationForm("LEA.HI.SX32", "D1 PD? S1 S1 S1"),
    OperationForm("LEA.HI.X.SX32", "D1 PD? S1 S1 S1 P"),
    OperationForm("LOP3.LUT", "PD? D1 S1 S1 S1 I P"),
    OperationForm("SHF", "D1 S1 S1 S1", "L|R", "W S32 U32 S64 U64 HI"),
    OperationForm("ISETP", "PD PD S1 S1 P", "", _COMPARISON + "U32"),
    OperationForm("ISETP", "PD PD S1 S1 P P", "EX", _COMPARISON + "U32"),
    OperationForm("IMNMX", "D1 S1 S1 P", "", "U32"),
    OperationForm("VIADD", "D1 S1 S1", "", "16x2"),
    OperationForm("VIADDMNMX", "D1 S1 S1 S1 P", "", _PACKED),
    OperationForm("VIMNMX", "D1 PD? PD? S1 S1 P", "", _PACKED),
    OperationForm("VIMNMX3", "D1 S1 S1 S1 P", "", _PACKED),
    OperationForm("SEL", "D1 S1 S1 P"),
    OperationForm("IABS", "D1 S1"),
    OperationForm("IDP", "D1 S1 S1 S1", "2A|4A", _SMALL + "HI LO"),
    OperationForm("VABSDIFF", "D1 S1 S1 S1", "", "U32"),
    OperationForm("VABSDIFF4", "D1 S1 S1 S1", "U8", "ACC"),
    OperationForm("PRMT", "D1 S1 S1 S1", "", "F4E B4E RC8 RC16 ECL ECR"),
    OperationForm("BMSK", "D1 S1 S1", "", "W"),
    OperationForm("SGXT", "D1 S1 S1", "", "U32 W"),
    OperationForm("BREV", "D1 S1"),
    OperationForm("FLO", "D1 S1", "", "U32 SH"),
    OperationForm("POPC", "D1 S1"),
    OperationForm("MOV", "D1 S1"),
    OperationForm("MOVM.16.MT88", "D1 R1"),
)

_UNIFORM = (
    OperationForm("UIADD3", "UD1 UPD? UPD? US1 US1 US1"),
    OperationForm("UIADD3", "UD1 UPD? UPD? US1 US1 US1 UP UP?", "X"),
    OperationForm("UIADD3.64", "UD2 US2 US2 US2"),
    OperationForm("UIMAD", "UD1 US1 US1 US1", "", "U32"),
    OperationForm("UIMAD.WIDE", "UD2 UPD? US1 US1 US2", "", "U32"),
    OperationForm("UIMAD.WIDE", "UD2 UPD? US1 US1 US2 UP", "X", "U32"),
    OperationForm("ULEA", "UD1 UPD? US1 US1 US1"),
    OperationForm("ULEA.HI", "UD1 UPD? US1 US1 US1 US1"),
    OperationForm("ULEA.HI.X", "UD1 UPD? US1 US1 US1 US1 UP"),
    OperationForm("ULEA.HI.SX32", "UD1 UPD? US1 US1 US1"),
    OperationForm("ULEA.HI.X.SX32", "UD1 UPD? US1 US1 US1 UP"),
    OperationForm("ULOP3.LUT", "UPD? UD1 US1 US1 US1 I UP"),
    OperationForm("USHF", "UD1 US1 US1 US1", "L|R", "W S32 U32 S64 U64 HI"),
    OperationForm("UISETP", "UPD UPD US1 US1 UP", "", _COMPARISON + "U32"),
    OperationForm("UISETP", "UPD UPD US1 US1 UP UP", "EX", _COMPARISON + "U32"),
    OperationForm("USEL", "UD1 US1 US1 UP"),
    OperationForm("UPLOP3.LUT", "UPD UPD UP UP UP I I"),
    OperationForm("UPRMT", "UD1 US1 US1 US1"),
    OperationForm("UBMSK", "UD1 US1 US1", "", "W"),
    OperationForm("USGXT", "UD1 US1 US1", "", "U32 W"),
    OperationForm("UBREV", "UD1 US1"),
    OperationForm("UFLO", "UD1 US1", "", "U32 SH"),
    OperationForm("UPOPC", "UD1 US1"),
    OperationForm("UMOV", "UD1 US1"),
    OperationForm("R2UR", "PD? UD1 R1", "", "OR"),
    OperationForm("S2UR", "UD1 SR"),
    OperationForm("REDUX", "UD1 R1", "", "SUM MIN MAX OR XOR S32"),
    OperationForm("VOTEU", "UPD P | UD1 UPD P", "ALL|ANY|EQ"),
)

_PREDICATE_AND_SYSTEM = (
    OperationForm("PLOP3.LUT", "PD PD P P P I I"),
    OperationForm("R2P", "MD R1 I?"),
    OperationForm("P2R", "D1 MU S1 I?"),
    OperationForm("VOTE", "PD P | D1 PD P", "ALL|ANY|EQ"),
    OperationForm("MATCH.ALL", "PD D1 S1"),
    OperationForm("MATCH.ALL", "PD D1 S2", "U64"),
    OperationForm("MATCH.ANY", "D1 S1"),
    OperationForm("MATCH.ANY", "D1 S2", "U64"),
    OperationForm("SHFL", "PD D1 S1 S1 S1", "BFLY|DOWN|IDX|UP"),
    OperationForm("S2R", "D1 SR"),
    OperationForm("CS2R", "D2 SR"),
    OperationForm("CS2R.32", "D1 SR"),
    OperationForm("LEPC", "D2 L?"),
    OperationForm("B2R.RESULT", "D1 PD?"),
    OperationForm("BMOV.32", "D1 B | B S1", "", "CLEAR"),
    OperationForm("BSSY", "B L"),
    OperationForm("BSYNC", "B"),
    OperationForm("BREAK", "B"),
    OperationForm("BRA", "P? L"),
    OperationForm("BRA", "US1 L", "CONV|DIV"),
    OperationForm("BRA.U", "UP? L", "", "ANY"),
    OperationForm("ELECT", "PD UD1 P"),
    OperationForm("UCGABAR_ARV", ""),
    OperationForm("UCGABAR_WAIT", ""),
    OperationForm("ACQBULK", ""),
    OperationForm("PREEXIT", ""),
    OperationForm("BRX", "J"),
    OperationForm("BRXU", "UJ"),
    OperationForm("CALL", "L | J | R2", "REL|ABS", "NOINC"),
    OperationForm("RET", "J", "REL", "NODEC"),
    OperationForm("EXIT", ""),
    OperationForm("NOP", ""),
    OperationForm("KILL", ""),
    OperationForm("YIELD", ""),
    OperationForm("WARPSYNC", "S1", "", "EXCLUSIVE"),
    OperationForm("WARPSYNC.COLLECTIVE", "S1 L"),
    OperationForm("ENDCOLLECTIVE", ""),
    OperationForm("WARPSYNC.ALL", ""),
    OperationForm("NANOSLEEP", "S1", "", "SYNCS"),
    OperationForm("BAR.SYNC", "S1 S1?", "", "DEFER_BLOCKING"),
    OperationForm("BAR.ARV", "S1 S1"),
    OperationForm("BAR.RED", "S1 S1? P", "AND|OR|POPC", "DEFER_BLOCKING"),
    OperationForm("MEMBAR", "", "ALL|SC", "CTA GPU SYS VC"),
    OperationForm("ERRBAR", ""),
    OperationForm("CGAERRBAR", ""),
    OperationForm("LDGDEPBAR", ""),
    OperationForm("DEPBAR.LE", "SB I SB?"),
    OperationForm("DEPBAR", "SB"),
    OperationForm("BPT.TRAP", "I"),
    OperationForm("PMTRIG", "I"),
)

REFUSED = {
    "USETMAXREG": "gives warps that reach it other limits of registers than the kernel has: one "
    "budget for all of its code would be too small for some and too large for others",
}
"""Operations that are known, and why no row has them."""

OPERATION_FORMS: tuple[OperationForm, ...] = (
    *_memory(),
    *_MATRIX,
    *_warp_group_matrix(),
    *_asynchronous(),
    *_FLOATING_POINT,
    *_CONVERSION,
    *_INTEGER,
    *_UNIFORM,
    *_PREDICATE_AND_SYSTEM,
)
