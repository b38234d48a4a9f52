; Loops, divergent branches, a switch, select, early exit.
define amdgpu_kernel void @loop(ptr addrspace(1) %out, i32 %n) {
entry:
  br label %head
head:
  %i = phi i32 [ 0, %entry ], [ %i2, %head ]
  %s = phi i32 [ 1, %entry ], [ %s2, %head ]
  %m = mul i32 %s, %i
  %s2 = add i32 %m, 3
  %i2 = add i32 %i, 1
  %c = icmp ult i32 %i2, %n
  br i1 %c, label %head, label %exit
exit:
  store i32 %s2, ptr addrspace(1) %out
  ret void
}

define amdgpu_kernel void @divergent(ptr addrspace(1) %p, i32 %n) #0 {
entry:
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %q = getelementptr i32, ptr addrspace(1) %p, i32 %t
  %v = load i32, ptr addrspace(1) %q
  br label %head
head:
  %i = phi i32 [ 0, %entry ], [ %i2, %latch ]
  %a = phi i32 [ %v, %entry ], [ %a2, %latch ]
  %odd = and i32 %a, 1
  %c = icmp eq i32 %odd, 0
  br i1 %c, label %even, label %uneven
even:
  %h = lshr i32 %a, 1
  br label %latch
uneven:
  %x3 = mul i32 %a, 3
  %x31 = add i32 %x3, 1
  br label %latch
latch:
  %a2 = phi i32 [ %h, %even ], [ %x31, %uneven ]
  %i2 = add i32 %i, 1
  %more = icmp ult i32 %i2, %a2
  br i1 %more, label %head, label %exit
exit:
  store i32 %a2, ptr addrspace(1) %q
  ret void
}

define amdgpu_kernel void @switch(ptr addrspace(1) %p, i32 %n) {
entry:
  switch i32 %n, label %other [ i32 0, label %zero
    i32 1, label %one
    i32 7, label %seven
    i32 9, label %one ]
zero:
  store i32 11, ptr addrspace(1) %p
  br label %done
one:
  store volatile i32 12, ptr addrspace(1) %p
  br label %done
seven:
  unreachable
other:
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  switch i32 %t, label %done [ i32 3, label %one
    i32 4, label %zero ]
done:
  ret void
}

define amdgpu_kernel void @infinite(ptr addrspace(1) %p) {
entry:
  br label %spin
spin:
  store volatile i32 1, ptr addrspace(1) %p
  br label %spin
}

define amdgpu_kernel void @trap(ptr addrspace(1) %p, i32 %n) {
entry:
  %c = icmp eq i32 %n, 3
  br i1 %c, label %bad, label %good
bad:
  call void @llvm.trap()
  unreachable
good:
  store i32 %n, ptr addrspace(1) %p
  ret void
}

declare void @llvm.trap()
declare i32 @llvm.amdgcn.workitem.id.x()
attributes #0 = { "amdgpu-flat-work-group-size"="1,256" }
