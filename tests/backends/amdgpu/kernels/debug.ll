; Debug information and metadata on instructions.
define amdgpu_kernel void @debug(ptr addrspace(1) %p, i32 %n) !dbg !5 {
  %t = call i32 @llvm.amdgcn.workitem.id.x(), !dbg !9
    #dbg_value(i32 %t, !8, !DIExpression(), !9)
  %q = getelementptr i32, ptr addrspace(1) %p, i32 %t, !dbg !9
  %v = load i32, ptr addrspace(1) %q, align 4, !dbg !10, !range !11, !noalias !12
  %w = mul i32 %v, %n, !dbg !10
    #dbg_value(!DIArgList(i32 %w, i32 %v), !8, !DIExpression(DW_OP_LLVM_arg, 0, DW_OP_LLVM_arg, 1, DW_OP_plus), !10)
  store i32 %w, ptr addrspace(1) %q, align 4, !dbg !10, !nontemporal !13
  ret void, !dbg !10
}
declare i32 @llvm.amdgcn.workitem.id.x()
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!3}
!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !1, emissionKind: FullDebug)
!1 = !DIFile(filename: "a.c", directory: "/")
!3 = !{i32 2, !"Debug Info Version", i32 3}
!5 = distinct !DISubprogram(name: "debug", file: !1, line: 1, type: !6, unit: !0, spFlags: DISPFlagDefinition, retainedNodes: !{!8})
!6 = !DISubroutineType(types: !7)
!7 = !{}
!8 = !DILocalVariable(name: "w", scope: !5, file: !1, line: 2, type: !14)
!9 = !DILocation(line: 2, column: 3, scope: !5)
!10 = !DILocation(line: 3, column: 3, scope: !5)
!11 = !{i32 0, i32 100}
!12 = !{!15}
!13 = !{i32 1}
!14 = !DIBasicType(name: "int", size: 32, encoding: DW_ATE_signed)
!15 = distinct !{!15, !16}
!16 = distinct !{!16}
