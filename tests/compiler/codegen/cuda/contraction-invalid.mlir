// RUN: tcc-opt %s --tcc-set-target=name=cuda --tcc-lower-kernels --verify-diagnostics

// Weights are not packed for a device.
func.func @packed(%x: tensor<8x16xf32>, %w: tensor<1x16x16xf32>)
    -> tensor<8x16xf32> {
  %y = graph.fused <contraction> (%x, %w)
      : (tensor<8x16xf32>, tensor<1x16x16xf32>) -> tensor<8x16xf32> {
  ^bb0(%a: tensor<8x16xf32>, %b: tensor<1x16x16xf32>):
    // expected-error @+1 {{has an operand packed for the host}}
    %c = graph.matmul %a, %b {packed_rhs}
        : (tensor<8x16xf32>, tensor<1x16x16xf32>) -> tensor<8x16xf32>
    graph.yield %c : tensor<8x16xf32>
  }
  return %y : tensor<8x16xf32>
}
