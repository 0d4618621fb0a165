// RUN: tcc-opt %s --split-input-file --verify-diagnostics | FileCheck %s
// A kernel holds one computation; a constant is the model's or has a value.

// CHECK: exec.constant "fc.weight" : tensor<16x8xf32>
exec.constant "fc.weight" : tensor<16x8xf32>
// CHECK: exec.constant "one" : tensor<1xf32> dense<1.000000e+00>
exec.constant "one" : tensor<1xf32> dense<1.0> : tensor<1xf32>

// CHECK-LABEL: exec.kernel @exp
exec.kernel @exp {
^bb0(%x: tensor<4xf32>):
  %y = graph.fused <pointwise> (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %b = graph.exp %a : (tensor<4xf32>) -> tensor<4xf32>
    graph.yield %b : tensor<4xf32>
  }
}

// -----

// expected-error @+1 {{'exec.kernel' op}}
exec.kernel @empty {
^bb0(%x: tensor<4xf32>):
}
