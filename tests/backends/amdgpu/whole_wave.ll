declare i32 @llvm.amdgcn.strict.wwm.i32(i32)

define amdgpu_kernel void @k(ptr %p, i32 %n) {
  %w = call i32 @llvm.amdgcn.strict.wwm.i32(i32 %n)
  store i32 %w, ptr %p
  ret void
}
