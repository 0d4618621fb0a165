// RUN: tcc-opt %s --split-input-file --verify-diagnostics
// Zero taps are of equal parts of the filters; x is dilated where a window slides.

func.func @parts(%x: tensor<1x4x9xf32>, %f: tensor<6x4x3xf32>) {
  // expected-error@+1 {{expected zero taps of equal parts of the filters of one group, with a bit for each tap}}
  %0 = graph.conv %x, %f {filters = 6 : i64, groups = 1 : i64, window = array<i64: 3>, strides = array<i64: 1>, pad_low = array<i64: 0>, pad_high = array<i64: 0>, dilations = array<i64: 1>, zero_taps = array<i64: 0, 1, 0, 1>} : (tensor<1x4x9xf32>, tensor<6x4x3xf32>) -> tensor<1x6x7xf32>
  return
}

// -----

func.func @taps(%x: tensor<1x4x9xf32>, %f: tensor<6x4x3xf32>) {
  // expected-error@+1 {{expected zero taps of equal parts of the filters of one group, with a bit for each tap}}
  %0 = graph.conv %x, %f {filters = 6 : i64, groups = 1 : i64, window = array<i64: 3>, strides = array<i64: 1>, pad_low = array<i64: 0>, pad_high = array<i64: 0>, dilations = array<i64: 1>, zero_taps = array<i64: 8, 1>} : (tensor<1x4x9xf32>, tensor<6x4x3xf32>) -> tensor<1x6x7xf32>
  return
}

// -----

func.func @dilated_product(%x: tensor<1x9x4xf32>, %f: tensor<6x3x4xf32>) {
  // expected-error@+1 {{expected input dilations of a conv that slides with the channels last, without strides}}
  %0 = graph.conv %x, %f {channels_last, filters = 6 : i64, groups = 1 : i64, window = array<i64: 3>, strides = array<i64: 1>, pad_low = array<i64: 0>, pad_high = array<i64: 0>, dilations = array<i64: 1>, input_dilations = array<i64: 2>} : (tensor<1x9x4xf32>, tensor<6x3x4xf32>) -> tensor<1x15x6xf32>
  return
}

// -----

func.func @dilated_strided(%x: tensor<1x9x4xf32>, %f: tensor<4x3x1xf32>) {
  // expected-error@+1 {{expected input dilations of a conv that slides with the channels last, without strides}}
  %0 = graph.conv %x, %f {channels_last, filters = 4 : i64, groups = 4 : i64, window = array<i64: 3>, strides = array<i64: 2>, pad_low = array<i64: 0>, pad_high = array<i64: 0>, dilations = array<i64: 1>, input_dilations = array<i64: 2>} : (tensor<1x9x4xf32>, tensor<4x3x1xf32>) -> tensor<1x8x4xf32>
  return
}

// -----

func.func @dilations_of_all_axes(%x: tensor<1x9x4xf32>, %f: tensor<4x3x1xf32>) {
  // expected-error@+2 {{expected an input dilation for each axis of the window}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = graph.conv %x, %f {channels_last, filters = 4 : i64, groups = 4 : i64, window = array<i64: 3>, strides = array<i64: 1>, pad_low = array<i64: 0>, pad_high = array<i64: 0>, dilations = array<i64: 1>, input_dilations = array<i64>} : (tensor<1x9x4xf32>, tensor<4x3x1xf32>) -> tensor<1x7x4xf32>
  return
}
