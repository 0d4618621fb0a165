// RUN: tcc-opt %s --tcc-set-target=name=cuda --tcc-lower-kernels --tcc-emit-ptx=arch=sm_80 \
// RUN:   -o /dev/null | FileCheck %s

// Both operands, though one is repeated for each row, and the result.
// CHECK-LABEL: .entry add_bias(
// CHECK-COUNT-2: ld.global.nc.v4.f32
// CHECK-NOT:     ld.global
// CHECK:         st.global.v4.f32
// CHECK-NOT:     st.global
// CHECK:         ret;
func.func @add_bias(%x: tensor<64x768xf32>, %b: tensor<768xf32>)
    -> tensor<64x768xf32> {
  %y = graph.fused <pointwise> (%x, %b)
      : (tensor<64x768xf32>, tensor<768xf32>) -> tensor<64x768xf32> {
  ^bb0(%a: tensor<64x768xf32>, %c: tensor<768xf32>):
    %d = graph.broadcast %c : (tensor<768xf32>) -> tensor<64x768xf32>
    %e = graph.add %a, %d
        : (tensor<64x768xf32>, tensor<64x768xf32>) -> tensor<64x768xf32>
    graph.yield %e : tensor<64x768xf32>
  }
  return %y : tensor<64x768xf32>
}
