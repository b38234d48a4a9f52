; Two waves share LDS: each reads what the other wrote.
    s_load_dwordx4 s[4:7], s[0:1], 0x0
    v_lshlrev_b32_e32 v1, 2, v0
    s_waitcnt lgkmcnt(0)
    ds_write_b32 v1, v0
    v_xor_b32_e32 v2, 0x1fc, v1
    {wait}
    s_barrier
    ds_read_b32 v3, v2
    s_waitcnt lgkmcnt(0)
    global_store_dword v1, v3, s[6:7]
    s_endpgm
