// RUN: tcc-opt %s --tcc-set-target=name=cuda --tcc-lower-kernels --canonicalize --cse --split-input-file --verify-diagnostics | FileCheck %s

// One block: each tile's true elements are counted by warps, then by the block,
// and threads that have one store where it lies, unless the result is full.
// CHECK-LABEL: gpu.func @find(
// CHECK:         %[[FOUND:.+]]:2 = scf.for {{.+}} step %c512
// CHECK:           gpu.shuffle{{ +}}xor
// CHECK:           gpu.barrier
// CHECK-NOT:       gpu.barrier
// CHECK:           llvm.store %{{.+}} : i64, !llvm.ptr
// CHECK:         scf.for {{.+}} step %c512
// CHECK:           llvm.store %{{.+}} : i64, !llvm.ptr
func.func @find(%x: tensor<1000xi1>) -> tensor<40xi64> {
  %y = graph.fused <irregular> (%x) : (tensor<1000xi1>) -> tensor<40xi64> {
  ^bb0(%a: tensor<1000xi1>):
    %p = graph.find %a : (tensor<1000xi1>) -> tensor<40xi64>
    graph.yield %p : tensor<40xi64>
  }
  return %y : tensor<40xi64>
}

// -----

// A bit for each box is whether that is left. Until the best of a block is
// none, what overlaps it goes.
// CHECK-LABEL: gpu.module @choose
// CHECK:         llvm.mlir.global internal @choose_shared
// CHECK:       gpu.func @choose(
// CHECK:         gpu.barrier
// CHECK:         scf.while
// CHECK:           arith.divf
// CHECK:           gpu.shuffle{{ +}}xor
// CHECK:           gpu.barrier
func.func @choose(%b: tensor<1x4x500xf32>, %s: tensor<1x3x500xf32>, %c: tensor<1x3x500xi1>,
                  %n: tensor<i64>, %t: tensor<f32>) -> tensor<1x3x20xi64> {
  %y = graph.fused <irregular> (%b, %s, %c, %n, %t)
      : (tensor<1x4x500xf32>, tensor<1x3x500xf32>, tensor<1x3x500xi1>, tensor<i64>, tensor<f32>)
      -> tensor<1x3x20xi64> {
  ^bb0(%0: tensor<1x4x500xf32>, %1: tensor<1x3x500xf32>, %2: tensor<1x3x500xi1>,
       %3: tensor<i64>, %4: tensor<f32>):
    %p = graph.choose_boxes %0, %1, %2, %3, %4
        : (tensor<1x4x500xf32>, tensor<1x3x500xf32>, tensor<1x3x500xi1>, tensor<i64>, tensor<f32>)
        -> tensor<1x3x20xi64>
    graph.yield %p : tensor<1x3x20xi64>
  }
  return %y : tensor<1x3x20xi64>
}

// -----

!b = tensor<1x4x300000xf32>
!s = tensor<1x1x300000xf32>
!c = tensor<1x1x300000xi1>
func.func @many(%b: !b, %s: !s, %c: !c, %n: tensor<i64>, %t: tensor<f32>) -> tensor<1x1x20xi64> {
  %y = graph.fused <irregular> (%b, %s, %c, %n, %t)
      : (!b, !s, !c, tensor<i64>, tensor<f32>) -> tensor<1x1x20xi64> {
  ^bb0(%0: !b, %1: !s, %2: !c, %3: tensor<i64>, %4: tensor<f32>):
    // expected-error@+1 {{has more than 262144 boxes, which is not supported}}
    %p = graph.choose_boxes %0, %1, %2, %3, %4
        : (!b, !s, !c, tensor<i64>, tensor<f32>) -> tensor<1x1x20xi64>
    graph.yield %p : tensor<1x1x20xi64>
  }
  return %y : tensor<1x1x20xi64>
}
