"""Each row of the table of operations, on lines that nvdisasm prints."""

from collections.abc import Iterator

import pytest

from tests.backends.nvidia.test_text import disassembly
from verilocc_bench.backends.nvidia.effects import effects_of, hidden_pair, matching_forms
from verilocc_bench.backends.nvidia.operations import OPERATION_FORMS
from verilocc_bench.backends.nvidia.records import RegisterReference
from verilocc_bench.backends.nvidia.text import parse_sass
from verilocc_bench.errors import InputError, RejectedKernel

# An instruction, what it defines and what it uses: FILE INDEX [:COUNT], `!` where fixed.
# fmt: off
SAMPLES = [
    ("REDG.E.ADD.F32.FTZ.RN.STRONG.GPU desc[UR6][R2.64], R12", "", "UR6:2 R2:2 R12"),
    ("REDG.E.ADD.64.STRONG.GPU desc[UR6][R2.64], R12", "", "UR6:2 R2:2 R12:2"),
    ("REDG.E.ADD.F32x2.FTZ.RN.STRONG.GPU desc[UR6][R2.64], R8", "", "UR6:2 R2:2 R8:2"),
    ("REDG.E.ADD.F32x4.FTZ.RN.STRONG.GPU desc[UR6][R2.64], R8", "", "UR6:2 R2:2 R8:4"),
    ("STSM.16.M88 [R6], R28", "", "R6 R28"),
    ("STSM.16.MT88 [R6], R28", "", "R6 R28"),
    ("STSM.16.M88.2 [R6], R28", "", "R6 R28:2"),
    ("STSM.16.MT88.2 [R6], R28", "", "R6 R28:2"),
    ("STSM.16.M88.4 [R6+0x8000], R28", "", "R6 R28:4"),
    ("STSM.16.MT88.4 [R6], R28", "", "R6 R28:4"),
    ("WARPGROUP.ARRIVE", "", ""),
    ("SYNCS.EXCH.64 URZ, [UR12+0x8], UR6", "", "UR12 UR6:2"),
    ("SYNCS.ARRIVE.TRANS64.A1T0 R2, [UR12+0x8], RZ", "R2:2", "UR12"),
    ("SYNCS.ARRIVE.TRANS64.OPTOUT.ART0 R4, [R4+URZ], R5", "R4:2", "R4 R5"),
    ("SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [UR12], R2", "P1", "UR12 R2"),
    ("SYNCS.CCTL.IV [R0+URZ]", "", "R0"),
    ("UBLKCP.S.G [UR8], [UR10], UR7, desc[UR4]", "", "UR8:2 UR10:2 UR7 UR4:2"),
    ("UBLKCP.S.G.MULTICAST [UR4], [UR10], UR6", "", "UR4:2 UR10:2 UR6"),
    ("UBLKCP.G.S [UR6], [UR4], UR5", "", "UR6:2 UR4 UR5"),
    ("UBLKCP.S.S [UR10], [UR4], UR6", "", "UR10:2 UR4 UR6"),
    ("UBLKPF.L2 [UR6], UR4", "", "UR6:2 UR4"),
    ("UBLKRED.G.S.ADD.F32.RN [UR6], [UR4], UR5", "", "UR6:2 UR4 UR5"),
    ("UTMACCTL.PF [UR10]", "", "UR10:2"),
    ("UTMACMDFLUSH", "", ""),
    ("STAS [R4.64], R7", "", "R4:2 R7"),
    ("STAS.64 [R6.64], R4", "", "R6:2 R4:2"),
    ("STAS.128 [R8.64], R4", "", "R8:2 R4:4"),
    ("REDAS.INC [R4.64], R7", "", "R4:2 R7"),
    ("REDAS.ADD.64 [R6.64], R4", "", "R6:2 R4:2"),
    ("ELECT P1, UR6, PT", "P1 UR6", ""),
    ("BRA.U !UP0, `(.L_x_0)", "", "UP0"),
    ("BRA.U.ANY `(.L_x_3)", "", ""),
    ("UCGABAR_ARV", "", ""),
    ("UCGABAR_WAIT", "", ""),
    ("ACQBULK", "", ""),
    ("PREEXIT", "", ""),
    ("DEPBAR {5,4,3,2,1,0}", "", ""),
    ("DMMA.16x8x8 R8, R8, R4, R16", "R8:8", "R8:8 R4:4 R16:8"),
    ("DMMA.16x8x16 R16, R16, R8, R32", "R16:8", "R16:16 R8:8 R32:8"),
    ("WARPGROUP.DEPBAR.LE gsb0, 0x1", "", ""),
    ("FENCE.VIEW.ASYNC.S", "", ""),
    ("I2FP.F32.S32 R74, R74", "R74", "R74"),
    ("VIADD R2, R0, 0xffffffe", "R2", "R0"),
    ("VIADDMNMX R51, R51, UR5, RZ, !PT", "R51", "R51 UR5"),
    ("VIMNMX R11, R3, 0x8, PT", "R11", "R3"),
    ("VIMNMX3 R28, R54, R44, R57, PT", "R28", "R54 R44 R57"),
    ("UIADD3.64 UR20, UR8, 0x2, URZ", "UR20:2", "UR8:2"),
    ("WARPSYNC.ALL", "", ""),
    ("LDG.E R16, [R10.64]", "R16", "R10:2"),
    ("LD.E.U8 R0, [R18.64]", "R0", "R18:2"),
    ("STG.E.U16 [R36.64], R8", "", "R36:2 R8"),
    ("ST.E.U8 [R40.64+0x10], R38", "", "R40:2 R38"),
    ("LDS R5, [R5]", "R5", "R5"),
    ("LDL.LU R5, [R1+0x4]", "R5", "R1"),
    ("STS.U16 [R21], R20", "", "R21 R20"),
    ("STL [R1], R4", "", "R1 R4"),
    ("LDG.E.64 R152, [R18.64]", "R152:2", "R18:2"),
    ("LD.E.64 R8, [R8.64]", "R8:2", "R8:2"),
    ("STG.E.64 [R2.64], R4", "", "R2:2 R4:2"),
    ("ST.E.64 [R40.64+0x10], R20", "", "R40:2 R20:2"),
    ("LDS.64 R16, [R72]", "R16:2", "R72"),
    ("LDL.LU.64 R6, [R1+0xd08]", "R6:2", "R1"),
    ("STS.64 [R19], R8", "", "R19 R8:2"),
    ("STL.64 [R1+0x560], R28", "", "R1 R28:2"),
    ("LDG.E.128 R40, [R28.64]", "R40:4", "R28:2"),
    ("LD.E.128 R8, [R8.64]", "R8:4", "R8:2"),
    ("STG.E.128 [R2.64], R12", "", "R2:2 R12:4"),
    ("ST.E.128 [R40.64], R4", "", "R40:2 R4:4"),
    ("LDS.128 R8, [R8]", "R8:4", "R8"),
    ("LDL.128 R12, [R1]", "R12:4", "R1"),
    ("STS.128 [R144], R40", "", "R144 R40:4"),
    ("STL.128 [R1], R4", "", "R1 R4:4"),
    ("LDSM.16.M88 R14, [R17+0x20]", "R14", "R17"),
    ("LDSM.16.MT88 R14, [R17+0x20]", "R14", "R17"),
    ("LDSM.16.M88.2 R14, [R17+0x20]", "R14:2", "R17"),
    ("LDSM.16.MT88.2 R14, [R17+0x20]", "R14:2", "R17"),
    ("LDSM.16.M88.4 R40, [R139+0x2000]", "R40:4", "R139"),
    ("LDSM.16.MT88.4 R8, [R8+0x2000]", "R8:4", "R8"),
    ("ATOMG.E.ADD.STRONG.GPU PT, R9, [R8.64], R43", "R9", "R8:2 R43"),
    ("ATOM.E.ADD.F32.FTZ.RN.STRONG.GPU P0, R6, [R40.64], R7", "P0 R6", "R40:2 R7"),
    ("RED.E.ADD.F32.FTZ.RN.STRONG.GPU [R2.64], R12", "", "R2:2 R12"),
    ("ATOMG.E.ADD.64.STRONG.GPU PT, R40, [R40.64], R42", "R40:2", "R40:2 R42:2"),
    ("ATOM.E.ADD.64.STRONG.GPU P0, R6, [R4.64], R44", "P0 R6:2", "R4:2 R44:2"),
    ("RED.E.ADD.64.STRONG.GPU [R38.64], R40", "", "R38:2 R40:2"),
    ("LDGSTS.E.BYPASS.128 [R77], [R4.64], P6", "", "R77 R4:2 P6"),
    ("ATOMS.EXCH R16, [0x4], R17", "R16", "R17"),
    ("ATOMS.EXCH.64 R10, [0x8], R8", "R10:2", "R8:2"),
    ("ATOMS.CAS R18, [RZ], R6, R7", "R18", "R6 R7"),
    ("ATOMS.CAS.64 R12, [RZ], R8, R10", "R12:2", "R8:2 R10:2"),
    ("ATOMS.CAST.SPIN R41, [R0], R40, R41", "R41", "R0 R40 R41"),
    ("ATOMS.CAST.SPIN.64 R6, [R47], R4, R6", "R6:2", "R47 R4:2 R6:2"),
    ("ATOMS.ARRIVE.64 R36, [URZ]", "R36:2", ""),
    ("ARRIVES.LDGSTSBAR.64 [URZ]", "", ""),
    ("LDC R22, c[0x2][R0]", "R22", "R0"),
    ("ULDC UR6, c[0x0][0x190]", "UR6", ""),
    ("ULDC.64 UR8, c[0x0][0x118]", "UR8:2", ""),
    ("CCTL.E.PF2 [R40]", "", "R40:2"),
    ("CCTL.IVALL", "", ""),
    ("QSPC.E.S P0, RZ, [R40]", "P0", "R40:2"),
    ("HMMA.16816.F32.BF16 R52, R28, R8, R52", "R52:4", "R28:4 R8:2 R52:4"),
    ("HMMA.16816.F16 R10, R8, R4, R14", "R10:2", "R8:4 R4:2 R14:2"),
    ("HMMA.1688.F32 R16, R12, R0, R8", "R16:4", "R12:2 R0 R8:4"),
    ("HMMA.1688.F16 R16, R14, R0, R10", "R16:2", "R14:2 R0 R10:2"),
    ("HMMA.1688.F32.TF32 R16, R12, R4, R8", "R16:4", "R12:4 R4:2 R8:4"),
    ("HMMA.1684.F32.TF32 R16, R12, R0, R8", "R16:4", "R12:2 R0 R8:4"),
    ("HMMA.SP.16816.F32 R4, R16, R4, R12, R10, 0x0", "R4:4", "R16:2 R4:2 R12:4 R10"),
    ("HMMA.SP.16816.F16 R10, R4, R6, R8, R0, 0x1", "R10:2", "R4:2 R6:2 R8:2 R0"),
    ("HMMA.SP.16832.F16 R10, R4, R12, R10, R0, 0x0", "R10:2", "R4:4 R12:4 R10:2 R0"),
    ("HMMA.SP.1688.F32.TF32 R12, R8, R10, R4, R5, 0x0", "R12:4", "R8:2 R10:2 R4:4 R5"),
    ("HMMA.SP.16816.F32.TF32 R12, R8, R16, R12, R5, 0x0", "R12:4", "R8:4 R16:4 R12:4 R5"),
    ("HMMA.SP.16832.F32.BF16 R12, R8, R16, R12, R5, 0x0", "R12:4", "R8:4 R16:4 R12:4 R5"),
    ("HMMA.SP.16832.F32 R4, R12, R4, R16, R10, 0x0", "R4:4", "R12:4 R4:4 R16:4 R10"),
    ("IMMA.8816.S8.S8 R16, R14.ROW, R3.COL, R10", "R16:2", "R14 R3 R10:2"),
    ("IMMA.16816.S8.S8 R16, R12.ROW, R0.COL, R8", "R16:4", "R12:2 R0 R8:4"),
    ("IMMA.16832.S8.S8.SAT R24, R44.ROW, R52.COL, R24", "R24:4", "R44:4 R52:2 R24:4"),
    ("IMMA.8832.S4.S4 R16, R14.ROW, R3.COL, R10", "R16:2", "R14 R3 R10:2"),
    ("IMMA.16832.S4.S4 R16, R12.ROW, R0.COL, R8", "R16:4", "R12:2 R0 R8:4"),
    ("IMMA.16864.S4.S4 R16, R8.ROW, R4.COL, R12", "R16:4", "R8:4 R4:2 R12:4"),
    ("IMMA.SP.16832.S8.S8 R12, R8.ROW, R10.COL, R4, R5, 0x0", "R12:4", "R8:2 R10:2 R4:4 R5"),
    ("IMMA.SP.16864.S4.S4 R12, R8.ROW, R10.COL, R4, R5, 0x0", "R12:4", "R8:2 R10:2 R4:4 R5"),
    ("IMMA.SP.168128.U4.S4 R4, R8.ROW, R16.COL, R4, R5, 0x0", "R4:4", "R8:4 R16:4 R4:4 R5"),
    ("IMMA.SP.16864.S8.S8 R16, R12.ROW, R4.COL, R8, R0, 0x0", "R16:4", "R12:4 R4:4 R8:4 R0"),
    ("BMMA.88128.XOR.POPC R16, R14.ROW, R3.COL, R10", "R16:2", "R14 R3 R10:2"),
    ("BMMA.168128.XOR.POPC R16, R12.ROW, R0.COL, R8", "R16:4", "R12:2 R0 R8:4"),
    ("BMMA.168256.XOR.POPC R16, R8.ROW, R4.COL, R12", "R16:4", "R8:4 R4:2 R12:4"),
    ("DMMA.884 R8, R8, R10, R4", "R8:4", "R8:2 R10:2 R4:4"),
    ("FADD R52, R9, R52", "R52", "R9 R52"),
    ("FMUL R13, R52, 0.044714998453855514526", "R13", "R52"),
    ("FFMA R10, R54, R13, R54", "R10", "R54 R13 R54"),
    ("FMNMX R38, R11, R10, !PT", "R38", "R11 R10"),
    ("FSEL R81, R60, 1, P0", "R81", "R60 P0"),
    ("FSET.BF.LT.AND R16, R17, R14, PT", "R16", "R17 R14"),
    ("FSETP.GT.AND P0, PT, R71, 8.50705917302346158658e+37, PT", "P0", "R71"),
    ("FCHK P0, R9, R6", "P0", "R9 R6"),
    ("MUFU.RCP R0, R0", "R0", "R0"),
    ("MUFU.RCP64H R35, UR17", "R35", "UR17"),
    ("HADD2 R0, R2.H1_H1, R3.H0_H0", "R0", "R2 R3"),
    ("HMUL2 R0, R2.H1_H1, R3.H0_H0", "R0", "R2 R3"),
    ("HFMA2 R0, R2.H1_H1, R3.H0_H0, R3.H1_H1", "R0", "R2 R3 R3"),
    ("HMNMX2 R0, R2.H1_H1, R3.H0_H0, PT", "R0", "R2 R3"),
    ("HSET2.LT.AND R5, R0, R5, P0", "R5", "R0 R5 P0"),
    ("HSET2.BF.LT.AND R16, R17, R8, PT", "R16", "R17 R8"),
    ("HSETP2.LT.AND P0, P1, R17, R6, PT", "P0 P1", "R17 R6"),
    ("DADD R12, R8, R10", "R12:2", "R8:2 R10:2"),
    ("DMUL R12, R8, R10", "R12:2", "R8:2 R10:2"),
    ("DFMA R14, R8, R10, R12", "R14:2", "R8:2 R10:2 R12:2"),
    ("DSETP.NE.OR P0, PT, R44, R38, P0", "P0", "R44:2 R38:2 P0"),
    ("F2F.F64.F32 R46, R50", "R46:2", "R50"),
    ("F2F.F32.F64 R28, R8", "R28", "R8:2"),
    ("F2F.BF16.F32 R35, R32", "R35", "R32"),
    ("F2FP.BF16.PACK_AB R8, R53, R52", "R8", "R53 R52"),
    ("F2I.S64.F64 R10, R8", "R10:2", "R8:2"),
    ("F2I.S64 R28, R21", "R28:2", "R21"),
    ("F2I.F64 R16, R8", "R16", "R8:2"),
    ("F2I.FTZ.U32.TRUNC.NTZ R3, R2", "R3", "R2"),
    ("I2F.F64.S64 R10, R8", "R10:2", "R8:2"),
    ("I2F.F64 R28, R19", "R28:2", "R19"),
    ("I2F.S64 R28, R8", "R28", "R8:2"),
    ("I2F.RP R0, R7", "R0", "R7"),
    ("FRND.F64 R10, R8", "R10:2", "R8:2"),
    ("FRND R28, R29", "R28", "R29"),
    ("I2I.S8.S32.SAT R0, R17", "R0", "R17"),
    ("I2IP.S8.S32.SAT R16, R17, R8, R9", "R16", "R17 R8 R9"),
    ("IADD3 R4, P3, P4, R11, c[0x0][0x170], R4", "R4 P3 P4", "R11 R4"),
    ("IADD3.X R3, R13, c[0x0][0x174], R6, P5, P6", "R3", "R13 R6 P5 P6"),
    ("IMAD R0, R3, R0, R8", "R0", "R3 R0 R8"),
    ("IMAD.X R139, R112, 0x1, R3, P4", "R139", "R112 R3 P4"),
    ("IMAD.WIDE R4, R9, 0x2, R92", "R4:2", "R9 R92:2"),
    ("IMAD.HI.U32 R3, R3, R9, R2", "R3", "R3 R9 R2:2"),
    ("LEA R8, P5, R20, c[0x0][0x168], 0x1", "R8 P5", "R20"),
    ("LEA.HI R3, R3, R0, RZ, 0x6", "R3", "R3 R0"),
    ("LEA.HI.X R9, R22, UR11, R9, 0x1, P2", "R9", "R22 UR11 R9 P2"),
    ("LEA.HI.SX32 R3, R3, -R6, 0x1a", "R3", "R3 R6"),
    ("LEA.HI.X.SX32 R93, R0, c[0x0][0x164], 0x1, P1", "R93", "R0 P1"),
    ("LOP3.LUT R77, R0, 0x70, R25, 0x78, !PT", "R77", "R0 R25"),
    ("SHF.L.U64.HI R65, R88, 0x1, R65", "R65", "R88 R65"),
    ("ISETP.LT.AND P2, PT, R12, c[0x0][0x180], !P0", "P2", "R12 P0"),
    ("ISETP.GE.U32.AND.EX P1, PT, R0, 0x100000, !P2, P1", "P1", "R0 P2 P1"),
    ("IMNMX R11, R3, 0x8, PT", "R11", "R3"),
    ("SEL R18, R13, R6, !P1", "R18", "R13 R6 P1"),
    ("IABS R7, R4", "R7", "R4"),
    ("IDP.4A.S8.S8 R16, R17, R8, R9", "R16", "R17 R8 R9"),
    ("VABSDIFF R16, R17, R8, R9", "R16", "R17 R8 R9"),
    ("VABSDIFF4.U8.ACC R16, R17, R8, R9", "R16", "R17 R8 R9"),
    ("PRMT R16, R16, 0x7632, R16", "R16", "R16 R16"),
    ("BMSK R11, R10, R11", "R11", "R10 R11"),
    ("SGXT.U32 R79, R79, 0x4", "R79", "R79"),
    ("BREV R16, R17", "R16", "R17"),
    ("FLO.SH R16, R17", "R16", "R17"),
    ("POPC R42, R42", "R42", "R42"),
    ("MOVM.16.MT88 R5, R0", "R5", "R0"),
    ("MOV R1, c[0x0][0x28]", "R1", ""),
    ("UIADD3 UR4, UR4, UR5, UR12", "UR4", "UR4 UR5 UR12"),
    ("UIADD3.X UR25, UR19, UR25, UR13, UP0, UP1", "UR25", "UR19 UR25 UR13 UP0 UP1"),
    ("UIMAD UR4, UR5, UR11, UR9", "UR4", "UR5 UR11 UR9"),
    ("UIMAD.WIDE UR4, UR6, 0x2, UR4", "UR4:2", "UR6 UR4:2"),
    ("UIMAD.WIDE.U32.X UR4, UR9, UR11, UR6, UP0", "UR4:2", "UR9 UR11 UR6:2 UP0"),
    ("ULEA UR8, UP0, UR5, UR8, 0x7", "UR8 UP0", "UR5 UR8"),
    ("ULEA.HI UR5, UR5, UR4, URZ, 0x7", "UR5", "UR5 UR4"),
    ("ULEA.HI.X UR6, UR5, UR7, UR8, 0x2, UP0", "UR6", "UR5 UR7 UR8 UP0"),
    ("ULEA.HI.SX32 UR5, UR5, -UR10, 0x18", "UR5", "UR5 UR10"),
    ("ULEA.HI.X.SX32 UR9, UR4, UR9, 0x2, UP0", "UR9", "UR4 UR9 UP0"),
    ("ULOP3.LUT UP0, UR9, UR5, UR6, UR7, 0x96, UP0", "UP0 UR9", "UR5 UR6 UR7 UP0"),
    ("USHF.L.U64.HI UR11, UR6, 0x2, UR7", "UR11", "UR6 UR7"),
    ("UISETP.GT.U32.OR UP0, UPT, UR21, 0x7feffffe, UP0", "UP0", "UR21 UP0"),
    ("UISETP.GE.U32.AND.EX UP0, UPT, UR11, UR9, UP1, UP0", "UP0", "UR11 UR9 UP1 UP0"),
    ("USEL UR11, UR5, 0x8, UP0", "UR11", "UR5 UP0"),
    ("UPLOP3.LUT UP0, UPT, UP0, UP1, UP2, 0xe0, 0x0", "UP0", "UP0 UP1 UP2"),
    ("UPRMT UR4, UR12, 0x3210, UR13", "UR4", "UR12 UR13"),
    ("UFLO.U32 UR5, UR4", "UR5", "UR4"),
    ("UPOPC UR7, UR6", "UR7", "UR6"),
    ("UMOV UR6, 0x1", "UR6", ""),
    ("R2UR P6, UR5, R5", "P6 UR5", "R5"),
    ("R2UR UR5, R5", "UR5", "R5"),
    ("S2UR UR5, SR_CTAID.X", "UR5", ""),
    ("REDUX.MIN.S32 UR5, R39", "UR5", "R39"),
    ("VOTEU.ANY UP0, P0", "UP0", "P0"),
    ("PLOP3.LUT P1, PT, P4, P1, PT, 0x80, 0x0", "P1", "P4 P1"),
    ("P2R R35, PR, RZ, 0x1", "R35", "P0!"),
    ("VOTE.ALL P0, P0", "P0", "P0"),
    ("MATCH.ALL PT, R36, R37", "R36", "R37"),
    ("MATCH.ALL.U64 PT, R36, R18", "R36", "R18:2"),
    ("MATCH.ANY R7, R0", "R7", "R0"),
    ("MATCH.ANY.U64 R5, R10", "R5", "R10:2"),
    ("SHFL.IDX PT, R6, R5, R46, 0x1f", "R6", "R5 R46"),
    ("S2R R5, SR_CTAID.X", "R5", ""),
    ("CS2R R18, SR_CLOCKLO", "R18:2", ""),
    ("CS2R.32 R38, SR_CLOCKLO", "R38", ""),
    ("B2R.RESULT R36", "R36", ""),
    ("BSSY B0, `(.L_x_3)", "", ""),
    ("BSYNC B0", "", ""),
    ("BREAK B1", "", ""),
    ("BRA `(.L_x_0)", "", ""),
    ("BRX R22 -0x1b0", "", "R22:2"),
    ("CALL.REL.NOINC `(.L_x_2)", "", ""),
    ("RET.REL.NODEC R40 `(k104)", "", "R40:2"),
    ("EXIT", "", ""),
    ("NOP", "", ""),
    ("WARPSYNC 0xffffffff", "", ""),
    ("NANOSLEEP R36", "", "R36"),
    ("BAR.SYNC.DEFER_BLOCKING 0x0", "", ""),
    ("BAR.ARV 0x1, 0x40", "", ""),
    ("BAR.RED.POPC.DEFER_BLOCKING 0x0, P0", "", "P0"),
    ("MEMBAR.ALL.GPU", "", ""),
    ("ERRBAR", "", ""),
    ("LDGDEPBAR", "", ""),
    ("DEPBAR.LE SB0, 0x2", "", ""),
    ("BPT.TRAP 0x1", "", ""),
    ("PMTRIG 0x2", "", ""),
    ("ATOMS.POPC.INC.32 R8, [R7]", "R8", "R7"),
    ("LDC.64 R4, c[0x0][R2+0x10]", "R4:2", "R2"),
    ("IMAD.WIDE.U32.X R4, R9, R11, R6, P0", "R4:2", "R9 R11 R6:2 P0"),
    ("UBMSK UR4, UR5, UR6", "UR4", "UR5 UR6"),
    ("USGXT UR4, UR5, 0x4", "UR4", "UR5"),
    ("UBREV UR4, UR5", "UR4", "UR5"),
    ("R2P PR, R0, 0x11", "P0! P4!", "R0"),
    ("R2P PR, R0", "P0! P1! P2! P3! P4! P5! P6!", "R0"),
    ("P2R R8, PR, R4, 0x6", "R8", "P1! P2! R4"),
    ("LEPC R20", "R20:2", ""),
    ("BMOV.32.CLEAR R16, B6", "R16", ""),
    ("BMOV.32 B6, R16", "", "R16"),
    ("KILL", "", ""),
    ("YIELD", "", ""),
    ("BRA !P2, `(.L_x_3)", "", "P2"),
    ("BRX R22 -0x1b0", "", "R22:2"),
    ("LDG.E R16, desc[UR6][R8.64]", "R16", "UR6:2 R8:2"),
    ("LD.E.64 R36, [UR8]", "R36:2", "UR8:2"),
    ("LDSM.16.M88.4 R4, [R139+UR5+0x2000]", "R4:4", "R139 UR5"),
    ("LDGSTS.E [R2+0x10], [R4.64+0x20]", "", "R2 R4:2"),
    ("ATOMG.E.CAS.64.STRONG.GPU PT, R38, [R36], R4, R6", "R38:2", "R36:2 R4:2 R6:2"),
    ("IADD3 R2, P0, P1, R79, c[0x0][0x170], R2", "R2 P0 P1", "R79 R2"),
    ("IADD3.X R67, R9, c[0x0][0x16c], RZ, P2, !P5", "R67", "R9 P2 P5"),
    ("LOP3.LUT P0, RZ, R3, 0x1, RZ, 0xc0, !PT", "P0", "R3"),
    ("PLOP3.LUT P5, P6, P1, !P2, UP0, 0x80, 0x0", "P5 P6", "P1 P2 UP0"),
    ("DFMA R40, R34, UR4, -R36", "R40:2", "R34:2 UR4:2 R36:2"),
    ("DADD R10, -RZ, |R8|", "R10:2", "R8:2"),
    ("DSETP.GTU.AND P0, PT, |R38|, +INF , P3", "P0", "R38:2 P3"),
    ("HFMA2.MMA R6, -RZ, RZ, 0, 1.847743988037109375e-06", "R6", ""),
    ("HADD2 R0, |R2|.H1_H1, -RZ.H0_H0", "R0", "R2"),
    ("VOTE.ANY R3, PT, P0", "R3", "P0"),
    ("SHFL.UP P0, R3, R37, R8, R9", "P0 R3", "R37 R8 R9"),
    ("IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28]", "R1", ""),
    ("MOV R20, 32@lo((callee + .L_x_3@srel))", "R20", ""),
    ("DEPBAR.LE SB0, 0x0, {4,3,2,1}", "", ""),
    ("CALL.REL.NOINC `(.L_x_3)", "", ""),
    ("BRA.DIV UR6, `(.L_x_3)", "", "UR6"),
    ("BRA.CONV ~URZ, `(.L_x_3)", "", ""),
    ("WARPSYNC.COLLECTIVE R5, `(.L_x_3)", "", "R5"),
    ("ENDCOLLECTIVE", "", ""),
    ("CGAERRBAR", "", ""),
    ("BAR.RED.POPC.DEFER_BLOCKING R4, 0x40, P0", "", "R4 P0"),
]
# fmt: on


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
        ("HGMMA.64x64x16.F32 R24, gdesc[UR4], R24, UP0", "R24:32", "UR4:4 R24:32 UP0"),
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
