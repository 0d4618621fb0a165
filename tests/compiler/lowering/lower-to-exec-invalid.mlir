// RUN: tcc-opt %s --tcc-lower-to-exec --split-input-file --verify-diagnostics

// What fusion left is named.
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{of node 'graph.exp' has no lowering to exec}}
  %0 = graph.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
