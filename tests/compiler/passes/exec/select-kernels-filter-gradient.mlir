// RUN: tcc-opt %s --tcc-select-kernels | FileCheck %s
// The gradient of a filter is described for a library. Rows of the image that no
// window would reach are left out: 7 of 9, where three windows of 2 x 2 step by 2.

// CHECK:       exec.kernel @gradient
// CHECK-SAME:    library = #exec.library_work<filter_gradient,
// CHECK-SAME:    lhs = <0 : bf16, () -> (0, 2, 8, 7, 6, 432, 1, 48, 8)>,
// CHECK-SAME:    rhs = <1 : bf16, () -> (0, 2, 16, 3, 3, 144, 1, 48, 16)>,
// CHECK-SAME:    result = <2 : bf16, () -> (0, 16, 8, 2, 2, 32, 1, 16, 8)>,
// CHECK-SAME:    window = <padLow = [0, 0], padHigh = [0, 0], strides = [2, 2], dilations = [1, 1]>>
exec.kernel @gradient attributes {target = "cuda"} {
^bb0(%x: tensor<2x9x6x8xbf16>, %d: tensor<2x3x3x16xbf16>):
  %y = graph.fused <contraction> (%x, %d)
      : (tensor<2x9x6x8xbf16>, tensor<2x3x3x16xbf16>) -> tensor<16x2x2x8xbf16> {
  ^bb0(%p: tensor<2x9x6x8xbf16>, %q: tensor<2x3x3x16xbf16>):
    %g = graph.conv_filter_gradient %p, %q {groups = 1 : i64, window = array<i64: 2, 2>,
      strides = array<i64: 2, 2>, pad_low = array<i64: 0, 0>, dilations = array<i64: 1, 1>}
      : (tensor<2x9x6x8xbf16>, tensor<2x3x3x16xbf16>) -> tensor<16x2x2x8xf32>
    %n = graph.cast %g : (tensor<16x2x2x8xf32>) -> tensor<16x2x2x8xbf16>
    graph.yield %n : tensor<16x2x2x8xbf16>
  }
}
exec.entry @main inputs [#exec.tensor<"x", tensor<2x9x6x8xbf16>>, #exec.tensor<"d", tensor<2x3x3x16xbf16>>]
    outputs [#exec.tensor<"y", tensor<16x2x2x8xbf16>>] attributes {slots = 0 : i64} {
  %x = exec.buffer input 0 bytes affine_map<() -> (1728)> bound 1728 : !exec.buffer<device>
  %d = exec.buffer input 1 bytes affine_map<() -> (576)> bound 576 : !exec.buffer<device>
  %y = exec.buffer output 0 bytes affine_map<() -> (1024)> bound 1024 : !exec.buffer<device>
  exec.launch @gradient ins(%x, %d) outs(%y) node "g"
    : (!exec.buffer<device>, !exec.buffer<device>) -> !exec.buffer<device>
}
