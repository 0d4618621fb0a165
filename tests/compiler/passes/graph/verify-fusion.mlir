// RUN: tcc-opt %s --tcc-verify-fusion --split-input-file --verify-diagnostics
// What code generation could not compile is refused.

func.func @outside(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{stands outside a kernel}}
  %y = graph.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @other_row(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error @+1 {{is not one kernel: a reduction is read at other rows}}
  %y = graph.fused <row> (%x) : (tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%a: tensor<4x4xf32>):
    %s = graph.reduce <sum> %a [1] : (tensor<4x4xf32>) -> tensor<4xf32>
    %b = graph.broadcast %s : (tensor<4xf32>) -> tensor<4x4xf32>
    %d = graph.sub %a, %b : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    graph.yield %d : tensor<4x4xf32>
  }
  return %y : tensor<4x4xf32>
}

// -----

func.func @wrong_kind(%x: tensor<4x4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{is of kind row}}
  %y = graph.fused <pointwise> (%x) : (tensor<4x4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4x4xf32>):
    %s = graph.reduce <sum> %a [1] : (tensor<4x4xf32>) -> tensor<4xf32>
    graph.yield %s : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}
