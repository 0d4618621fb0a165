// RUN: tcc-opt %s --tcc-fuse-ops | FileCheck %s

// The squares of a product are summed in f64: they are made where they are
// summed, not stored in f64 by the product.
// CHECK-LABEL: func.func @norm
// CHECK:         %[[Y:.+]] = graph.fused <contraction>
// CHECK-SAME:      -> tensor<256x1024xf32>
// CHECK:         %[[S:.+]] = graph.fused <row> (%[[Y]])
// CHECK:           graph.cast
// CHECK:           graph.reduce
// CHECK:         return %[[Y]], %[[S]]
func.func @norm(%x: tensor<1024x256xf32>, %d: tensor<1024x1024xf32>) -> (tensor<256x1024xf32>, tensor<f64>) {
  %y = graph.matmul %x, %d {transpose_lhs} : (tensor<1024x256xf32>, tensor<1024x1024xf32>) -> tensor<256x1024xf32>
  %w = graph.cast %y : (tensor<256x1024xf32>) -> tensor<256x1024xf64>
  %q = graph.mul %w, %w : (tensor<256x1024xf64>, tensor<256x1024xf64>) -> tensor<256x1024xf64>
  %s = graph.reduce <sum> %q [0, 1] : (tensor<256x1024xf64>) -> tensor<f64>
  return %y, %s : tensor<256x1024xf32>, tensor<f64>
}
