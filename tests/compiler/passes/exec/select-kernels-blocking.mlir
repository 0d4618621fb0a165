// RUN: tcc-opt %s --tcc-lower-to-exec --tcc-select-kernels | FileCheck %s
// A product that is worth two threads has two tasks, where tasks that share an operand
// do not pack it again.

// CHECK: plan = {blocking = array<i64: 132, 64, 512>}
// A small one is one task.
// CHECK: plan = {blocking = array<i64: 132, 128, 128>}
// A transposed left operand is packed: tasks of fewer rows share nothing of it.
// CHECK: plan = {blocking = array<i64: 66, 128, 512>}
func.func @main(%x: tensor<128x8192xf32>, %t: tensor<8192x128xf32>, %w: tensor<2x8192x64xf32>,
                %s: tensor<128x128xf32>, %v: tensor<2x128x64xf32>)
    -> (tensor<128x128xf32>, tensor<128x128xf32>, tensor<128x128xf32>) {
  %0 = graph.fused <contraction> (%x, %w)
      : (tensor<128x8192xf32>, tensor<2x8192x64xf32>) -> tensor<128x128xf32> {
  ^bb0(%a: tensor<128x8192xf32>, %b: tensor<2x8192x64xf32>):
    %c = graph.matmul %a, %b {packed_rhs}
        : (tensor<128x8192xf32>, tensor<2x8192x64xf32>) -> tensor<128x128xf32>
    graph.yield %c : tensor<128x128xf32>
  }
  %1 = graph.fused <contraction> (%s, %v)
      : (tensor<128x128xf32>, tensor<2x128x64xf32>) -> tensor<128x128xf32> {
  ^bb0(%a: tensor<128x128xf32>, %b: tensor<2x128x64xf32>):
    %c = graph.matmul %a, %b {packed_rhs}
        : (tensor<128x128xf32>, tensor<2x128x64xf32>) -> tensor<128x128xf32>
    graph.yield %c : tensor<128x128xf32>
  }
  %2 = graph.fused <contraction> (%t, %w)
      : (tensor<8192x128xf32>, tensor<2x8192x64xf32>) -> tensor<128x128xf32> {
  ^bb0(%a: tensor<8192x128xf32>, %b: tensor<2x8192x64xf32>):
    %c = graph.matmul %a, %b {packed_rhs, transpose_lhs}
        : (tensor<8192x128xf32>, tensor<2x8192x64xf32>) -> tensor<128x128xf32>
    graph.yield %c : tensor<128x128xf32>
  }
  return %0, %1, %2 : tensor<128x128xf32>, tensor<128x128xf32>, tensor<128x128xf32>
}
