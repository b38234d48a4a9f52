; Two waves write numbers to LDS, both add all of them, and both store the same sums.
    s_load_dwordx4 s[4:7], s[0:1], 0x0
    v_and_b32_e32 v1, 63, v0
    v_lshlrev_b32_e32 v1, 2, v1
    v_lshlrev_b32_e32 v3, 2, v0
    s_waitcnt lgkmcnt(0)
    global_load_dword v2, v3, s[4:5]
    s_waitcnt vmcnt(0)
    ds_write_b32 v3, v2
    {wait}
    s_barrier
    v_xor_b32_e32 v4, 0x100, v1
    ds_read_b32 v5, v1
    ds_read_b32 v6, v4
    s_waitcnt lgkmcnt(0)
    v_add_u32_e32 v5, v5, v6
    s_barrier
    global_store_dword v1, v5, s[6:7]
    s_waitcnt vmcnt(0)
    s_endpgm
