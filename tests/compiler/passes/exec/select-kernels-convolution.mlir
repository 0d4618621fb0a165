// RUN: tcc-opt %s --tcc-select-kernels | FileCheck %s
// A convolution of narrow floats is described for a library; of f32 a library
// would round the operands.

// Axes are in the order batch, channel, spatial, wherever the channels lie.
// CHECK:       exec.kernel @narrow
// CHECK-SAME:    library = #exec.library_work<convolution,
// CHECK-SAME:    lhs = <0 : bf16, () -> (0, 2, 8, 6, 6, 288, 1, 48, 8)>,
// CHECK-SAME:    rhs = <1 : bf16, () -> (0, 16, 8, 3, 3, 72, 1, 24, 8)>,
// CHECK-SAME:    result = <4 : bf16, () -> (0, 2, 16, 6, 6, 576, 1, 96, 16)>,
// CHECK-SAME:    steps = [#exec.step<add of <3 : bf16, () -> (0, 2, 16, 6, 6, 576, 1, 96, 16)>>,
// CHECK-SAME:    #exec.step<bias of <2 : bf16, () -> (0, 2, 16, 6, 6, 0, 1, 0, 0)>>,
// CHECK-SAME:    #exec.step<relu>],
// CHECK-SAME:    window = <padLow = [1, 1], padHigh = [1, 1], strides = [1, 1], dilations = [1, 1]>>
// CHECK:       exec.kernel @wide
// CHECK-NOT:     library =
// CHECK:       exec.entry @main
// CHECK-SAME:    workspace_bytes = 33554432
exec.kernel @narrow attributes {target = "cuda"} {
^bb0(%x: tensor<2x6x6x8xbf16>, %w: tensor<16x3x3x8xbf16>, %b: tensor<16xbf16>,
     %r: tensor<2x6x6x16xbf16>):
  %y = graph.fused <contraction> (%x, %w, %b, %r)
      : (tensor<2x6x6x8xbf16>, tensor<16x3x3x8xbf16>, tensor<16xbf16>, tensor<2x6x6x16xbf16>)
      -> tensor<2x6x6x16xbf16> {
  ^bb0(%p: tensor<2x6x6x8xbf16>, %q: tensor<16x3x3x8xbf16>, %c: tensor<16xbf16>,
       %d: tensor<2x6x6x16xbf16>):
    %m = graph.conv %p, %q {filters = 16 : i64, groups = 1 : i64,
      window = array<i64: 3, 3>, strides = array<i64: 1, 1>, pad_low = array<i64: 1, 1>,
      pad_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, channels_last}
      : (tensor<2x6x6x8xbf16>, tensor<16x3x3x8xbf16>) -> tensor<2x6x6x16xf32>
    %cb = graph.broadcast %c : (tensor<16xbf16>) -> tensor<2x6x6x16xbf16>
    %cf = graph.cast %cb : (tensor<2x6x6x16xbf16>) -> tensor<2x6x6x16xf32>
    %a = graph.add %m, %cf : (tensor<2x6x6x16xf32>, tensor<2x6x6x16xf32>) -> tensor<2x6x6x16xf32>
    %df = graph.cast %d : (tensor<2x6x6x16xbf16>) -> tensor<2x6x6x16xf32>
    %e = graph.add %a, %df : (tensor<2x6x6x16xf32>, tensor<2x6x6x16xf32>) -> tensor<2x6x6x16xf32>
    %f = graph.relu %e : (tensor<2x6x6x16xf32>) -> tensor<2x6x6x16xf32>
    %g = graph.cast %f : (tensor<2x6x6x16xf32>) -> tensor<2x6x6x16xbf16>
    graph.yield %g : tensor<2x6x6x16xbf16>
  }
}
exec.kernel @wide attributes {target = "cuda"} {
^bb0(%x: tensor<2x6x6x8xf32>, %w: tensor<16x3x3x8xf32>):
  %y = graph.fused <contraction> (%x, %w)
      : (tensor<2x6x6x8xf32>, tensor<16x3x3x8xf32>) -> tensor<2x6x6x16xf32> {
  ^bb0(%p: tensor<2x6x6x8xf32>, %q: tensor<16x3x3x8xf32>):
    %m = graph.conv %p, %q {filters = 16 : i64, groups = 1 : i64,
      window = array<i64: 3, 3>, strides = array<i64: 1, 1>, pad_low = array<i64: 1, 1>,
      pad_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>, channels_last}
      : (tensor<2x6x6x8xf32>, tensor<16x3x3x8xf32>) -> tensor<2x6x6x16xf32>
    graph.yield %m : tensor<2x6x6x16xf32>
  }
}
exec.constant "w" : tensor<16x3x3x8xbf16>
exec.constant "b" : tensor<16xbf16>
exec.entry @main inputs [#exec.tensor<"x", tensor<2x6x6x8xbf16>>, #exec.tensor<"r", tensor<2x6x6x16xbf16>>]
    outputs [#exec.tensor<"y", tensor<2x6x6x16xbf16>>] attributes {slots = 0 : i64} {
  %x = exec.buffer input 0 bytes affine_map<() -> (1152)> bound 1152 : !exec.buffer<device>
  %w = exec.buffer constant 0 bytes affine_map<() -> (2304)> bound 2304 : !exec.buffer<device>
  %b = exec.buffer constant 1 bytes affine_map<() -> (32)> bound 32 : !exec.buffer<device>
  %r = exec.buffer input 1 bytes affine_map<() -> (2304)> bound 2304 : !exec.buffer<device>
  %y = exec.buffer output 0 bytes affine_map<() -> (2304)> bound 2304 : !exec.buffer<device>
  exec.launch @narrow ins(%x, %w, %b, %r) outs(%y) node "m"
    : (!exec.buffer<device>, !exec.buffer<device>, !exec.buffer<device>, !exec.buffer<device>) -> !exec.buffer<device>
}
