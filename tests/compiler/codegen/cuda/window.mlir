// RUN: tcc-opt %s --tcc-set-target=name=cuda --tcc-lower-kernels --canonicalize --cse | FileCheck %s

// A thread has four neighbouring channels. Taps outside of x are read inside and
// left out.
// CHECK-LABEL: gpu.func @largest(
// CHECK-SAME:    known_block_size = array<i32: 128, 1, 1>
// CHECK:         %[[LOWEST:.+]] = arith.constant 0xFF800000 : f32
// CHECK:         scf.for {{.+}}%[[LOWEST]], {{.+}}%[[LOWEST]]
// CHECK:           scf.for
// CHECK:             %[[INSIDE:.+]] = arith.andi
// CHECK:             llvm.load %{{.+}} : !llvm.ptr -> f32
// CHECK:             %[[MORE:.+]] = arith.maximumf
// CHECK:             arith.select %[[INSIDE]], %[[MORE]]
// CHECK-COUNT-3:     arith.maximumf
// CHECK-NOT:         arith.maximumf
// CHECK-COUNT-4: llvm.store
func.func @largest(%x: tensor<2x9x9x16xf32>) -> tensor<2x5x5x16xf32> {
  %y = graph.fused <window> (%x)
      : (tensor<2x9x9x16xf32>) -> tensor<2x5x5x16xf32> {
  ^bb0(%a: tensor<2x9x9x16xf32>):
    %p = graph.pool <max> %a {window = array<i64: 3, 3>,
        strides = array<i64: 2, 2>, pad_low = array<i64: 1, 1>,
        pad_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
        count_low = array<i64: 0, 0>, count_high = array<i64: 0, 0>,
        channels_last} : (tensor<2x9x9x16xf32>) -> tensor<2x5x5x16xf32>
    graph.yield %p : tensor<2x5x5x16xf32>
  }
  return %y : tensor<2x5x5x16xf32>
}

// Depthwise convolution: a filter for each channel.
// CHECK-LABEL: gpu.func @depthwise(
// CHECK:         scf.for
// CHECK-COUNT-4: math.fma
// CHECK-NOT:     math.fma
// CHECK-COUNT-4: llvm.store
func.func @depthwise(%x: tensor<1x8x8x20xf32>, %w: tensor<20x3x3x1xf32>)
    -> tensor<1x8x8x20xf32> {
  %y = graph.fused <window> (%x, %w)
      : (tensor<1x8x8x20xf32>, tensor<20x3x3x1xf32>) -> tensor<1x8x8x20xf32> {
  ^bb0(%a: tensor<1x8x8x20xf32>, %b: tensor<20x3x3x1xf32>):
    %c = graph.conv %a, %b {filters = 20 : i64, groups = 20 : i64,
        window = array<i64: 3, 3>, strides = array<i64: 1, 1>,
        pad_low = array<i64: 1, 1>, pad_high = array<i64: 1, 1>,
        dilations = array<i64: 1, 1>, channels_last}
        : (tensor<1x8x8x20xf32>, tensor<20x3x3x1xf32>)
        -> tensor<1x8x8x20xf32>
    graph.yield %c : tensor<1x8x8x20xf32>
  }
  return %y : tensor<1x8x8x20xf32>
}
