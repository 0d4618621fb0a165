// RUN: tcc-opt %s --tcc-emit-ptx=arch=sm_90 -split-input-file -o /dev/null | FileCheck %s
// RUN: tcc-opt %s --tcc-emit-ptx=arch=sm_80 -split-input-file -o /dev/null | FileCheck %s --check-prefix=SM80

// Division, square root and rounding are IEEE's, a fused multiply-add is only
// where one is written, and our own functions are inlined.
// SM80: .target sm_80
// SM80-NOT: call
// SM80: sqrt.rn.f32
// CHECK: .target sm_90
// CHECK-LABEL: .entry exact(
// CHECK: .maxntid 128, 1, 1
// CHECK-NOT: call
// CHECK: ld.global.nc.f32
// CHECK: mul.rn.f32 [[PRODUCT:%f[0-9]+]]
// CHECK-NEXT: add.rn.f32 {{.*}}[[PRODUCT]]
// CHECK: div.rn.f32
// CHECK: sqrt.rn.f32
// CHECK: cvt.rn.bf16.f32
// CHECK: st.global.b16
gpu.module @kernels {
gpu.func @exact(%x: !llvm.ptr {llvm.noalias}, %y: !llvm.ptr {llvm.noalias})
    kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
  %thread = gpu.thread_id x
  %i = arith.index_cast %thread : index to i64
  %px = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  %v = llvm.load %px : !llvm.ptr -> f32
  %0 = arith.mulf %v, %v : f32
  %1 = arith.addf %0, %v : f32
  %2 = math.exp %1 : f32
  %3 = arith.divf %2, %v : f32
  %4 = math.sqrt %3 : f32
  %5 = arith.truncf %4 : f32 to bf16
  %py = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, bf16
  llvm.store %5, %py : bf16, !llvm.ptr
  gpu.return
}}

// -----

// Neighbours of a thread move together where the first one's place is provably
// aligned.
// CHECK-LABEL: .entry neighbours(
// CHECK: ld.global.nc.v4.f32
// CHECK-NOT: ld.global
// CHECK: st.global.v4.f32
gpu.module @kernels {
gpu.func @neighbours(%x: !llvm.ptr {llvm.noalias, llvm.align = 16 : i64},
                     %y: !llvm.ptr {llvm.noalias, llvm.align = 16 : i64})
    kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
  %c4 = arith.constant 4 : index
  %thread = gpu.thread_id x
  %0 = arith.muli %thread, %c4 overflow<nsw, nuw> : index
  %i = arith.index_cast %0 : index to i64
  %x0 = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  %x1 = llvm.getelementptr %x0[1] : (!llvm.ptr) -> !llvm.ptr, f32
  %x2 = llvm.getelementptr %x0[2] : (!llvm.ptr) -> !llvm.ptr, f32
  %x3 = llvm.getelementptr %x0[3] : (!llvm.ptr) -> !llvm.ptr, f32
  %y0 = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  %y1 = llvm.getelementptr %y0[1] : (!llvm.ptr) -> !llvm.ptr, f32
  %y2 = llvm.getelementptr %y0[2] : (!llvm.ptr) -> !llvm.ptr, f32
  %y3 = llvm.getelementptr %y0[3] : (!llvm.ptr) -> !llvm.ptr, f32
  %v0 = llvm.load %x0 : !llvm.ptr -> f32
  %v1 = llvm.load %x1 : !llvm.ptr -> f32
  %v2 = llvm.load %x2 : !llvm.ptr -> f32
  %v3 = llvm.load %x3 : !llvm.ptr -> f32
  llvm.store %v1, %y0 : f32, !llvm.ptr
  llvm.store %v0, %y1 : f32, !llvm.ptr
  llvm.store %v3, %y2 : f32, !llvm.ptr
  llvm.store %v2, %y3 : f32, !llvm.ptr
  gpu.return
}}
