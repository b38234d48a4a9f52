; Every constraint of inline assembly that bears on registers.
define amdgpu_kernel void @constraints(ptr addrspace(1) %p, i32 %s, i64 %s64) {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %q = getelementptr i32, ptr addrspace(1) %p, i32 %t
  %v = load i32, ptr addrspace(1) %q
  %a = call i32 asm "v_mov_b32 $0, $1", "=v,v"(i32 %v)
  %b = call i32 asm sideeffect "v_add_u32 $0, $1, $2 ; \22quoted :: text\22, = (", "=&v,v,s"(i32 %a, i32 %s)
  %c = call i32 asm "v_add_u32 $0, $1, $0", "=v,v,0"(i32 %b, i32 %a)
  %d = call i64 asm "s_mov_b64 $0, $1", "=s,s,~{vcc},~{s[20:21]},~{v7},~{memory}"(i64 %s64)
  %e = call { i32, i32 } asm "v_mov_b32 $0, $2\0Av_mov_b32 $1, $2", "=v,=&v,v,~{a3}"(i32 %c)
  %e0 = extractvalue { i32, i32 } %e, 0
  %e1 = extractvalue { i32, i32 } %e, 1
  %f = call i32 asm "v_accvgpr_write_b32 $0, $1", "=a,v"(i32 %e0)
  %g = call i32 asm "v_accvgpr_read_b32 $0, $1", "=v,a"(i32 %f)
  %h = call i32 asm "v_mov_b32 $0, $1", "={v9},{v8}"(i32 %g)
  %i = call <4 x i32> asm "global_load_dwordx4 $0, $1, off", "=v,v"(ptr addrspace(1) %q)
  %j = call i32 asm "s_mov_b32 $0, $1", "={s5},{s6}"(i32 %s)
  call void asm sideeffect "s_nop $0", "n"(i32 3)
  call void asm sideeffect "; use $0", "s,~{scc}"(i64 %d)
  %sum1 = add i32 %e1, %h
  %sum2 = add i32 %sum1, %j
  %i1 = insertelement <4 x i32> %i, i32 %sum2, i32 2
  store <4 x i32> %i1, ptr addrspace(1) %q
  ret void
}

define amdgpu_kernel void @goto(ptr addrspace(1) %p, i32 %s) {
entry:
  callbr void asm sideeffect "s_cmp_eq_u32 $0, 0\0As_cbranch_scc1 $1", "s,!i"(i32 %s) to label %next [label %other]
next:
  store i32 1, ptr addrspace(1) %p
  ret void
other:
  store i32 2, ptr addrspace(1) %p
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
