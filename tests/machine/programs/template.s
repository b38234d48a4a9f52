.amdgcn_target "amdgcn-amd-amdhsa--{arch}"
.amdhsa_code_object_version 5
.text
.globl k
.p2align 8
.type k,@function
k:
{body}
{size}
.rodata
.p2align 6
.amdhsa_kernel k
.amdhsa_user_sgpr_kernarg_segment_ptr 1
.amdhsa_system_sgpr_workgroup_id_x 1
.amdhsa_system_sgpr_workgroup_id_y 1
.amdhsa_next_free_vgpr 128
.amdhsa_next_free_sgpr 64
.amdhsa_accum_offset 64
.amdhsa_float_denorm_mode_32 {denormals}
.amdhsa_group_segment_fixed_size 1024
.amdhsa_private_segment_fixed_size {scratch}
{options}
.amdhsa_kernarg_size 24
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: k
    .symbol: k.kd
    .kernarg_segment_size: 24
    .group_segment_fixed_size: 1024
    .private_segment_fixed_size: {scratch}
    .kernarg_segment_align: 8
    .wavefront_size: 64
    .sgpr_count: 64
    .vgpr_count: 64
    .max_flat_workgroup_size: {items}
    .args:
      - {{.name: in, .size: 8, .offset: 0, .value_kind: global_buffer, .address_space: global}}
      - {{.name: out, .size: 8, .offset: 8, .value_kind: global_buffer, .address_space: global}}
      - {{.name: n, .size: 4, .offset: 16, .value_kind: by_value}}
...
.end_amdgpu_metadata
