; Of three waves the first and the last write the same numbers to LDS, the other reads them.
    s_load_dwordx4 s[4:7], s[0:1], 0x0
    v_and_b32_e32 v1, 63, v0
    v_lshlrev_b32_e32 v1, 2, v1
    v_lshrrev_b32_e32 v7, 6, v0
    s_waitcnt lgkmcnt(0)
    global_load_dword v2, v1, s[4:5]
    s_waitcnt vmcnt(0)
    v_cmp_ne_u32_e32 vcc, 1, v7
    s_and_saveexec_b64 s[8:9], vcc
    ds_write_b32 v1, v2
    s_mov_b64 exec, s[8:9]
    {wait}
    s_barrier
    ds_read_b32 v3, v1
    s_waitcnt lgkmcnt(0)
    v_cmp_eq_u32_e32 vcc, 1, v7
    s_and_saveexec_b64 s[8:9], vcc
    global_store_dword v1, v3, s[6:7]
    s_endpgm
