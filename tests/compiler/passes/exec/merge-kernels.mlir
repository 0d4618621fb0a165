// RUN: tcc-opt %s --tcc-lower-to-exec --tcc-merge-kernels | FileCheck %s

// Equal computations are one kernel, launched twice; another attribute makes
// another kernel.
// CHECK-COUNT-2: exec.kernel
// CHECK-NOT:     exec.kernel
// CHECK:         exec.launch @[[A:k0.*]] ins(
// CHECK-NEXT:    exec.launch @[[A]] ins(
// CHECK-NEXT:    exec.launch @k2
func.func @main(%x: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = graph.fused <pointwise> (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %b = graph.leaky_relu %a {alpha = 0.1 : f64}
      : (tensor<4xf32>) -> tensor<4xf32>
    graph.yield %b : tensor<4xf32>
  }
  %1 = graph.fused <pointwise> (%0) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %b = graph.leaky_relu %a {alpha = 0.1 : f64}
      : (tensor<4xf32>) -> tensor<4xf32>
    graph.yield %b : tensor<4xf32>
  }
  %2 = graph.fused <pointwise> (%1) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %b = graph.leaky_relu %a {alpha = 0.2 : f64}
      : (tensor<4xf32>) -> tensor<4xf32>
    graph.yield %b : tensor<4xf32>
  }
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
