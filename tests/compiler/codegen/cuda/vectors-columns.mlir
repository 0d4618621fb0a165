// RUN: tcc-opt %s --tcc-set-target=name=cuda --tcc-lower-kernels --tcc-emit-ptx=arch=sm_80 \
// RUN:   -o /dev/null | FileCheck %s

// A thread sums four neighbouring columns.
// CHECK-LABEL: .entry sum_columns(
// CHECK:         ld.global.nc.v4.f32
// CHECK:         st.shared.v4.f32
// CHECK:         bar.sync
// CHECK-COUNT-8: ld.shared.v4.f32
// CHECK:         st.global.v4.f32
// CHECK-NOT:     st.global
// CHECK:         ret;
func.func @sum_columns(%x: tensor<512x256xf32>) -> tensor<256xf32> {
  %y = graph.fused <row> (%x) : (tensor<512x256xf32>) -> tensor<256xf32> {
  ^bb0(%a: tensor<512x256xf32>):
    %e = graph.reduce <sum> %a [0] : (tensor<512x256xf32>) -> tensor<256xf32>
    graph.yield %e : tensor<256xf32>
  }
  return %y : tensor<256xf32>
}
