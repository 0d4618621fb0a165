// RUN: tcc-opt %s --tcc-fuse-ops | FileCheck %s

// A value is rounded where it is computed, not in each product that reads it,
// which would pack it element by element.
// CHECK-LABEL: func @rounded_once
// CHECK:         graph.fused <row>
// CHECK:           graph.layer_norm
// CHECK:           graph.cast {{.*}} -> tensor<1024x256xbf16>
// CHECK:           graph.yield {{.*}} : tensor<1024x256xbf16>
// CHECK-NOT:       graph.cast
// CHECK:         return
func.func @rounded_once(%x: tensor<1024x256xf32>, %s: tensor<256xf32>,
    %w: tensor<12x256x64xbf16>, %d: tensor<1024x768xbf16>)
    -> (tensor<1024x768xf32>, tensor<256x768xf32>) {
  %n = graph.layer_norm %x scale %s : tensor<256xf32> shift %s : tensor<256xf32>
    {axis = 1 : i64, epsilon = 1.0e-6 : f64}
    : tensor<1024x256xf32> -> tensor<1024x256xf32>
  %c = graph.cast %n : (tensor<1024x256xf32>) -> tensor<1024x256xbf16>
  %y = graph.matmul %c, %w {packed_rhs}
    : (tensor<1024x256xbf16>, tensor<12x256x64xbf16>) -> tensor<1024x768xf32>
  %z = graph.matmul %c, %d {transpose_lhs}
    : (tensor<1024x256xbf16>, tensor<1024x768xbf16>) -> tensor<256x768xf32>
  return %y, %z : tensor<1024x768xf32>, tensor<256x768xf32>
}
