// RUN: tcc-opt %s --tcc-decompose | FileCheck %s
// Composites without a kernel become simpler ops; those with one stay.

// CHECK-LABEL: func @attention
// CHECK:         graph.matmul
// CHECK:         graph.softmax
// CHECK:         graph.matmul
// CHECK-NOT:     graph.attention
func.func @attention(%q: tensor<2x8x16xf32>, %k: tensor<2x4x16xf32>, %v: tensor<2x4x16xf32>)
    -> tensor<2x8x16xf32> {
  %y = graph.attention %q, %k, %v {scale = 0.25 : f64}
    : (tensor<2x8x16xf32>, tensor<2x4x16xf32>, tensor<2x4x16xf32>) -> tensor<2x8x16xf32>
  return %y : tensor<2x8x16xf32>
}
