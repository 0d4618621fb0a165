// RUN: tcc-opt %s --split-input-file --verify-diagnostics
// Zero taps are of equal parts of the filters.

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
