// RUN: tcc-opt %s --tcc-emit-ptx -o /dev/null | FileCheck %s

// Indices are computed in 32 bits, what is read from memory after a limitation:
// a large number is no small index.
// CHECK-LABEL: .entry gather(
// CHECK-DAG: ld.param.u32 {{.*}}, [gather_param_3]
// CHECK-DAG: ld.global.nc.u64 [[READ:%rd[0-9]+]]
// CHECK: min.s64 [[LIMITED:%rd[0-9]+]], {{.*}}, 2147483647
// CHECK: cvt.u32.u64 [[INDEX:%r[0-9]+]], [[LIMITED]]
// CHECK: setp.{{.*}}32 {{.*}}[[INDEX]]
// CHECK: ld.global.nc.f32
module attributes {dlti.dl_spec = #dlti.dl_spec<#dlti.dl_entry<index, 32>>} {
gpu.module @kernels {
gpu.func @gather(%x: !llvm.ptr {llvm.noalias}, %at: !llvm.ptr {llvm.noalias},
                 %y: !llvm.ptr {llvm.noalias}, %size: i64)
    kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
  %thread = gpu.thread_id x
  %i = arith.index_cast %thread : index to i64
  %p = llvm.getelementptr %at[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i64
  %read = llvm.load %p : !llvm.ptr -> i64
  %index = arith.index_cast %read : i64 to index
  %limit = arith.index_cast %size : i64 to index
  %isInside = arith.cmpi ult, %index, %limit : index
  scf.if %isInside {
    %j = arith.index_cast %index : index to i64
    %px = llvm.getelementptr %x[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %v = llvm.load %px : !llvm.ptr -> f32
    %py = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %v, %py : f32, !llvm.ptr
  }
  gpu.return
}}}
