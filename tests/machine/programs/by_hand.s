; A loop with a label that stays in the object, and a function after it that is refused.
    s_load_dwordx4 s[4:7], s[0:1], 0x0
    v_lshlrev_b32_e32 v1, 2, v0
    v_mov_b32_e32 v2, 0
    s_mov_b32 s8, 3
again:
    v_add_u32_e32 v2, 2, v2
    s_sub_u32 s8, s8, 1
    s_cmp_lg_u32 s8, 0
    s_cbranch_scc1 again
    s_waitcnt lgkmcnt(0)
    global_store_dword v1, v2, s[6:7]
    s_endpgm
    .type other,@function
other:
    s_trap 2
