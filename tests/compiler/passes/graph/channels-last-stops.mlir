// RUN: tcc-opt %s --tcc-channels-last --tcc-simplify | FileCheck %s

// Channels and positions are merged: here the channels come back to the front.
// CHECK-LABEL: func @flattened
// CHECK:         %[[C:.+]] = graph.conv {{.*}}channels_last
// CHECK:         %[[T:.+]] = graph.transpose %[[C]] [0, 3, 1, 2]
// CHECK:         graph.reshape %[[T]] {{.*}} -> tensor<1x48xf32>
func.func @flattened(%x: tensor<1x8x2x3xf32>) -> tensor<1x48xf32> {
  %w = graph.weight "w" : tensor<8x8x1x1xf32>
  %c = graph.conv %x, %w {filters = 8, groups = 1, window = array<i64: 1, 1>,
    strides = array<i64: 1, 1>, pad_low = array<i64: 0, 0>,
    pad_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>}
    : (tensor<1x8x2x3xf32>, tensor<8x8x1x1xf32>) -> tensor<1x8x2x3xf32>
  %r = graph.reshape %c : (tensor<1x8x2x3xf32>) -> tensor<1x48xf32>
  return %r : tensor<1x48xf32>
}

// A choice between a convolution and a tensor with the channels first, by another:
// two transposes would take the place of one.
// CHECK-LABEL: func @costs_more
// CHECK:         graph.conv {{.*}}channels_last
// CHECK-NEXT:    %[[T:.+]] = graph.transpose {{.*}} [0, 3, 1, 2]
// CHECK-NEXT:    graph.select %{{.+}}, %[[T]], %{{.+}} : {{.*}} -> tensor<1x8x2x3xf32>
func.func @costs_more(%x: tensor<1x8x2x3xf32>, %p: tensor<1x8x2x3xi1>) -> tensor<1x8x2x3xf32> {
  %w = graph.weight "w" : tensor<8x8x1x1xf32>
  %c = graph.conv %x, %w {filters = 8, groups = 1, window = array<i64: 1, 1>,
    strides = array<i64: 1, 1>, pad_low = array<i64: 0, 0>,
    pad_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>}
    : (tensor<1x8x2x3xf32>, tensor<8x8x1x1xf32>) -> tensor<1x8x2x3xf32>
  %s = graph.select %p, %c, %x
    : (tensor<1x8x2x3xi1>, tensor<1x8x2x3xf32>, tensor<1x8x2x3xf32>) -> tensor<1x8x2x3xf32>
  return %s : tensor<1x8x2x3xf32>
}

// CHECK-LABEL: func @narrow_depthwise_stays
// CHECK-NOT:     channels_last
func.func @narrow_depthwise_stays(%x: tensor<1x4x16xf32>) -> tensor<1x4x16xf32> {
  %w = graph.weight "w" : tensor<4x1x3xf32>
  %c = graph.conv %x, %w {filters = 4, groups = 4, window = array<i64: 3>,
    strides = array<i64: 1>, pad_low = array<i64: 1>, pad_high = array<i64: 1>,
    dilations = array<i64: 1>}
    : (tensor<1x4x16xf32>, tensor<4x1x3xf32>) -> tensor<1x4x16xf32>
  return %c : tensor<1x4x16xf32>
}

// CHECK-LABEL: func @many_filters_of_a_channel_stay
// CHECK-NOT:     channels_last
func.func @many_filters_of_a_channel_stay(%x: tensor<1x2x16xf32>) -> tensor<1x32x16xf32> {
  %w = graph.weight "w" : tensor<32x1x3xf32>
  %c = graph.conv %x, %w {filters = 32, groups = 2, window = array<i64: 3>,
    strides = array<i64: 1>, pad_low = array<i64: 1>, pad_high = array<i64: 1>,
    dilations = array<i64: 1>}
    : (tensor<1x2x16xf32>, tensor<32x1x3xf32>) -> tensor<1x32x16xf32>
  return %c : tensor<1x32x16xf32>
}

// One channel for all filters is a product.
// CHECK-LABEL: func @one_channel
// CHECK:         graph.conv {{.*}}channels_last
func.func @one_channel(%x: tensor<1x1x16xf32>) -> tensor<1x8x16xf32> {
  %w = graph.weight "w" : tensor<8x1x3xf32>
  %c = graph.conv %x, %w {filters = 8, groups = 1, window = array<i64: 3>,
    strides = array<i64: 1>, pad_low = array<i64: 1>, pad_high = array<i64: 1>,
    dilations = array<i64: 1>}
    : (tensor<1x1x16xf32>, tensor<8x1x3xf32>) -> tensor<1x8x16xf32>
  return %c : tensor<1x8x16xf32>
}

// A filter that is computed takes another order in each run, unless it is larger than x.
// CHECK-LABEL: func @computed_filter
// CHECK:         graph.conv {{.*}}channels_last
// CHECK-LABEL: func @large_computed_filter
// CHECK-NOT:     channels_last
func.func @computed_filter(%x: tensor<1x8x16xf32>, %w: tensor<8x1x3xf32>) -> tensor<1x8x16xf32> {
  %c = graph.conv %x, %w {filters = 8, groups = 8, window = array<i64: 3>,
    strides = array<i64: 1>, pad_low = array<i64: 1>, pad_high = array<i64: 1>,
    dilations = array<i64: 1>}
    : (tensor<1x8x16xf32>, tensor<8x1x3xf32>) -> tensor<1x8x16xf32>
  return %c : tensor<1x8x16xf32>
}
func.func @large_computed_filter(%x: tensor<1x8x2xf32>, %w: tensor<8x1x3xf32>) -> tensor<1x8x2xf32> {
  %c = graph.conv %x, %w {filters = 8, groups = 8, window = array<i64: 3>,
    strides = array<i64: 1>, pad_low = array<i64: 1>, pad_high = array<i64: 1>,
    dilations = array<i64: 1>}
    : (tensor<1x8x2xf32>, tensor<8x1x3xf32>) -> tensor<1x8x2xf32>
  return %c : tensor<1x8x2xf32>
}
