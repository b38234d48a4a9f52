"""Instructions that show for which architecture machine IR was made.

gfx90a and gfx942 have most of their instructions in common. The patterns over the
opcodes of machine IR match instructions that only one of them has, and instructions of
other generations that neither has. They serve to recognize machine IR of another
architecture and are not complete.

Source: LLVM 22's assembler for both, which the tests ask.
"""

from __future__ import annotations

import re

_FORM = (
    r"(_e32|_e64|_sdwa|_dpp|_vgprcd|_mac|_gfx9|_agpr|_early|_exact"
    r"|_SADDR|_ST|_SVS|_RTN|_OFFSET|_OFFEN|_IDXEN|_BOTHEN)*"
)
_ONLY = {
    "gfx90a": (
        r"BUFFER_(INVL2|WBINVL1|WBINVL1_VOL|STORE_LDS_DWORD)"
        r"|IMAGE_(LOAD|STORE|SAMPLE|GET_RESINFO)\w*"
        r"|V_(MAC|MAD|MADAK|MADMK|MAD_LEGACY)_F32"
        r"|V_MFMA_F32_(4X4X2|16X16X2|16X16X8|32X32X2)BF16"
        r"|V_MFMA_I32_(16X16X16|32X32X8)I8"
    ),
    "gfx942": (
        r"BUFFER_INV"
        r"|(GLOBAL|SCRATCH)_LOAD_LDS_(DWORD|[SU]BYTE|[SU]SHORT)"
        r"|FLAT_ATOMIC_(ADD_F32|PK_ADD_B?F16)|GLOBAL_ATOMIC_PK_ADD_BF16"
        r"|DS_PK_ADD(_RTN)?_B?F16"
        r"|V_CVT_(F32|PK_F32|(PK|SR)_(BF8|FP8))_(F32|BF8|FP8)"
        r"|V_(FMAAK|FMAMK)_F32"
        r"|V_LSHL_ADD_U64|V_MOV_B64"
        r"|V_MFMA_F32_(16X16X8|32X32X4)_?XF32"
        r"|V_MFMA_F32_(16X16X32|32X32X16)_(BF8|FP8)_(BF8|FP8)"
        r"|V_MFMA_I32_(16X16X32|32X32X16)_?I8"
        r"|V_SMFMAC_\w+"
    ),
}
_OTHERS = (
    r"S_(AND|OR|XOR|ANDN1|ANDN2|ORN1|ORN2|NAND|NOR|XNOR)_SAVEEXEC_B32"
    r"|S_WAIT_\w+CNT|S_WAITCNT_(EXPCNT|LGKMCNT|VMCNT|VSCNT)|S_BARRIER_(SIGNAL|WAIT)\w*"
    r"|S_(CLAUSE|DELAY_ALU|SENDMSG_RTN_B32|SENDMSG_RTN_B64)"
    r"|V_S?WMMAC?_\w+|V_DUAL_\w+|V_PERMLANEX?16_B32|V_(CMP|CMPX)_\w+_t16"
    r"|BUFFER_GL[01]_INV|IMAGE_(BVH|MSAA)\w*|LDS_(DIRECT|PARAM)_LOAD"
    r"|(GLOBAL|DS)_LOAD_TR\w+|DS_READ_B\d+_TR_B\d+"
)
_PATTERNS = {
    name: re.compile(f"(?:{pattern}){_FORM}") for name, pattern in (*_ONLY.items(), ("", _OTHERS))
}


def foreign_instruction(opcode: str, target: str) -> str | None:
    """The architecture of an opcode that `target` lacks, in words; None for all others."""
    for name, pattern in _PATTERNS.items():
        if name != target and pattern.fullmatch(opcode):
            return f"of {name}, not of {target}" if name else f"not of {target}"
    return None
