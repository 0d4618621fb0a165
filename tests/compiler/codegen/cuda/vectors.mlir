// RUN: tcc-opt %s --tcc-set-target=name=cuda --tcc-lower-kernels --tcc-emit-ptx=arch=sm_90 \
// RUN:   -o /dev/null | FileCheck %s

// A warp reads a row once, 16 bytes an access, and converts two bf16 with an
// instruction each.
// CHECK-LABEL: .entry softmax_rows(
// CHECK-COUNT-4: ld.global.nc.v4.u32
// CHECK-NOT:     ld.global
// CHECK-COUNT-8: cvt.rn.bf16.f32
// CHECK:         st.global.v4.b32
// CHECK-NOT:     ld.global
// CHECK-COUNT-3: st.global.v4.b32
// CHECK-NOT:     st.global
// CHECK:         ret;
func.func @softmax_rows(%x: tensor<64x1024xbf16>) -> tensor<64x1024xbf16> {
  %y = graph.fused <row> (%x)
      : (tensor<64x1024xbf16>) -> tensor<64x1024xbf16> {
  ^bb0(%a: tensor<64x1024xbf16>):
    %e = graph.softmax %a {axis = 1 : i64}
        : (tensor<64x1024xbf16>) -> tensor<64x1024xbf16>
    graph.yield %e : tensor<64x1024xbf16>
  }
  return %y : tensor<64x1024xbf16>
}
