// RUN: tcc-opt %s --tcc-channels-last --tcc-simplify | FileCheck %s

// A group norm between convolutions: its rows are reduced where they lie, and its
// scale, one a channel, is repeated along the channels.
// CHECK-LABEL: func @group_norm
// CHECK:         graph.conv {{.*}}channels_last
// CHECK-NOT:     graph.transpose
// CHECK:         graph.reshape %{{.+}} : (tensor<1x5x5x8xf32>) -> tensor<1x25x2x4xf32>
// CHECK:         graph.reduce <sum> %{{.+}} [1, 3] : (tensor<1x25x2x4xf32>) -> tensor<1x2xf32>
// CHECK:         graph.rsqrt %{{.+}} : (tensor<1x2xf32>)
// CHECK-NOT:     graph.transpose
// CHECK:         graph.reshape %{{.+}} : (tensor<1x25x2x4xf32>) -> tensor<1x5x5x8xf32>
// CHECK:         graph.mul {{.*}}tensor<1x5x5x8xf32>
// CHECK-NOT:     graph.transpose
// CHECK:         graph.conv {{.*}}channels_last
// CHECK:         graph.transpose
func.func @group_norm(%x: tensor<1x8x5x5xf32>, %s: tensor<8x1x1xf32>) -> tensor<1x8x5x5xf32> {
  %v = graph.weight "v" : tensor<8x8x3x3xf32>
  %c = graph.conv %x, %v {filters = 8, groups = 1, window = array<i64: 3, 3>,
    strides = array<i64: 1, 1>, pad_low = array<i64: 1, 1>,
    pad_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>}
    : (tensor<1x8x5x5xf32>, tensor<8x8x3x3xf32>) -> tensor<1x8x5x5xf32>
  %g = graph.reshape %c : (tensor<1x8x5x5xf32>) -> tensor<1x2x4x25xf32>
  %n = graph.layer_norm %g {axis = 2 : i64, epsilon = 1.0e-5 : f64}
    : tensor<1x2x4x25xf32> -> tensor<1x2x4x25xf32>
  %r = graph.reshape %n : (tensor<1x2x4x25xf32>) -> tensor<1x8x5x5xf32>
  %b = graph.broadcast %s : (tensor<8x1x1xf32>) -> tensor<1x8x5x5xf32>
  %m = graph.mul %r, %b : (tensor<1x8x5x5xf32>, tensor<1x8x5x5xf32>) -> tensor<1x8x5x5xf32>
  %d = graph.conv %m, %v {filters = 8, groups = 1, window = array<i64: 3, 3>,
    strides = array<i64: 1, 1>, pad_low = array<i64: 1, 1>,
    pad_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>}
    : (tensor<1x8x5x5xf32>, tensor<8x8x3x3xf32>) -> tensor<1x8x5x5xf32>
  return %d : tensor<1x8x5x5xf32>
}

// An instance norm with a scale and shift of the space.
// CHECK-LABEL: func @instance_norm
// CHECK:         graph.conv {{.*}}channels_last
// CHECK:         graph.reduce <sum> %{{.+}} [1, 2] : (tensor<1x5x5x8xf32>) -> tensor<1x8xf32>
// CHECK:         graph.broadcast {{.*}}(tensor<1x5x5x1xf32>) -> tensor<1x5x5x8xf32>
// CHECK:         graph.broadcast {{.*}}(tensor<1x5x5x1xf32>) -> tensor<1x5x5x8xf32>
// CHECK:         graph.transpose {{.*}} : (tensor<1x5x5x8xf32>)
func.func @instance_norm(%x: tensor<1x8x5x5xf32>, %s: tensor<5x5xf32>, %b: tensor<5x5xf32>) -> tensor<1x8x5x5xf32> {
  %v = graph.weight "v" : tensor<8x8x3x3xf32>
  %c = graph.conv %x, %v {filters = 8, groups = 1, window = array<i64: 3, 3>,
    strides = array<i64: 1, 1>, pad_low = array<i64: 1, 1>,
    pad_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>}
    : (tensor<1x8x5x5xf32>, tensor<8x8x3x3xf32>) -> tensor<1x8x5x5xf32>
  %n = graph.layer_norm %c scale %s : tensor<5x5xf32> shift %b : tensor<5x5xf32>
    {axis = 2 : i64, epsilon = 1.0e-5 : f64} : tensor<1x8x5x5xf32> -> tensor<1x8x5x5xf32>
  return %n : tensor<1x8x5x5xf32>
}

// A scale that a convolution makes has another rank than what is normalised: the
// norm stays as it is.
// CHECK-LABEL: func @made_scale
// CHECK:         graph.conv {{.*}}channels_last
// CHECK:         %[[S:.+]] = graph.transpose
// CHECK:         graph.layer_norm %{{.+}} scale %[[S]]
func.func @made_scale(%x: tensor<2x8x8x5xf32>, %y: tensor<8x8x5xf32>) -> tensor<2x8x8x5xf32> {
  %v = graph.weight "v" : tensor<8x8x3xf32>
  %s = graph.conv %y, %v {filters = 8, groups = 1, window = array<i64: 3>,
    strides = array<i64: 1>, pad_low = array<i64: 1>, pad_high = array<i64: 1>,
    dilations = array<i64: 1>} : (tensor<8x8x5xf32>, tensor<8x8x3xf32>) -> tensor<8x8x5xf32>
  %n = graph.layer_norm %x scale %s : tensor<8x8x5xf32>
    {axis = 1 : i64, epsilon = 1.0e-5 : f64} : tensor<2x8x8x5xf32> -> tensor<2x8x8x5xf32>
  return %n : tensor<2x8x8x5xf32>
}
