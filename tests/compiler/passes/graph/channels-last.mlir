// RUN: tcc-opt %s --tcc-channels-last --tcc-simplify | FileCheck %s

// CHECK: #[[STARTS:.+]] = affine_map<() -> (0, 0, 2, 4)>

// The transposes between two convolutions meet and cancel, past a bias, an
// activation and a residual; one is left at each end.
// CHECK-LABEL: func @chain
// CHECK:         graph.transpose %{{.+}} [0, 2, 3, 1] : (tensor<1x8x5x5xf32>)
// CHECK:         graph.conv {{.*}}channels_last
// CHECK:         graph.broadcast {{.*}} -> tensor<1x5x5x8xf32>
// CHECK:         graph.relu
// CHECK-NOT:     graph.transpose {{.*}}5x5
// CHECK:         graph.conv {{.*}}channels_last
// CHECK:         graph.add
// CHECK:         %[[Y:.+]] = graph.transpose %{{.+}} [0, 3, 1, 2] : (tensor<1x5x5x8xf32>)
// CHECK:         return %[[Y]]
func.func @chain(%x: tensor<1x8x5x5xf32>, %b: tensor<8x1x1xf32>) -> tensor<1x8x5x5xf32> {
  %v = graph.weight "v" : tensor<8x8x3x3xf32>
  %w = graph.weight "w" : tensor<8x8x3x3xf32>
  %c = graph.conv %x, %v {filters = 8, groups = 1, window = array<i64: 3, 3>,
    strides = array<i64: 1, 1>, pad_low = array<i64: 1, 1>,
    pad_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>}
    : (tensor<1x8x5x5xf32>, tensor<8x8x3x3xf32>) -> tensor<1x8x5x5xf32>
  %s = graph.broadcast %b : (tensor<8x1x1xf32>) -> tensor<1x8x5x5xf32>
  %a = graph.add %c, %s : (tensor<1x8x5x5xf32>, tensor<1x8x5x5xf32>) -> tensor<1x8x5x5xf32>
  %r = graph.relu %a : (tensor<1x8x5x5xf32>) -> tensor<1x8x5x5xf32>
  %d = graph.conv %r, %w {filters = 8, groups = 1, window = array<i64: 3, 3>,
    strides = array<i64: 1, 1>, pad_low = array<i64: 1, 1>,
    pad_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>}
    : (tensor<1x8x5x5xf32>, tensor<8x8x3x3xf32>) -> tensor<1x8x5x5xf32>
  %y = graph.add %d, %c : (tensor<1x8x5x5xf32>, tensor<1x8x5x5xf32>) -> tensor<1x8x5x5xf32>
  return %y : tensor<1x8x5x5xf32>
}

// Ops that name axes follow: pad, slice, concat, pool, softmax, reduce.
// CHECK-LABEL: func @axes
// CHECK:         %[[C:.+]] = graph.conv {{.*}}channels_last
// CHECK:         %[[P:.+]] = graph.pad %[[C]], {{.*}} {high = array<i64: 0, 0, 1, 0>
// CHECK:         %[[S:.+]] = graph.slice %[[P]] {starts = #[[STARTS]]
// CHECK:         %[[K:.+]] = graph.concat %[[S]], %[[S]] {axis = 3
// CHECK:         %[[M:.+]] = graph.pool <max> %[[K]] {channels_last
// CHECK:         %[[X:.+]] = graph.softmax %[[M]] {axis = 3
// CHECK:         %[[R:.+]] = graph.reduce <sum> %[[X]] [1, 2]
// CHECK:         return %[[R]]
func.func @axes(%x: tensor<1x8x6x6xf32>) -> tensor<1x8xf32> {
  %w = graph.weight "w" : tensor<8x8x1x1xf32>
  %zero = graph.constant dense<0.0> : tensor<f32>
  %c = graph.conv %x, %w {filters = 8, groups = 1, window = array<i64: 1, 1>,
    strides = array<i64: 1, 1>, pad_low = array<i64: 0, 0>,
    pad_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>}
    : (tensor<1x8x6x6xf32>, tensor<8x8x1x1xf32>) -> tensor<1x8x6x6xf32>
  %p = graph.pad %c, %zero {low = array<i64: 0, 0, 0, 0>, high = array<i64: 0, 0, 0, 1>,
    interior = array<i64: 0, 0, 0, 0>} : (tensor<1x8x6x6xf32>, tensor<f32>) -> tensor<1x8x6x7xf32>
  %s = graph.slice %p {starts = affine_map<() -> (0, 4, 0, 2)>, steps = array<i64: 1, 1, 1, 1>}
    : (tensor<1x8x6x7xf32>) -> tensor<1x4x6x4xf32>
  %k = graph.concat %s, %s {axis = 1 : i64}
    : (tensor<1x4x6x4xf32>, tensor<1x4x6x4xf32>) -> tensor<1x8x6x4xf32>
  %m = graph.pool <max> %k {window = array<i64: 2, 2>,
    strides = array<i64: 2, 2>, pad_low = array<i64: 0, 0>,
    pad_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>,
    count_low = array<i64: 0, 0>, count_high = array<i64: 0, 0>}
    : (tensor<1x8x6x4xf32>) -> tensor<1x8x3x2xf32>
  %f = graph.softmax %m {axis = 1 : i64} : (tensor<1x8x3x2xf32>) -> tensor<1x8x3x2xf32>
  %r = graph.reduce <sum> %f [2, 3] : (tensor<1x8x3x2xf32>) -> tensor<1x8xf32>
  return %r : tensor<1x8xf32>
}

// Patches as tokens: the positions stay neighbours, and the model's transpose
// cancels.
// CHECK-LABEL: func @tokens
// CHECK:         %[[C:.+]] = graph.conv {{.*}} -> tensor<1x2x3x8xf32>
// CHECK:         %[[R:.+]] = graph.reshape %[[C]] {{.*}} -> tensor<1x6x8xf32>
// CHECK:         return %[[R]]
func.func @tokens(%x: tensor<1x8x2x3xf32>) -> tensor<1x6x8xf32> {
  %w = graph.weight "w" : tensor<8x8x1x1xf32>
  %c = graph.conv %x, %w {filters = 8, groups = 1, window = array<i64: 1, 1>,
    strides = array<i64: 1, 1>, pad_low = array<i64: 0, 0>,
    pad_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>}
    : (tensor<1x8x2x3xf32>, tensor<8x8x1x1xf32>) -> tensor<1x8x2x3xf32>
  %r = graph.reshape %c : (tensor<1x8x2x3xf32>) -> tensor<1x8x6xf32>
  %t = graph.transpose %r [0, 2, 1] : (tensor<1x8x6xf32>) -> tensor<1x6x8xf32>
  return %t : tensor<1x6x8xf32>
}

// Channels become pixels (pixel shuffle): they are moved once, and stay last.
// CHECK-LABEL: func @shuffled_pixels
// CHECK:         %[[C:.+]] = graph.conv {{.*}} -> tensor<1x2x3x8xf32>
// CHECK:         %[[Y:.+]] = graph.relu %[[C]]
// CHECK:         %[[S:.+]] = graph.reshape %[[Y]] {{.*}} -> tensor<1x2x3x2x2x2xf32>
// CHECK:         %[[T:.+]] = graph.transpose %[[S]] [0, 1, 4, 2, 5, 3]
// CHECK:         %[[R:.+]] = graph.reshape %[[T]] {{.*}} -> tensor<1x4x6x2xf32>
// CHECK:         graph.transpose %[[R]] [0, 3, 1, 2]
func.func @shuffled_pixels(%x: tensor<1x8x2x3xf32>) -> tensor<1x2x4x6xf32> {
  %w = graph.weight "w" : tensor<8x8x1x1xf32>
  %c = graph.conv %x, %w {filters = 8, groups = 1, window = array<i64: 1, 1>,
    strides = array<i64: 1, 1>, pad_low = array<i64: 0, 0>,
    pad_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>}
    : (tensor<1x8x2x3xf32>, tensor<8x8x1x1xf32>) -> tensor<1x8x2x3xf32>
  %s = graph.reshape %c : (tensor<1x8x2x3xf32>) -> tensor<1x2x2x2x2x3xf32>
  %t = graph.transpose %s [0, 1, 4, 2, 5, 3]
    : (tensor<1x2x2x2x2x3xf32>) -> tensor<1x2x2x2x3x2xf32>
  %r = graph.reshape %t : (tensor<1x2x2x2x3x2xf32>) -> tensor<1x2x4x6xf32>
  %y = graph.relu %r : (tensor<1x2x4x6xf32>) -> tensor<1x2x4x6xf32>
  return %y : tensor<1x2x4x6xf32>
}
