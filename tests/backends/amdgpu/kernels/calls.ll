; A call: its operand is a register mask.
declare i32 @other(i32)
define amdgpu_kernel void @caller(ptr addrspace(1) %p, i32 %n) {
  %v = call i32 @other(i32 %n)
  store i32 %v, ptr addrspace(1) %p
  ret void
}
