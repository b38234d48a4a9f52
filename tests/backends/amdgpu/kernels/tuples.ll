; Parts of tuples that LLVM names half by half: seven lanes, and nine to twelve.
define amdgpu_kernel void @vectors(ptr addrspace(1) %p) {
  %x = load <16 x i32>, ptr addrspace(1) %p, align 4
  %w = call <16 x i32> asm "; $0 $1", "=v,v"(<16 x i32> %x)
  %a = shufflevector <16 x i32> %w, <16 x i32> poison, <7 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6>
  call void asm sideeffect "; $0", "v"(<7 x i32> %a)
  %b = shufflevector <16 x i32> %w, <16 x i32> poison, <9 x i32> <i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9>
  call void asm sideeffect "; $0", "a"(<9 x i32> %b)
  call void asm sideeffect "; $0", "v"(<16 x i32> %w)
  ret void
}

define amdgpu_kernel void @scalars() {
  %c = call <16 x i32> asm sideeffect "; $0", "=s"()
  %a = shufflevector <16 x i32> %c, <16 x i32> poison, <12 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11>
  call void asm sideeffect "; $0", "s"(<12 x i32> %a)
  call void asm sideeffect "; $0", "s"(<16 x i32> %c)
  ret void
}
