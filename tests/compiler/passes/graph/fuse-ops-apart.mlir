// RUN: tcc-opt %s --tcc-fuse-ops --tcc-verify-fusion --split-input-file | FileCheck %s
// Large kernels that exchange little stay apart: as one they would have the values of
// both in memory at once.

// Each makes its own indices.
// CHECK-LABEL: func @same_indices
// CHECK:         graph.fused <row> (%arg0)
// CHECK:         graph.fused <row> (%arg1)
func.func @same_indices(%x: tensor<256x8192xi64>, %y: tensor<256x8192xi64>) -> (tensor<256xi64>, tensor<256xi64>) {
  %i = graph.iota {axis = 1 : i64} : () -> tensor<256x8192xi64>
  %a = graph.mul %x, %i : (tensor<256x8192xi64>, tensor<256x8192xi64>) -> tensor<256x8192xi64>
  %b = graph.mul %y, %i : (tensor<256x8192xi64>, tensor<256x8192xi64>) -> tensor<256x8192xi64>
  %r = graph.reduce <sum> %a [1] : (tensor<256x8192xi64>) -> tensor<256xi64>
  %s = graph.reduce <sum> %b [1] : (tensor<256x8192xi64>) -> tensor<256xi64>
  return %r, %s : tensor<256xi64>, tensor<256xi64>
}

// -----

// Small ones do not: a launch would cost as much as they.
// CHECK-LABEL: func @small
// CHECK:         graph.fused <row> (%arg0, %arg1)
// CHECK-NOT:     = graph.fused <
func.func @small(%x: tensor<8x64xi64>, %y: tensor<8x64xi64>) -> (tensor<8xi64>, tensor<8xi64>) {
  %i = graph.iota {axis = 1 : i64} : () -> tensor<8x64xi64>
  %a = graph.mul %x, %i : (tensor<8x64xi64>, tensor<8x64xi64>) -> tensor<8x64xi64>
  %b = graph.mul %y, %i : (tensor<8x64xi64>, tensor<8x64xi64>) -> tensor<8x64xi64>
  %r = graph.reduce <sum> %a [1] : (tensor<8x64xi64>) -> tensor<8xi64>
  %s = graph.reduce <sum> %b [1] : (tensor<8x64xi64>) -> tensor<8xi64>
  return %r, %s : tensor<8xi64>, tensor<8xi64>
}

// -----

// A sum of products is added up by each product but the first.
// CHECK-LABEL: func @sum_of_products
// CHECK:         %[[A:.+]] = graph.fused <contraction> (%arg0, %arg1)
// CHECK-NOT:       graph.add
// CHECK:         %[[B:.+]] = graph.fused <contraction> ({{.*}}%[[A]]
// CHECK:           graph.add
// CHECK:         graph.fused <contraction> ({{.*}}%[[B]]
// CHECK:           graph.add
func.func @sum_of_products(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>, %y: tensor<64x64xf32>, %z: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %a = graph.matmul %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %b = graph.matmul %y, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %s = graph.add %a, %b : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %c = graph.matmul %z, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %t = graph.add %s, %c : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %t : tensor<64x64xf32>
}
