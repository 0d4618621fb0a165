// RUN: tcc-opt %s --tcc-set-target=name=cuda --tcc-fuse-ops --tcc-verify-fusion --split-input-file | FileCheck %s
// A library multiplies a product with the derivative of gelu's tanh form at what it is of.

// CHECK-LABEL: func @derivative
// CHECK:         graph.fused <contraction>{{.*}} -> tensor<4096x3072xbf16>
// CHECK:           graph.matmul
// CHECK:           graph.gelu_tanh_gradient
// CHECK-NOT:     = graph.fused
func.func @derivative(%d: tensor<4096x768xbf16>, %w: tensor<3072x768xbf16>, %s: tensor<4096x3072xbf16>)
    -> tensor<4096x3072xbf16> {
  %m = graph.matmul %d, %w {transpose_rhs} : (tensor<4096x768xbf16>, tensor<3072x768xbf16>) -> tensor<4096x3072xf32>
  %x = graph.cast %s : (tensor<4096x3072xbf16>) -> tensor<4096x3072xf32>
  %g = graph.gelu_tanh_gradient %x, %m : (tensor<4096x3072xf32>, tensor<4096x3072xf32>) -> tensor<4096x3072xf32>
  %y = graph.cast %g : (tensor<4096x3072xf32>) -> tensor<4096x3072xbf16>
  return %y : tensor<4096x3072xbf16>
}

// -----

// What is added to the product first leaves the derivative to a kernel of its own.
// CHECK-LABEL: func @sum_of_gradients
// CHECK:         graph.fused <contraction>
// CHECK-NOT:       graph.gelu_tanh_gradient
// CHECK:         graph.fused <pointwise>
// CHECK:           graph.gelu_tanh_gradient
func.func @sum_of_gradients(%d: tensor<4096x768xbf16>, %w: tensor<3072x768xbf16>, %s: tensor<4096x3072xbf16>,
    %o: tensor<4096x3072xbf16>) -> tensor<4096x3072xbf16> {
  %m = graph.matmul %d, %w {transpose_rhs} : (tensor<4096x768xbf16>, tensor<3072x768xbf16>) -> tensor<4096x3072xf32>
  %p = graph.cast %o : (tensor<4096x3072xbf16>) -> tensor<4096x3072xf32>
  %a = graph.add %m, %p : (tensor<4096x3072xf32>, tensor<4096x3072xf32>) -> tensor<4096x3072xf32>
  %r = graph.cast %a : (tensor<4096x3072xf32>) -> tensor<4096x3072xbf16>
  %t = graph.cast %r : (tensor<4096x3072xbf16>) -> tensor<4096x3072xf32>
  %x = graph.cast %s : (tensor<4096x3072xbf16>) -> tensor<4096x3072xf32>
  %g = graph.gelu_tanh_gradient %x, %t : (tensor<4096x3072xf32>, tensor<4096x3072xf32>) -> tensor<4096x3072xf32>
  %y = graph.cast %g : (tensor<4096x3072xf32>) -> tensor<4096x3072xbf16>
  return %y : tensor<4096x3072xbf16>
}
