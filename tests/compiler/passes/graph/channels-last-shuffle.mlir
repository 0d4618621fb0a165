// RUN: tcc-opt %s --tcc-channels-last | FileCheck %s

// A transpose of the model's behind a convolution is one with the transpose back, which
// its readers take over: half of the shuffled channels are a slice of the innermost axes.
// CHECK-LABEL: func @shuffled_channels
// CHECK-SAME:    %[[M:[a-z0-9]+]]: tensor<1x2x3x4xi1>
// CHECK:         %[[C:.+]] = graph.conv {{.*}} -> tensor<1x2x3x8xf32>
// CHECK:         %[[R:.+]] = graph.reshape %[[C]] {{.*}} -> tensor<1x2x3x4x2xf32>
// CHECK:         %[[S:.+]] = graph.slice %[[R]] {{.*}} -> tensor<1x2x3x4x1xf32>
// CHECK:         %[[H:.+]] = graph.reshape %[[S]] {{.*}} -> tensor<1x2x3x4xf32>
// CHECK:         %[[Y:.+]] = graph.select %[[M]], {{.*}}, %[[H]]
// CHECK:         %[[T:.+]] = graph.transpose %[[Y]] [0, 3, 1, 2]
// CHECK:         return %[[T]]
func.func @shuffled_channels(%x: tensor<1x8x2x3xf32>, %m: tensor<1x2x3x4xi1>) -> tensor<1x4x2x3xf32> {
  %w = graph.weight "w" : tensor<8x8x1x1xf32>
  %zero = graph.constant dense<0.0> : tensor<f32>
  %c = graph.conv %x, %w {filters = 8, groups = 1, window = array<i64: 1, 1>,
    strides = array<i64: 1, 1>, pad_low = array<i64: 0, 0>,
    pad_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>}
    : (tensor<1x8x2x3xf32>, tensor<8x8x1x1xf32>) -> tensor<1x8x2x3xf32>
  %r = graph.reshape %c : (tensor<1x8x2x3xf32>) -> tensor<1x4x2x2x3xf32>
  %t = graph.transpose %r [0, 2, 1, 3, 4] : (tensor<1x4x2x2x3xf32>) -> tensor<1x2x4x2x3xf32>
  %s = graph.slice %t {starts = affine_map<() -> (0, 1, 0, 0, 0)>, steps = array<i64: 1, 1, 1, 1, 1>}
    : (tensor<1x2x4x2x3xf32>) -> tensor<1x1x4x2x3xf32>
  %h = graph.reshape %s : (tensor<1x1x4x2x3xf32>) -> tensor<1x4x2x3xf32>
  %k = graph.transpose %m [0, 3, 1, 2] : (tensor<1x2x3x4xi1>) -> tensor<1x4x2x3xi1>
  %z = graph.broadcast %zero : (tensor<f32>) -> tensor<1x4x2x3xf32>
  %y = graph.select %k, %z, %h : (tensor<1x4x2x3xi1>, tensor<1x4x2x3xf32>, tensor<1x4x2x3xf32>) -> tensor<1x4x2x3xf32>
  return %y : tensor<1x4x2x3xf32>
}

// Transposes that cancel leave nothing.
// CHECK-LABEL: func @pixels
// CHECK:         %[[C:.+]] = graph.conv {{.*}} -> tensor<1x2x3x8xf32>
// CHECK:         %[[R:.+]] = graph.reshape %[[C]] {{.*}} -> tensor<1x6x8xf32>
// CHECK-NEXT:    return %[[R]]
func.func @pixels(%x: tensor<1x8x2x3xf32>) -> tensor<1x6x8xf32> {
  %w = graph.weight "w" : tensor<8x8x1x1xf32>
  %c = graph.conv %x, %w {filters = 8, groups = 1, window = array<i64: 1, 1>,
    strides = array<i64: 1, 1>, pad_low = array<i64: 0, 0>,
    pad_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>}
    : (tensor<1x8x2x3xf32>, tensor<8x8x1x1xf32>) -> tensor<1x8x2x3xf32>
  %r = graph.reshape %c : (tensor<1x8x2x3xf32>) -> tensor<1x8x6xf32>
  %t = graph.transpose %r [0, 2, 1] : (tensor<1x8x6xf32>) -> tensor<1x6x8xf32>
  return %t : tensor<1x6x8xf32>
}
