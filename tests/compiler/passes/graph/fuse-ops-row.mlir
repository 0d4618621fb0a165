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

// -----

// The scale keeps the two reduced axes apart, which arg_reduce needs as one.
// CHECK-LABEL: func @rows_of_other_axes
// CHECK:         graph.fused <row>
// CHECK:           graph.reduce <sum>
// CHECK:         graph.fused <row>
// CHECK:           graph.arg_reduce <max>
!x = tensor<4x6xf32>
!z = tensor<4x2x3xf32>
func.func @rows_of_other_axes(%x: !x, %w: tensor<2x1xf32>)
    -> (tensor<4xf32>, tensor<4xi64>) {
  %0 = graph.reshape %x : (!x) -> !z
  %1 = graph.broadcast %w : (tensor<2x1xf32>) -> !z
  %2 = graph.mul %0, %1 : (!z, !z) -> !z
  %3 = graph.reduce <sum> %2 [1, 2] : (!z) -> tensor<4xf32>
  %4 = graph.arg_reduce <max> %x {axis = 1 : i64} : (!x) -> tensor<4xi64>
  return %3, %4 : tensor<4xf32>, tensor<4xi64>
}
