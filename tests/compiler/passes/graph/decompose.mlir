// RUN: tcc-opt %s --tcc-decompose | FileCheck %s
// Composites without a kernel become simpler ops; those with one stay.

// CHECK-LABEL: func @few_queries
// CHECK:         graph.matmul
// CHECK:         graph.softmax
// CHECK:         graph.matmul
// CHECK-NOT:     graph.attention
func.func @few_queries(%q: tensor<2x8x16xf32>, %k: tensor<2x4x16xf32>, %v: tensor<2x4x16xf32>)
    -> tensor<2x8x16xf32> {
  %y = graph.attention %q, %k, %v {scale = 0.25 : f64}
    : (tensor<2x8x16xf32>, tensor<2x4x16xf32>, tensor<2x4x16xf32>) -> tensor<2x8x16xf32>
  return %y : tensor<2x8x16xf32>
}

// CHECK-LABEL: func @attention
// CHECK:         graph.attention
func.func @attention(%q: tensor<2x32x16xf32>, %k: tensor<2x4x16xf32>, %v: tensor<2x4x16xf32>)
    -> tensor<2x32x16xf32> {
  %y = graph.attention %q, %k, %v {scale = 0.25 : f64}
    : (tensor<2x32x16xf32>, tensor<2x4x16xf32>, tensor<2x4x16xf32>) -> tensor<2x32x16xf32>
  return %y : tensor<2x32x16xf32>
}

// CHECK-LABEL: func @batch_norm
// CHECK:         graph.sqrt
// CHECK:         graph.mul
// CHECK:         graph.add
// CHECK-NOT:     graph.batch_norm
func.func @batch_norm(%x: tensor<2x4xf32>, %p: tensor<4xf32>) -> tensor<2x4xf32> {
  %y = graph.batch_norm %x, %p, %p, %p, %p {epsilon = 1.0e-5 : f64}
    : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
