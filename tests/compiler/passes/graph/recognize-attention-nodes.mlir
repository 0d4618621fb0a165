// RUN: tcc-opt %s --tcc-recognize-attention --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// Attention is known by the nodes of both of its products.
// CHECK-LABEL: func @attention
// CHECK:         graph.attention {{.*}} loc(fused["sums", "scores"])
func.func @attention(%q: tensor<2x32x16xf32>, %k: tensor<2x32x16xf32>,
                     %v: tensor<2x32x16xf32>) -> tensor<2x32x16xf32> {
  %s = graph.matmul %q, %k {transpose_rhs}
    : (tensor<2x32x16xf32>, tensor<2x32x16xf32>) -> tensor<2x32x32xf32> loc("scores")
  %w = graph.softmax %s {axis = 2 : i64} : (tensor<2x32x32xf32>) -> tensor<2x32x32xf32>
  %y = graph.matmul %w, %v
    : (tensor<2x32x32xf32>, tensor<2x32x16xf32>) -> tensor<2x32x16xf32> loc("sums")
  return %y : tensor<2x32x16xf32>
}
