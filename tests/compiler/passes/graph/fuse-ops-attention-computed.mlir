// RUN: tcc-opt %s --tcc-fuse-ops --tcc-verify-fusion | FileCheck %s

// A query that is made of two tensors would be made again for each block of
// keys: it is stored.
// CHECK-LABEL: func @combined
// CHECK:         graph.fused <pointwise>
// CHECK:           graph.add
// CHECK:         graph.fused <attention>
// CHECK-NOT:       graph.add
// CHECK:           graph.attention
func.func @combined(%x: tensor<1x4x32x16xf32>, %y: tensor<1x4x32x16xf32>,
                    %k: tensor<1x4x32x16xf32>) -> tensor<1x4x32x16xf32> {
  %q = graph.add %x, %y
    : (tensor<1x4x32x16xf32>, tensor<1x4x32x16xf32>) -> tensor<1x4x32x16xf32>
  %a = graph.attention %q, %k, %k {scale = 0.25 : f64}
    : (tensor<1x4x32x16xf32>, tensor<1x4x32x16xf32>, tensor<1x4x32x16xf32>) -> tensor<1x4x32x16xf32>
  return %a : tensor<1x4x32x16xf32>
}

// A bias and a conversion are computed where the query is read.
// CHECK-LABEL: func @shifted
// CHECK-NOT:     graph.fused <pointwise>
// CHECK:         graph.fused <attention>
// CHECK:           graph.cast
// CHECK:           graph.add
// CHECK:           graph.attention
func.func @shifted(%x: tensor<1x4x32x16xbf16>, %b: tensor<16xf32>,
                   %k: tensor<1x4x32x16xf32>) -> tensor<1x4x32x16xf32> {
  %w = graph.cast %x : (tensor<1x4x32x16xbf16>) -> tensor<1x4x32x16xf32>
  %r = graph.broadcast %b : (tensor<16xf32>) -> tensor<1x4x32x16xf32>
  %q = graph.add %w, %r
    : (tensor<1x4x32x16xf32>, tensor<1x4x32x16xf32>) -> tensor<1x4x32x16xf32>
  %a = graph.attention %q, %k, %k {scale = 0.25 : f64}
    : (tensor<1x4x32x16xf32>, tensor<1x4x32x16xf32>, tensor<1x4x32x16xf32>) -> tensor<1x4x32x16xf32>
  return %a : tensor<1x4x32x16xf32>
}
