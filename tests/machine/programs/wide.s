; Loads four words where an array, and the arguments, have three and two; stores the sum of some.
    s_load_dwordx4 s[4:7], s[0:1], 0x0
    s_load_dwordx4 s[8:11], s[0:1], 0x10
    v_lshlrev_b32_e32 v1, 2, v0
    s_waitcnt lgkmcnt(0)
    s_nop 0
    s_load_dwordx4 s[12:15], s[4:5], 0x0
    s_waitcnt lgkmcnt(0)
    s_add_u32 s8, s8, s9
    s_add_u32 s8, s8, s14
    v_mov_b32_e32 v2, s8
    global_store_dword v1, v2, s[6:7]
    s_endpgm
