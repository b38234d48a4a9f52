; Instructions that cross the lanes of a wave: readlane, DPP, permutes, whole-wave mode.
define amdgpu_kernel void @cross(ptr addrspace(1) %p, i32 %n) {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %q = getelementptr i32, ptr addrspace(1) %p, i32 %t
  %a = load i32, ptr addrspace(1) %q
  %b = call i32 @llvm.amdgcn.readlane.i32(i32 %a, i32 %n)
  %c = call i32 @llvm.amdgcn.writelane.i32(i32 %b, i32 5, i32 %a)
  %d = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %c)
  %e = call i32 @llvm.amdgcn.update.dpp.i32(i32 %a, i32 %c, i32 257, i32 15, i32 15, i1 false)
  %f = call i32 @llvm.amdgcn.ds.bpermute(i32 %e, i32 %c)
  %g = call i32 @llvm.amdgcn.ds.swizzle(i32 %f, i32 100)
  %h = call i64 @llvm.amdgcn.ballot.i64(i1 true)
  %i = trunc i64 %h to i32
  %m = call i32 @llvm.amdgcn.mbcnt.lo(i32 %i, i32 %g)
  %o = add i32 %m, %d
  store i32 %o, ptr addrspace(1) %q
  ret void
}

define amdgpu_kernel void @whole_wave(ptr addrspace(1) %p) {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %q = getelementptr i32, ptr addrspace(1) %p, i32 %t
  %a = load i32, ptr addrspace(1) %q
  %b = call i32 @llvm.amdgcn.set.inactive.i32(i32 %a, i32 0)
  %c = call i32 @llvm.amdgcn.update.dpp.i32(i32 0, i32 %b, i32 257, i32 15, i32 15, i1 false)
  %d = add i32 %c, %b
  %e = call i32 @llvm.amdgcn.strict.wwm.i32(i32 %d)
  %f = call i32 @llvm.amdgcn.strict.wqm.i32(i32 %e)
  store i32 %f, ptr addrspace(1) %q
  ret void
}

define amdgpu_kernel void @reduce(ptr addrspace(1) %p, ptr addrspace(1) %q) {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %r = call i32 @llvm.amdgcn.wave.reduce.umin.i32(i32 %t, i32 1)
  store i32 %r, ptr addrspace(1) %p
  %o = atomicrmw add ptr addrspace(1) %q, i32 %t seq_cst
  store i32 %o, ptr addrspace(1) %p
  ret void
}

define amdgpu_kernel void @waterfall(ptr addrspace(1) %p, i32 %n) {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %a = getelementptr <4 x i32>, ptr addrspace(1) %p, i32 %t
  %r = load <4 x i32>, ptr addrspace(1) %a
  %v = call float @llvm.amdgcn.raw.buffer.load.f32(<4 x i32> %r, i32 %n, i32 0, i32 0)
  store float %v, ptr addrspace(1) %p
  ret void
}

declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.readlane.i32(i32, i32)
declare i32 @llvm.amdgcn.writelane.i32(i32, i32, i32)
declare i32 @llvm.amdgcn.readfirstlane.i32(i32)
declare i32 @llvm.amdgcn.update.dpp.i32(i32, i32, i32, i32, i32, i1)
declare i32 @llvm.amdgcn.ds.bpermute(i32, i32)
declare i32 @llvm.amdgcn.ds.swizzle(i32, i32)
declare i64 @llvm.amdgcn.ballot.i64(i1)
declare i32 @llvm.amdgcn.mbcnt.lo(i32, i32)
declare i32 @llvm.amdgcn.set.inactive.i32(i32, i32)
declare i32 @llvm.amdgcn.strict.wwm.i32(i32)
declare i32 @llvm.amdgcn.strict.wqm.i32(i32)
declare i32 @llvm.amdgcn.wave.reduce.umin.i32(i32, i32)
declare float @llvm.amdgcn.raw.buffer.load.f32(<4 x i32>, i32, i32, i32)
