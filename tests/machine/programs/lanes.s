s_load_dwordx4 s[4:7], s[0:1], 0x0
v_lshlrev_b32_e32 v1, 2, v0
s_waitcnt lgkmcnt(0)
global_load_dword v2, v1, s[4:5]
s_waitcnt vmcnt(0)
v_readlane_b32 s10, v2, 5
s_mov_b32 s11, 0x46
s_nop 4
v_readlane_b32 s12, v2, s11
s_mov_b64 exec, 0xf0
v_readfirstlane_b32 s13, v2
s_mov_b64 exec, 0
v_readfirstlane_b32 s14, v2
s_mov_b64 exec, -1
v_mov_b32_e32 v3, 7
s_nop 4
v_writelane_b32 v3, s10, 9
v_mov_b32_e32 v4, v2
v_mov_b32_e32 v5, 1
s_mov_b64 exec, 3
v_swap_b32 v4, v5
s_mov_b64 exec, -1
v_accvgpr_write_b32 a0, v2
s_nop 4
v_accvgpr_mov_b32 a1, a0
s_nop 4
v_accvgpr_read_b32 v6, a1
v_mov_b32_e32 v7, s10
v_mov_b32_e32 v8, s12
v_mov_b32_e32 v9, s13
v_mov_b32_e32 v10, s14
global_store_dword v1, v3, s[6:7] offset:0
global_store_dword v1, v4, s[6:7] offset:256
global_store_dword v1, v5, s[6:7] offset:512
global_store_dword v1, v6, s[6:7] offset:768
global_store_dword v1, v7, s[6:7] offset:1024
global_store_dword v1, v8, s[6:7] offset:1280
global_store_dword v1, v9, s[6:7] offset:1536
global_store_dword v1, v10, s[6:7] offset:1792
s_endpgm
