; Wave 1 overwrites what wave 0 has read but not waited for; in turn nobody notices.
    s_load_dwordx4 s[4:7], s[0:1], 0x0
    v_lshlrev_b32_e32 v1, 2, v0
    v_and_b32_e32 v2, 0xff, v1
    ds_write_b32 v1, v0
    s_waitcnt lgkmcnt(0)
    s_barrier
    ds_read_b32 v3, v1
    s_barrier
    v_cmp_lt_u32_e32 vcc, 63, v0
    s_and_saveexec_b64 s[8:9], vcc
    ds_write_b32 v2, v2
    s_mov_b64 exec, s[8:9]
    s_waitcnt lgkmcnt(0)
    global_store_dword v1, v3, s[6:7]
    s_endpgm
