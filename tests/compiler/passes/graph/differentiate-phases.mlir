// RUN: tcc-opt %s '--tcc-differentiate=of=y wrt=x' --tcc-decompose --canonicalize --cse | FileCheck %s

// The gradient with respect to the data of a convolution is a transposed one; of
// one with strides it has the phases of x as channels. Of a window of 3 one phase of an axis has two taps,
// the other one: the filters of that phase are zero at a tap.

// CHECK-LABEL: func.func @main
// CHECK:       graph.conv {{.*}}filters = 8 {{.*}}window = array<i64: 2, 2>, zero_taps = array<i64: 14, 12, 10, 0>
func.func @main(%x: tensor<1x2x8x8xf32> {graph.name = "x"}, %w: tensor<3x2x3x3xf32>)
    -> (tensor<f32> {graph.name = "y"}) {
  %0 = graph.conv %x, %w {filters = 3 : i64, groups = 1 : i64, window = array<i64: 3, 3>, strides = array<i64: 2, 2>, pad_low = array<i64: 1, 1>, pad_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>}
    : (tensor<1x2x8x8xf32>, tensor<3x2x3x3xf32>) -> tensor<1x3x4x4xf32>
  %1 = graph.reduce <sum> %0 [0, 1, 2, 3] : (tensor<1x3x4x4xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}
