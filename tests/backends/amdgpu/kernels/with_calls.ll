target triple = "amdgcn-amd-amdhsa"

declare i32 @llvm.amdgcn.workitem.id.x()
declare float @outside(float, float)
declare void @fill(ptr addrspace(5), i32)

define hidden float @helper(float %a, float %b) noinline {
  %c = fmul float %a, %b
  %d = fadd float %c, 1.0
  ret float %d
}

define amdgpu_kernel void @one_call(ptr addrspace(1) %p, float %x) #0 {
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %g = getelementptr float, ptr addrspace(1) %p, i32 %i
  %v = load float, ptr addrspace(1) %g
  %r = call float @helper(float %v, float %x)
  %s = fadd float %r, %v
  store float %s, ptr addrspace(1) %g
  ret void
}

define amdgpu_kernel void @call_in_loop(ptr addrspace(1) %p, float %x, i32 %n) #0 {
entry:
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %g = getelementptr float, ptr addrspace(1) %p, i32 %i
  br label %loop
loop:
  %k = phi i32 [0, %entry], [%k1, %loop]
  %acc = phi float [0.0, %entry], [%acc1, %loop]
  %o = getelementptr float, ptr addrspace(1) %g, i32 %k
  %v = load float, ptr addrspace(1) %o
  %r = call float @helper(float %v, float %acc)
  %acc1 = fadd float %r, %acc
  %k1 = add i32 %k, 1
  %c = icmp slt i32 %k1, %n
  br i1 %c, label %loop, label %exit
exit:
  store float %acc1, ptr addrspace(1) %g
  ret void
}

define hidden <4 x float> @wide(<4 x float> %a, <4 x float> %b, i32 %n) noinline {
  %c = fmul <4 x float> %a, %b
  %f = sitofp i32 %n to float
  %i = insertelement <4 x float> %c, float %f, i32 2
  ret <4 x float> %i
}

define amdgpu_kernel void @several_calls(ptr addrspace(1) %p, ptr addrspace(1) %q, float %x) #0 {
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %g = getelementptr <4 x float>, ptr addrspace(1) %p, i32 %i
  %h = getelementptr <4 x float>, ptr addrspace(1) %q, i32 %i
  %v = load <4 x float>, ptr addrspace(1) %g
  %w = load <4 x float>, ptr addrspace(1) %h
  %r = call <4 x float> @wide(<4 x float> %v, <4 x float> %w, i32 %i)
  %r2 = call <4 x float> @wide(<4 x float> %r, <4 x float> %v, i32 3)
  %e = extractelement <4 x float> %r2, i32 1
  %t = call float @helper(float %e, float %x)
  %s = fadd <4 x float> %r, %w
  %s2 = fadd <4 x float> %s, %r2
  %s3 = insertelement <4 x float> %s2, float %t, i32 0
  store <4 x float> %s3, ptr addrspace(1) %g
  ret void
}

define amdgpu_kernel void @divergent_call(ptr addrspace(1) %p, float %x) #0 {
entry:
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %g = getelementptr float, ptr addrspace(1) %p, i32 %i
  %v = load float, ptr addrspace(1) %g
  %c = fcmp ogt float %v, %x
  br i1 %c, label %then, label %else
then:
  %r = call float @helper(float %v, float %x)
  br label %join
else:
  %e = fmul float %v, 3.0
  br label %join
join:
  %m = phi float [%r, %then], [%e, %else]
  %s = fadd float %m, %v
  store float %s, ptr addrspace(1) %g
  ret void
}

define float @leaf(ptr addrspace(1) %p, i32 %n, float %x) {
entry:
  br label %loop
loop:
  %k = phi i32 [0, %entry], [%k1, %loop]
  %acc = phi float [0.0, %entry], [%acc1, %loop]
  %o = getelementptr <4 x float>, ptr addrspace(1) %p, i32 %k
  %v = load <4 x float>, ptr addrspace(1) %o
  %a = extractelement <4 x float> %v, i32 0
  %b = extractelement <4 x float> %v, i32 3
  %m = fmul float %a, %b
  %acc1 = fadd float %m, %acc
  %k1 = add i32 %k, 1
  %c = icmp slt i32 %k1, %n
  br i1 %c, label %loop, label %exit
exit:
  %s = fadd float %acc1, %x
  ret float %s
}

define float @calls_twice(ptr addrspace(1) %p, float %x) {
  %v = load float, ptr addrspace(1) %p
  %r = call float @outside(float %v, float %x)
  %s = fadd float %r, %v
  %r2 = call float @outside(float %s, float %v)
  %t = fadd float %r2, %r
  store float %t, ptr addrspace(1) %p
  ret float %s
}

define amdgpu_kernel void @many_across(ptr addrspace(1) %p, float %x) #0 {
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %g = getelementptr <16 x float>, ptr addrspace(1) %p, i32 %i
  %v = load <16 x float>, ptr addrspace(1) %g
  %e = extractelement <16 x float> %v, i32 5
  %r = call float @helper(float %e, float %x)
  %n = insertelement <16 x float> poison, float %r, i32 0
  %b = shufflevector <16 x float> %n, <16 x float> poison, <16 x i32> zeroinitializer
  %s = fmul <16 x float> %v, %b
  store <16 x float> %s, ptr addrspace(1) %g
  ret void
}

define amdgpu_kernel void @indirect_call(ptr addrspace(1) %p, ptr %f, float %x) #0 {
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %g = getelementptr float, ptr addrspace(1) %p, i32 %i
  %v = load float, ptr addrspace(1) %g
  %r = call float %f(float %v, float %x)
  %s = fadd float %r, %v
  store float %s, ptr addrspace(1) %g
  ret void
}

define float @divergent_target(ptr addrspace(1) %p, ptr addrspace(1) %fs, float %x) {
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %g = getelementptr float, ptr addrspace(1) %p, i32 %i
  %fg = getelementptr ptr, ptr addrspace(1) %fs, i32 %i
  %f = load ptr, ptr addrspace(1) %fg
  %v = load float, ptr addrspace(1) %g
  %r = call float %f(float %v, float %x)
  %s = fadd float %r, %v
  ret float %s
}

define amdgpu_kernel void @stack_object(ptr addrspace(1) %p, i32 %n) #0 {
  %a = alloca [16 x float], align 4, addrspace(5)
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  call void @fill(ptr addrspace(5) %a, i32 %n)
  %k = and i32 %i, 15
  %o = getelementptr float, ptr addrspace(5) %a, i32 %k
  %v = load float, ptr addrspace(5) %o
  %g = getelementptr float, ptr addrspace(1) %p, i32 %i
  store float %v, ptr addrspace(1) %g
  ret void
}

define float @tail_call(float %x) {
  %r = tail call float @outside(float %x, float 2.0)
  ret float %r
}

define float @tail_call_after_loop(ptr addrspace(1) inreg %p, i32 inreg %n, float %x) {
entry:
  %c0 = icmp slt i32 %n, 1
  br i1 %c0, label %early, label %loop
early:
  ret float %x
loop:
  %k = phi i32 [0, %entry], [%k1, %loop]
  %acc = phi float [%x, %entry], [%acc1, %loop]
  %o = getelementptr float, ptr addrspace(1) %p, i32 %k
  %v = load float, ptr addrspace(1) %o
  %acc1 = fadd float %acc, %v
  %k1 = add i32 %k, 1
  %c = icmp slt i32 %k1, %n
  br i1 %c, label %loop, label %exit
exit:
  %r = tail call float @outside(float %acc1, float %x)
  ret float %r
}

define float @arguments_on_stack(<32 x float> %v, float %x, float %y) {
  %e = extractelement <32 x float> %v, i32 31
  %s = fadd float %e, %y
  %r = call float @outside(float %s, float %x)
  %t = fadd float %r, %y
  ret float %t
}

attributes #0 = { "amdgpu-flat-work-group-size"="1,256" }
