// RUN: tcc-opt %s --tcc-pack-weights | FileCheck %s

// Panels of bf16 hold pairs of neighbours in k, if k is even.
// CHECK-LABEL: func @pairs
// CHECK:         graph.reshape {{.*}} -> tensor<4x2x2x64xbf16>
// CHECK:         graph.transpose {{.*}} [2, 0, 3, 1]
// CHECK:         graph.reshape {{.*}} -> tensor<2x8x64xbf16>
// CHECK:         graph.matmul {{.*}} {packed_rhs}
func.func @pairs(%x: tensor<2x8xbf16>) -> tensor<2x128xf32> {
  %w = graph.weight "w" : tensor<8x128xbf16>
  %a = graph.matmul %x, %w
    : (tensor<2x8xbf16>, tensor<8x128xbf16>) -> tensor<2x128xf32>
  return %a : tensor<2x128xf32>
}

// CHECK-LABEL: func @odd_depth
// CHECK:         graph.reshape {{.*}} -> tensor<7x2x64xbf16>
func.func @odd_depth(%x: tensor<2x7xbf16>) -> tensor<2x128xf32> {
  %w = graph.weight "w" : tensor<7x128xbf16>
  %a = graph.matmul %x, %w
    : (tensor<2x7xbf16>, tensor<7x128xbf16>) -> tensor<2x128xf32>
  return %a : tensor<2x128xf32>
}

// Rows of an embedding are found in its pairs.
// CHECK-LABEL: func @tied_embedding
// CHECK:         %[[P:.+]] = graph.reshape {{.*}} -> tensor<1x8x64xbf16>
// CHECK:         graph.reshape %[[P]] : {{.*}} -> tensor<1x4x64x2xbf16>
// CHECK:         graph.transpose {{.*}} [0, 2, 1, 3]
// CHECK:         %[[W:.+]] = graph.reshape {{.*}} -> tensor<64x8xbf16>
// CHECK:         graph.gather %[[W]]
func.func @tied_embedding(%i: tensor<2xi64>) -> tensor<2x64xf32> {
  %w = graph.weight "embedding" : tensor<64x8xbf16>
  %e = graph.gather %w, %i {axis = 0 : i64}
    : (tensor<64x8xbf16>, tensor<2xi64>) -> tensor<2x8xbf16>
  %y = graph.matmul %e, %w {transpose_rhs}
    : (tensor<2x8xbf16>, tensor<64x8xbf16>) -> tensor<2x64xf32>
  return %y : tensor<2x64xf32>
}
