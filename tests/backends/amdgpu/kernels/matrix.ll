; Matrix instructions, on accumulation registers and on vector registers.
define amdgpu_kernel void @accumulate(ptr addrspace(1) %p, <4 x half> %a, <4 x half> %b, i32 %n) #0 {
entry:
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %q = getelementptr <16 x float>, ptr addrspace(1) %p, i32 %t
  %c0 = load <16 x float>, ptr addrspace(1) %q
  br label %head
head:
  %i = phi i32 [ 0, %entry ], [ %i2, %head ]
  %c = phi <16 x float> [ %c0, %entry ], [ %c2, %head ]
  %c1 = call <16 x float> @llvm.amdgcn.mfma.f32.32x32x8f16(<4 x half> %a, <4 x half> %b, <16 x float> %c, i32 0, i32 0, i32 0)
  %c2 = call <16 x float> @llvm.amdgcn.mfma.f32.32x32x8f16(<4 x half> %b, <4 x half> %a, <16 x float> %c1, i32 0, i32 0, i32 0)
  %i2 = add i32 %i, 1
  %m = icmp ult i32 %i2, %n
  br i1 %m, label %head, label %exit
exit:
  store <16 x float> %c2, ptr addrspace(1) %q
  ret void
}

define amdgpu_kernel void @large(ptr addrspace(1) %p, float %a, float %b) #1 {
entry:
  %c = load <32 x float>, ptr addrspace(1) %p
  %d = call <32 x float> @llvm.amdgcn.mfma.f32.32x32x1f32(float %a, float %b, <32 x float> %c, i32 1, i32 2, i32 3)
  %e = call <32 x float> @llvm.amdgcn.mfma.f32.32x32x1f32(float %b, float %a, <32 x float> zeroinitializer, i32 0, i32 0, i32 0)
  %f = fadd <32 x float> %d, %e
  store <32 x float> %f, ptr addrspace(1) %p
  ret void
}

define amdgpu_kernel void @doubles(ptr addrspace(1) %p, double %a, double %b) #2 {
entry:
  %c = load <4 x double>, ptr addrspace(1) %p
  %d = call <4 x double> @llvm.amdgcn.mfma.f64.16x16x4f64(double %a, double %b, <4 x double> %c, i32 0, i32 0, i32 0)
  store <4 x double> %d, ptr addrspace(1) %p
  ret void
}

declare <16 x float> @llvm.amdgcn.mfma.f32.32x32x8f16(<4 x half>, <4 x half>, <16 x float>, i32, i32, i32)
declare <32 x float> @llvm.amdgcn.mfma.f32.32x32x1f32(float, float, <32 x float>, i32, i32, i32)
declare <4 x double> @llvm.amdgcn.mfma.f64.16x16x4f64(double, double, <4 x double>, i32, i32, i32)
declare i32 @llvm.amdgcn.workitem.id.x()
attributes #0 = { "amdgpu-flat-work-group-size"="1,256" "amdgpu-waves-per-eu"="8,8" }
attributes #1 = { "amdgpu-flat-work-group-size"="1,512" "amdgpu-agpr-alloc"="64" }
attributes #2 = { "amdgpu-flat-work-group-size"="1,64" "amdgpu-waves-per-eu"="1,1" }
