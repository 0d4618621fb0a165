// RUN: tcc-opt %s --tcc-set-target=name=cuda --tcc-fuse-ops --tcc-verify-fusion --split-input-file | FileCheck %s
// A library stores what the tanh form of gelu is of as a second result, for its gradient.

// CHECK-LABEL: func @two_results
// CHECK:         graph.fused <contraction>{{.*}} -> (tensor<4096x3072xbf16>, tensor<4096x3072xbf16>)
// CHECK:           graph.gelu_tanh
// CHECK-NOT:     = graph.fused
func.func @two_results(%x: tensor<4096x768xbf16>, %w: tensor<768x3072xbf16>, %b: tensor<3072xbf16>)
    -> (tensor<4096x3072xbf16>, tensor<4096x3072xbf16>) {
  %m = graph.matmul %x, %w : (tensor<4096x768xbf16>, tensor<768x3072xbf16>) -> tensor<4096x3072xf32>
  %c = graph.broadcast %b : (tensor<3072xbf16>) -> tensor<4096x3072xbf16>
  %v = graph.cast %c : (tensor<4096x3072xbf16>) -> tensor<4096x3072xf32>
  %a = graph.add %m, %v : (tensor<4096x3072xf32>, tensor<4096x3072xf32>) -> tensor<4096x3072xf32>
  %s = graph.cast %a : (tensor<4096x3072xf32>) -> tensor<4096x3072xbf16>
  %t = graph.cast %s : (tensor<4096x3072xbf16>) -> tensor<4096x3072xf32>
  %g = graph.gelu_tanh %t : (tensor<4096x3072xf32>) -> tensor<4096x3072xf32>
  %y = graph.cast %g : (tensor<4096x3072xf32>) -> tensor<4096x3072xbf16>
  return %s, %y : tensor<4096x3072xbf16>, tensor<4096x3072xbf16>
}

// -----

// The exact form is no library's, nor is relu's second result, which is a mask.
// CHECK-LABEL: func @other_activations
// CHECK:         graph.fused <contraction>{{.*}} -> tensor<4096x3072xbf16> {
// CHECK:         graph.fused <pointwise>
// CHECK:           graph.gelu
// CHECK:         graph.fused <contraction>{{.*}} -> tensor<4096x3072xbf16> {
// CHECK:         graph.fused <pointwise>
// CHECK:           graph.relu
func.func @other_activations(%x: tensor<4096x768xbf16>, %w: tensor<768x3072xbf16>)
    -> (tensor<4096x3072xbf16>, tensor<4096x3072xbf16>, tensor<4096x3072xbf16>, tensor<4096x3072xbf16>) {
  %m = graph.matmul %x, %w : (tensor<4096x768xbf16>, tensor<768x3072xbf16>) -> tensor<4096x3072xf32>
  %s = graph.cast %m : (tensor<4096x3072xf32>) -> tensor<4096x3072xbf16>
  %t = graph.cast %s : (tensor<4096x3072xbf16>) -> tensor<4096x3072xf32>
  %g = graph.gelu %t : (tensor<4096x3072xf32>) -> tensor<4096x3072xf32>
  %y = graph.cast %g : (tensor<4096x3072xf32>) -> tensor<4096x3072xbf16>
  %n = graph.matmul %y, %w {transpose_rhs} : (tensor<4096x3072xbf16>, tensor<768x3072xbf16>) -> tensor<4096x768xf32>
  %o = graph.cast %n : (tensor<4096x768xf32>) -> tensor<4096x768xbf16>
  %p = graph.matmul %o, %w : (tensor<4096x768xbf16>, tensor<768x3072xbf16>) -> tensor<4096x3072xf32>
  %u = graph.cast %p : (tensor<4096x3072xf32>) -> tensor<4096x3072xbf16>
  %z = graph.cast %u : (tensor<4096x3072xbf16>) -> tensor<4096x3072xf32>
  %r = graph.relu %z : (tensor<4096x3072xf32>) -> tensor<4096x3072xf32>
  %k = graph.cast %r : (tensor<4096x3072xf32>) -> tensor<4096x3072xbf16>
  return %s, %y, %u, %k : tensor<4096x3072xbf16>, tensor<4096x3072xbf16>, tensor<4096x3072xbf16>, tensor<4096x3072xbf16>
}
