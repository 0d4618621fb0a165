// RUN: tcc-opt %s --tcc-fuse-ops | FileCheck %s
// A kernel of one element that no kernel reads is one with another one that runs
// once; not where what lies between needs that.

// CHECK-LABEL: func @share_a_launch
// CHECK-COUNT-1: graph.fused <pointwise>
// CHECK-NOT: graph.fused
func.func @share_a_launch(%a: tensor<f32>, %b: tensor<i64>) -> (tensor<f32>, tensor<i64>) {
  %0 = graph.exp %a : (tensor<f32>) -> tensor<f32>
  %1 = graph.add %b, %b : (tensor<i64>, tensor<i64>) -> tensor<i64>
  return %0, %1 : tensor<f32>, tensor<i64>
}

// CHECK-LABEL: func @join_a_row
// CHECK-COUNT-1: graph.fused <row>
// CHECK-NOT: graph.fused
func.func @join_a_row(%a: tensor<64xf32>, %b: tensor<i64>) -> (tensor<f32>, tensor<i64>) {
  %0 = graph.reduce <sum> %a [0] : (tensor<64xf32>) -> tensor<f32>
  %1 = graph.add %b, %b : (tensor<i64>, tensor<i64>) -> tensor<i64>
  return %0, %1 : tensor<f32>, tensor<i64>
}

// The matrix product needs the first scalar, and the second needs the product.
// CHECK-LABEL: func @stay_apart
// CHECK: graph.fused <pointwise>
// CHECK: graph.fused <contraction>
// CHECK: graph.fused <row>
func.func @stay_apart(%a: tensor<f32>, %b: tensor<64x64xf32>) -> (tensor<f32>, tensor<f32>) {
  %0 = graph.exp %a : (tensor<f32>) -> tensor<f32>
  %1 = graph.broadcast %0 : (tensor<f32>) -> tensor<64x64xf32>
  %2 = graph.add %b, %1 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %3 = graph.matmul %b, %2 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %4 = graph.reduce <sum> %3 [0, 1] : (tensor<64x64xf32>) -> tensor<f32>
  %5 = graph.exp %4 : (tensor<f32>) -> tensor<f32>
  return %0, %5 : tensor<f32>, tensor<f32>
}
