; A load five wait states after its address was written, if LLVM counts.
    s_load_dwordx4 s[4:7], s[0:1], 0x0
    v_lshlrev_b32_e32 v1, 2, v0
    s_waitcnt lgkmcnt(0)
    v_mov_b32_e32 v3, s4
    s_cmp_eq_u32 s6, s6
    v_readfirstlane_b32 s4, v3
    s_cbranch_scc1 .Lnear
    {passed_over}
.Lnear:
    s_nop 2
    global_load_dword v2, v1, s[4:5]
    s_waitcnt vmcnt(0)
    global_store_dword v1, v2, s[6:7]
.Lfar:
    s_endpgm
