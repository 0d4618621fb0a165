// RUN: tcc-opt %s --tcc-recognize-attention | FileCheck %s

// Factors of the product and of its operands are one scale; the mask is added
// after them. A key that is not transposed becomes so.
// CHECK-LABEL: func @scaled_and_masked
// CHECK:         %[[K:.+]] = graph.transpose %arg1 [0, 2, 1]
// CHECK:         graph.attention %arg0, %[[K]], %arg2 mask %arg3 {scale = 1.000000e+00 : f64}
// CHECK-NOT:     graph.softmax
func.func @scaled_and_masked(%q: tensor<2x8x16xf32>, %k: tensor<2x16x4xf32>,
    %v: tensor<2x4x16xf32>, %m: tensor<2x8x4xf32>) -> tensor<2x8x16xf32> {
  %c = graph.constant dense<5.000000e-01> : tensor<f32>
  %d = graph.constant dense<2.500000e-01> : tensor<f32>
  %e = graph.broadcast %c : (tensor<f32>) -> tensor<2x8x16xf32>
  %f = graph.broadcast %d : (tensor<f32>) -> tensor<2x8x4xf32>
  %0 = graph.mul %q, %e : (tensor<2x8x16xf32>, tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  %1 = graph.matmul %0, %k : (tensor<2x8x16xf32>, tensor<2x16x4xf32>) -> tensor<2x8x4xf32>
  %2 = graph.div %1, %f : (tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  %3 = graph.constant dense<5.000000e-01> : tensor<2x8x4xf32>
  %4 = graph.mul %3, %2 : (tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  %5 = graph.add %m, %4 : (tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  %6 = graph.softmax %5 {axis = 2 : i64} : (tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  %y = graph.matmul %6, %v : (tensor<2x8x4xf32>, tensor<2x4x16xf32>) -> tensor<2x8x16xf32>
  return %y : tensor<2x8x16xf32>
}

// A factor after the mask scales the mask, too.
// CHECK-LABEL: func @scaled_mask_stays
// CHECK-NOT:     graph.attention
func.func @scaled_mask_stays(%q: tensor<2x8x16xf32>, %k: tensor<2x4x16xf32>,
    %v: tensor<2x4x16xf32>, %m: tensor<2x8x4xf32>) -> tensor<2x8x16xf32> {
  %c = graph.constant dense<5.000000e-01> : tensor<2x8x4xf32>
  %1 = graph.matmul %q, %k {transpose_rhs} : (tensor<2x8x16xf32>, tensor<2x4x16xf32>) -> tensor<2x8x4xf32>
  %2 = graph.add %1, %m : (tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  %3 = graph.mul %2, %c : (tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  %4 = graph.softmax %3 {axis = 2 : i64} : (tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  %y = graph.matmul %4, %v : (tensor<2x8x4xf32>, tensor<2x4x16xf32>) -> tensor<2x8x16xf32>
  return %y : tensor<2x8x16xf32>
}

// Weights that are a result, too, are needed in memory.
// CHECK-LABEL: func @read_weights_stay
// CHECK-NOT:     graph.attention
func.func @read_weights_stay(%q: tensor<2x8x16xf32>, %k: tensor<2x4x16xf32>,
    %v: tensor<2x4x16xf32>) -> (tensor<2x8x16xf32>, tensor<2x8x4xf32>) {
  %1 = graph.matmul %q, %k {transpose_rhs} : (tensor<2x8x16xf32>, tensor<2x4x16xf32>) -> tensor<2x8x4xf32>
  %2 = graph.softmax %1 {axis = 2 : i64} : (tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  %y = graph.matmul %2, %v : (tensor<2x8x4xf32>, tensor<2x4x16xf32>) -> tensor<2x8x16xf32>
  return %y, %2 : tensor<2x8x16xf32>, tensor<2x8x4xf32>
}
