	.text
other:                                  ; @other
	s_nop 7
.Lfunc_end0:
kernel:                                 ; @kernel
; %bb.0:
	s_load_dwordx2 s[0:1], s[4:5], 0x0
	s_waitcnt lgkmcnt(0)
	s_nop 1
	v_mov_b32_e32 v1, v0
	v_mov_b32_e32 v2, 0                   ; a constant
	v_mov_b32_dpp v2, v1 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
.LBB1_1:                                ; =>This Loop Header: Depth=1
	v_accvgpr_read_b32 v3, a0
	scratch_load_dword v4, off, off       ; 4-byte Folded Reload
.LBB1_2:                                ;   Parent Loop BB1_1 Depth=1
	;;#ASMSTART
	ds_read_b32 v5, v1
	s_waitcnt lgkmcnt(0)
	v_mfma_f32_16x16x4f32 a[0:3], v5, v4, a[0:3]
	s_nop 0x4
	s_cbranch_scc1 .LBB1_2
; %bb.3:                                ;   in Loop: Header=BB1_1 Depth=1
	v_cndmask_b32_e64 v1, v1, v2, s[2:3]
	s_cbranch_vccnz .LBB1_1
; %bb.4:
	global_store_dword v1, v2, s[0:1]
.LBB1_5:
	v_add_u32_e32 v1, v1, v2
	s_cbranch_scc0 .LBB1_5
; %bb.6:
	s_endpgm
.Lfunc_end1:
; codeLenInByte = 96
