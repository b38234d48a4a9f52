; 64-bit, packed, 16-bit and mixed arithmetic; conversions; division.
define amdgpu_kernel void @wide(ptr addrspace(1) %p, i64 %x, double %y) {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %q = getelementptr i64, ptr addrspace(1) %p, i32 %t
  %a = load i64, ptr addrspace(1) %q
  %b = mul i64 %a, %x
  %c = udiv i64 %b, %a
  %d = ashr i64 %c, 5
  %e = add i64 %d, %b
  %f = sitofp i64 %e to double
  %g = fdiv double %f, %y
  %h = call double @llvm.fma.f64(double %g, double %y, double %f)
  %i = call double @llvm.sqrt.f64(double %h)
  %j = fptosi double %i to i64
  %k = uitofp i64 %j to float
  %l = call float @llvm.exp2.f32(float %k)
  %m = fptoui float %l to i64
  store i64 %m, ptr addrspace(1) %q
  ret void
}

define amdgpu_kernel void @packed(ptr addrspace(1) %p) {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %q = getelementptr <2 x float>, ptr addrspace(1) %p, i32 %t
  %a = load <2 x float>, ptr addrspace(1) %q
  %b = fmul <2 x float> %a, <float 2.0, float 3.0>
  %c = call <2 x float> @llvm.fma.v2f32(<2 x float> %b, <2 x float> %a, <2 x float> %b)
  %r = getelementptr <2 x half>, ptr addrspace(1) %p, i32 %t
  %d = load <2 x half>, ptr addrspace(1) %r
  %e = fadd <2 x half> %d, %d
  %f = shufflevector <2 x half> %e, <2 x half> poison, <2 x i32> <i32 1, i32 0>
  %g = fmul <2 x half> %e, %f
  %h = fpext <2 x half> %g to <2 x float>
  %i = fadd <2 x float> %c, %h
  store <2 x float> %i, ptr addrspace(1) %q
  ret void
}

define amdgpu_kernel void @halves(ptr addrspace(1) %p, i16 %x) {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %q = getelementptr i16, ptr addrspace(1) %p, i32 %t
  %a = load i16, ptr addrspace(1) %q
  %b = mul i16 %a, %x
  %c = lshr i16 %b, %a
  %d = bitcast i16 %c to half
  %e = fadd half %d, 0xH3C00
  %f = bitcast half %e to i16
  %g = getelementptr i8, ptr addrspace(1) %p, i32 %t
  %h = load i8, ptr addrspace(1) %g
  %i = sext i8 %h to i16
  %j = add i16 %i, %f
  %k = insertelement <2 x i16> poison, i16 %j, i32 0
  %l = insertelement <2 x i16> %k, i16 %f, i32 1
  store <2 x i16> %l, ptr addrspace(1) %q
  store i16 %j, ptr addrspace(1) %p
  %m = insertelement <4 x i16> poison, i16 %a, i32 1
  %n = insertelement <4 x i16> %m, i16 %j, i32 3
  store volatile <4 x i16> %n, ptr addrspace(1) %p
  ret void
}

declare i32 @llvm.amdgcn.workitem.id.x()
declare double @llvm.fma.f64(double, double, double)
declare double @llvm.sqrt.f64(double)
declare float @llvm.exp2.f32(float)
declare <2 x float> @llvm.fma.v2f32(<2 x float>, <2 x float>, <2 x float>)
