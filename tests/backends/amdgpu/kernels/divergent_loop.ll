target triple = "amdgcn-amd-amdhsa"
declare i32 @llvm.amdgcn.workitem.id.x()
define amdgpu_kernel void @divergent_loop(ptr addrspace(1) %o, ptr addrspace(1) %a, i32 %n) {
e:
  %x=call i32 @llvm.amdgcn.workitem.id.x()
  br label %l
l:
  %i=phi i32 [%x,%e],[%j,%c]
  %s=phi i32 [0,%e],[%u,%c]
  %p=getelementptr i32, ptr addrspace(1) %a, i32 %i
  %v=load i32, ptr addrspace(1) %p
  %k=icmp sgt i32 %v, 3
  br i1 %k, label %t, label %c
t:
  %w=mul i32 %v, %s
  br label %c
c:
  %u=phi i32 [%w,%t],[%v,%l]
  %j=add i32 %i, %v
  %d=icmp slt i32 %j, %n
  br i1 %d, label %l, label %f
f:
  %q=getelementptr i32, ptr addrspace(1) %o, i32 %x
  store i32 %u, ptr addrspace(1) %q
  ret void
}
