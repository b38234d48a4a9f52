; LDS, scratch, atomics, buffers, flat accesses, barriers.
@lds = internal addrspace(3) global [256 x float] poison, align 16
@"odd name, \22quoted\22 :: here" = external addrspace(1) global i32

define amdgpu_kernel void @local(ptr addrspace(1) %p) {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %l = getelementptr float, ptr addrspace(3) @lds, i32 %t
  %g = getelementptr float, ptr addrspace(1) %p, i32 %t
  %v = load float, ptr addrspace(1) %g
  store float %v, ptr addrspace(3) %l
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %m = getelementptr float, ptr addrspace(3) %l, i32 4
  %w = load <4 x float>, ptr addrspace(3) %m, align 16
  %o = atomicrmw fadd ptr addrspace(3) %l, float %v syncscope("agent") monotonic
  store volatile float %o, ptr addrspace(1) %g
  store <4 x float> %w, ptr addrspace(1) %g
  ret void
}

define amdgpu_kernel void @atomics(ptr addrspace(1) %p, ptr %f, i64 %x) {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %q = getelementptr i64, ptr addrspace(1) %p, i32 %t
  %a = atomicrmw umax ptr addrspace(1) %q, i64 %x seq_cst
  %b = cmpxchg ptr addrspace(1) %q, i64 %a, i64 %x syncscope("agent") acq_rel monotonic
  %c = extractvalue { i64, i1 } %b, 0
  %d = atomicrmw xchg ptr %f, i64 %c monotonic
  %e = load i32, ptr addrspace(1) @"odd name, \22quoted\22 :: here"
  %h = zext i32 %e to i64
  %i = add i64 %h, %d
  store atomic i64 %i, ptr addrspace(1) %q release, align 8
  ret void
}

define amdgpu_kernel void @scratch(ptr addrspace(1) %p, i32 %n) {
  %a = alloca [64 x i32], align 16, addrspace(5)
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %e = getelementptr [64 x i32], ptr addrspace(5) %a, i32 0, i32 %t
  store volatile i32 %n, ptr addrspace(5) %e
  %f = getelementptr [64 x i32], ptr addrspace(5) %a, i32 0, i32 %n
  %v = load volatile i32, ptr addrspace(5) %f
  store i32 %v, ptr addrspace(1) %p
  ret void
}

define amdgpu_kernel void @buffers(ptr addrspace(8) %r, i32 %n, ptr addrspace(1) %p) {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %v = call <4 x float> @llvm.amdgcn.raw.ptr.buffer.load.v4f32(ptr addrspace(8) %r, i32 %t, i32 %n, i32 0)
  call void @llvm.amdgcn.struct.ptr.buffer.store.v4f32(<4 x float> %v, ptr addrspace(8) %r, i32 %n, i32 %t, i32 0, i32 1)
  call void @llvm.amdgcn.raw.ptr.buffer.load.lds(ptr addrspace(8) %r, ptr addrspace(3) @lds, i32 4, i32 %t, i32 0, i32 0, i32 0)
  ret void
}

declare i32 @llvm.amdgcn.workitem.id.x()
declare void @llvm.amdgcn.s.barrier()
declare <4 x float> @llvm.amdgcn.raw.ptr.buffer.load.v4f32(ptr addrspace(8), i32, i32, i32)
declare void @llvm.amdgcn.struct.ptr.buffer.store.v4f32(<4 x float>, ptr addrspace(8), i32, i32, i32, i32)
declare void @llvm.amdgcn.raw.ptr.buffer.load.lds(ptr addrspace(8), ptr addrspace(3), i32, i32, i32, i32, i32)
