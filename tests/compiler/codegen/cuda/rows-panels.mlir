// RUN: tcc-opt %s --tcc-set-target=name=cuda --tcc-lower-kernels --canonicalize --cse | FileCheck %s

// A warp takes each eighth row of a panel, a thread 24 elements of it; their sums
// stay in registers until the panel ends, and are combined through shared memory.
// CHECK-LABEL: gpu.module @warps
// CHECK:         llvm.mlir.global internal @warps_shared() {{.*}}!llvm.array<24576 x i8>
// CHECK:       gpu.func @warps(
// CHECK-SAME:    known_block_size = array<i32: 256, 1, 1>
// CHECK:         scf.for {{.*}} iter_args
// CHECK-COUNT-24: llvm.load
// CHECK-COUNT-5:  gpu.shuffle xor
// CHECK-NOT:      gpu.barrier
// CHECK:          scf.yield
// CHECK-COUNT-24: llvm.store %{{.+}} : f32, !llvm.ptr<3>
// CHECK-NEXT:    gpu.barrier
// CHECK:         scf.if
// CHECK:           scf.for {{.*}} iter_args
// CHECK-COUNT-8:     llvm.load %{{.+}} : !llvm.ptr<3> -> f32
// CHECK-NOT:     gpu.barrier
!x = tensor<16x32x768xbf16>
!r = tensor<16x32xf32>
!c = tensor<16x768xf32>
func.func @warps(%x: !x) -> (!r, !c) {
  %y:2 = graph.fused <row> (%x) : (!x) -> (!r, !c) {
  ^bb0(%a: !x):
    %w = graph.cast %a : (!x) -> tensor<16x32x768xf32>
    %r = graph.reduce <sum> %w [2] : (tensor<16x32x768xf32>) -> !r
    %c = graph.reduce <sum> %w [1] : (tensor<16x32x768xf32>) -> !c
    graph.yield %r, %c : !r, !c
  }
  return %y#0, %y#1 : !r, !c
}

// A block takes all rows of a panel, if these are long: its threads meet for the
// sum of a row, and before the next one's. Each stores the sums of its columns.
// CHECK-LABEL: gpu.module @block
// CHECK:       gpu.func @block(
// CHECK-SAME:    known_block_size = array<i32: 256, 1, 1>
// CHECK:         scf.for {{.*}} iter_args
// CHECK-COUNT-2:   gpu.barrier
// CHECK:           scf.yield
// CHECK-NOT:     gpu.barrier
!z = tensor<16x32x4096xf32>
!d = tensor<16x4096xf32>
func.func @block(%x: !z) -> (!r, !d) {
  %y:2 = graph.fused <row> (%x) : (!z) -> (!r, !d) {
  ^bb0(%a: !z):
    %r = graph.reduce <sum> %a [2] : (!z) -> !r
    %c = graph.reduce <sum> %a [1] : (!z) -> !d
    graph.yield %r, %c : !r, !d
  }
  return %y#0, %y#1 : !r, !d
}
