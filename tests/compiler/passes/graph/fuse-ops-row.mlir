// RUN: tcc-opt %s --tcc-fuse-ops --tcc-verify-fusion --split-input-file | FileCheck %s
// Reductions of the same rows share a kernel with what feeds and reads them.

// Residual add and normalisation: the sum and the norm are both results.
// CHECK-LABEL: func @residual_norm
// CHECK:         %[[R:.+]]:2 = graph.fused <row>
// CHECK:           graph.add
// CHECK:           graph.layer_norm
// CHECK-NOT:     = graph.fused
func.func @residual_norm(%x: tensor<8x16x64xf32>, %y: tensor<8x16x64xf32>, %s: tensor<64xf32>)
    -> (tensor<8x16x64xf32>, tensor<8x16x64xf32>) {
  %a = graph.add %x, %y : (tensor<8x16x64xf32>, tensor<8x16x64xf32>) -> tensor<8x16x64xf32>
  %n = graph.layer_norm %a scale %s : tensor<64xf32> {axis = 2 : i64, epsilon = 1.0e-5 : f64} : tensor<8x16x64xf32> -> tensor<8x16x64xf32>
  return %a, %n : tensor<8x16x64xf32>, tensor<8x16x64xf32>
}

// -----

// A mean that is subtracted, through a reshape that keeps an axis of extent 1.
// CHECK-LABEL: func @center
// CHECK:         graph.fused <row> (%arg0)
// CHECK:           graph.reduce
// CHECK:           graph.mul
// CHECK:           graph.sub
// CHECK-NOT:     = graph.fused
func.func @center(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %scale = graph.constant dense<0.015625> : tensor<8x1xf32>
  %s = graph.reduce <sum> %x [1] : (tensor<8x64xf32>) -> tensor<8xf32>
  %k = graph.reshape %s : (tensor<8xf32>) -> tensor<8x1xf32>
  %m = graph.mul %k, %scale : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x1xf32>
  %b = graph.broadcast %m : (tensor<8x1xf32>) -> tensor<8x64xf32>
  %y = graph.sub %x, %b : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// -----

// Rows of other axes are another kernel.
// CHECK-LABEL: func @other_rows
// CHECK:         graph.fused <row>
// CHECK:         graph.fused <row>
func.func @other_rows(%x: tensor<64x64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %a = graph.reduce <sum> %x [0] : (tensor<64x64xf32>) -> tensor<64xf32>
  %b = graph.reduce <sum> %x [1] : (tensor<64x64xf32>) -> tensor<64xf32>
  return %a, %b : tensor<64xf32>, tensor<64xf32>
}

// -----

// A row's sum that is read at other rows is finished first.
// CHECK-LABEL: func @transposed_sum
// CHECK:         graph.fused <row>
// CHECK:         graph.fused <pointwise>
func.func @transposed_sum(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %s = graph.reduce <sum> %x [1] : (tensor<64x64xf32>) -> tensor<64xf32>
  %b = graph.broadcast %s : (tensor<64xf32>) -> tensor<64x64xf32>
  %y = graph.sub %x, %b : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %y : tensor<64x64xf32>
}
