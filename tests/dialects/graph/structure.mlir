// RUN: tcc-opt %s --split-input-file --verify-diagnostics | FileCheck %s
// A weight has a name and no value; a region sees its inputs alone.

module attributes {graph.symbols = [#graph.symbol<"batch", 1 to 8 by 1>]} {
  // CHECK-LABEL: func @values
  func.func @values() -> (tensor<2xf32>, tensor<4xf32>, tensor<i64>) {
    // CHECK-DAG: graph.constant dense<1.000000e+00> : tensor<2xf32>
    %0 = graph.constant dense<1.0> : tensor<2xf32>
    // CHECK-DAG: graph.weight "fc.bias" : tensor<4xf32>
    %1 = graph.weight "fc.bias" : tensor<4xf32>
    // CHECK-DAG: graph.size #map
    %2 = graph.size affine_map<()[s0] -> (s0 * 2)>
    return %0, %1, %2 : tensor<2xf32>, tensor<4xf32>, tensor<i64>
  }
}

// -----

func.func @isolated(%x: tensor<4xf32>, %y: tensor<4xf32>) {
  // expected-note@+1 {{required by region isolation constraints}}
  %0 = graph.fused <pointwise> (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    // expected-error@+1 {{using value defined outside the region}}
    %b = graph.add %a, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    graph.yield %b : tensor<4xf32>
  }
  return
}
