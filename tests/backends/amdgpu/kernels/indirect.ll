; Vectors indexed by a variable: M0, S_SET_GPR_IDX, V_INDIRECT, S_MOVREL.
define amdgpu_kernel void @uniform(ptr addrspace(1) %p, i32 %n, float %x) {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %q = getelementptr <16 x float>, ptr addrspace(1) %p, i32 %t
  %v = load <16 x float>, ptr addrspace(1) %q
  %w = insertelement <16 x float> %v, float %x, i32 %n
  %e = extractelement <16 x float> %w, i32 %n
  store <16 x float> %w, ptr addrspace(1) %q
  store float %e, ptr addrspace(1) %p
  ret void
}

define amdgpu_kernel void @divergent(ptr addrspace(1) %p, float %x) {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %q = getelementptr <16 x float>, ptr addrspace(1) %p, i32 %t
  %v = load <16 x float>, ptr addrspace(1) %q
  %i = load i32, ptr addrspace(1) %q
  %w = insertelement <16 x float> %v, float %x, i32 %i
  %e = extractelement <16 x float> %w, i32 %i
  store <16 x float> %w, ptr addrspace(1) %q
  store float %e, ptr addrspace(1) %p
  ret void
}

define amdgpu_kernel void @scalars(ptr addrspace(4) %p, i32 %n, ptr addrspace(1) %o) {
  %v = load <8 x i32>, ptr addrspace(4) %p
  %e = extractelement <8 x i32> %v, i32 %n
  %v2 = insertelement <8 x i32> %v, i32 7, i32 %n
  %f = extractelement <8 x i32> %v2, i32 3
  %s = add i32 %e, %f
  store i32 %s, ptr addrspace(1) %o
  ret void
}

define amdgpu_kernel void @doubles(ptr addrspace(4) %p, i32 %n, ptr addrspace(1) %o) {
  %v = load <4 x double>, ptr addrspace(1) %o
  %e = extractelement <4 x double> %v, i32 %n
  store double %e, ptr addrspace(1) %o
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
