// RUN: tcc-opt %s --tcc-pack-weights | FileCheck %s
// The filter of narrow groups has its vectors' order whatever makes it.

// CHECK-LABEL: func @computed_filter
// CHECK:         %[[F:.+]] = graph.reshape %arg1 : (tensor<8x3x1xf32>) -> tensor<8x3xf32>
// CHECK:         %[[P:.+]] = graph.transpose %[[F]] [1, 0]
// CHECK:         graph.conv %arg0, %[[P]] {{.*}}packed_filter
func.func @computed_filter(%x: tensor<1x16x8xf32>, %w: tensor<8x3x1xf32>) -> tensor<1x16x8xf32> {
  %c = graph.conv %x, %w {channels_last, filters = 8, groups = 8,
    window = array<i64: 3>, strides = array<i64: 1>, pad_low = array<i64: 1>,
    pad_high = array<i64: 1>, dilations = array<i64: 1>}
    : (tensor<1x16x8xf32>, tensor<8x3x1xf32>) -> tensor<1x16x8xf32>
  return %c : tensor<1x16x8xf32>
}
