; A function that others call, and kernels with names that need quotes.
define { i32, <4 x float>, i64 } @many(i32 %a, <4 x float> %b, i64 %c, i32 inreg %s) {
  %m = mul i32 %a, %s
  %r0 = insertvalue { i32, <4 x float>, i64 } poison, i32 %m, 0
  %r1 = insertvalue { i32, <4 x float>, i64 } %r0, <4 x float> %b, 1
  %r2 = insertvalue { i32, <4 x float>, i64 } %r1, i64 %c, 2
  ret { i32, <4 x float>, i64 } %r2
}

define amdgpu_kernel void @"a name: with 'quotes', # and \5C"(ptr addrspace(1) %p, i32 %n) #0 {
  %l = alloca i32, addrspace(5)
  store volatile i32 3, ptr addrspace(5) %l
  %v = load volatile i32, ptr addrspace(1) %p
  %x = add i32 %v, %n
  store i32 %x, ptr addrspace(1) %p
  ret void
}

define amdgpu_kernel void @"123"(ptr addrspace(1) %p, i32 %a) #0 {
  %b = add i32 %a, 1
  store i32 %b, ptr addrspace(1) %p
  ret void
}

define amdgpu_kernel void @"a-b \C3\A9"(ptr addrspace(1) %p, i32 %a) #0 {
  store i32 %a, ptr addrspace(1) %p
  ret void
}

attributes #0 = { "amdgpu-flat-work-group-size"="1,256" }
