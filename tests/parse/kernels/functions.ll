; Device functions without calls, with names that need quotes.
define { i32, <4 x float>, i64 } @many(i32 %a, <4 x float> %b, i64 %c, i32 inreg %s) {
  %m = mul i32 %a, %s
  %r0 = insertvalue { i32, <4 x float>, i64 } poison, i32 %m, 0
  %r1 = insertvalue { i32, <4 x float>, i64 } %r0, <4 x float> %b, 1
  %r2 = insertvalue { i32, <4 x float>, i64 } %r1, i64 %c, 2
  ret { i32, <4 x float>, i64 } %r2
}

define i32 @"a name: with 'quotes', # and \5C"(ptr addrspace(5) %p, [40 x i32] %many) {
  %l = alloca i32, addrspace(5)
  store volatile i32 3, ptr addrspace(5) %l
  %v = load volatile i32, ptr addrspace(5) %p
  %w = extractvalue [40 x i32] %many, 39
  %x = add i32 %v, %w
  ret i32 %x
}

define i32 @"123"(i32 %a) {
  %b = add i32 %a, 1
  ret i32 %b
}
