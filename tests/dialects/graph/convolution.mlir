// RUN: tcc-opt %s --split-input-file --verify-diagnostics | FileCheck %s
// Windows give the extents; channels split evenly into groups.

// CHECK-LABEL: func @windows
func.func @windows(%x: tensor<1x4x8x8xf32>, %f: tensor<6x2x3x3xf32>) -> tensor<1x6x2x2xf32> {
  // CHECK: graph.conv {{.*}} -> tensor<1x6x4x4xf32>
  %0 = graph.conv %x, %f {filters = 6 : i64, groups = 2 : i64,
    window = array<i64: 3, 3>, strides = array<i64: 2, 2>,
    pad_low = array<i64: 1, 1>, pad_high = array<i64: 1, 1>,
    dilations = array<i64: 1, 1>}
    : (tensor<1x4x8x8xf32>, tensor<6x2x3x3xf32>) -> tensor<1x6x4x4xf32>
  // CHECK: graph.pool <max> {{.*}} -> tensor<1x6x2x2xf32>
  %1 = graph.pool <max> %0 {window = array<i64: 2, 2>,
    strides = array<i64: 2, 2>, pad_low = array<i64: 0, 0>,
    pad_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>,
    count_low = array<i64: 0, 0>, count_high = array<i64: 0, 0>}
    : (tensor<1x6x4x4xf32>) -> tensor<1x6x2x2xf32>
  return %1 : tensor<1x6x2x2xf32>
}

// CHECK-LABEL: func @channels_last
func.func @channels_last(%x: tensor<1x8x9x4xf32>, %f: tensor<6x3x3x2xf32>) -> tensor<1x2x2x6xf32> {
  // CHECK: graph.conv {{.*}} -> tensor<1x4x5x6xf32>
  %0 = graph.conv %x, %f {channels_last, filters = 6 : i64, groups = 2 : i64,
    window = array<i64: 3, 3>, strides = array<i64: 2, 2>,
    pad_low = array<i64: 1, 1>, pad_high = array<i64: 1, 1>,
    dilations = array<i64: 1, 1>}
    : (tensor<1x8x9x4xf32>, tensor<6x3x3x2xf32>) -> tensor<1x4x5x6xf32>
  // CHECK: graph.pool <max> {{.*}} -> tensor<1x2x2x6xf32>
  %1 = graph.pool <max> %0 {channels_last, window = array<i64: 2, 2>,
    strides = array<i64: 2, 2>, pad_low = array<i64: 0, 0>,
    pad_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>,
    count_low = array<i64: 0, 0>, count_high = array<i64: 0, 0>}
    : (tensor<1x4x5x6xf32>) -> tensor<1x2x2x6xf32>
  return %1 : tensor<1x2x2x6xf32>
}

// -----

func.func @packed_channels_first(%x: tensor<1x4x8xf32>, %f: tensor<1x1x12x16xf32>) {
  // expected-error@+1 {{a packed filter has the channels last}}
  %0 = graph.conv %x, %f {packed_filter, filters = 16 : i64, groups = 1 : i64,
    window = array<i64: 3>, strides = array<i64: 1>, pad_low = array<i64: 0>,
    pad_high = array<i64: 0>, dilations = array<i64: 1>}
    : (tensor<1x4x8xf32>, tensor<1x1x12x16xf32>) -> tensor<1x16x6xf32>
  return
}

// -----

func.func @groups(%x: tensor<1x3x8xf32>, %f: tensor<4x1x3xf32>) {
  // expected-error@+1 {{cannot split 3 channels and 4 filters into 2 groups}}
  %0 = graph.conv %x, %f {filters = 4 : i64, groups = 2 : i64,
    window = array<i64: 3>, strides = array<i64: 1>, pad_low = array<i64: 0>,
    pad_high = array<i64: 0>, dilations = array<i64: 1>}
    : (tensor<1x3x8xf32>, tensor<4x1x3xf32>) -> tensor<1x4x6xf32>
  return
}

// -----

// CHECK-LABEL: func @filter_gradient
// CHECK: graph.conv_filter_gradient {{.*}} -> tensor<6x3x2x4xf32>
func.func @filter_gradient(%x: tensor<2x9x5x4xf32>, %d: tensor<2x5x4x6xf32>) -> tensor<6x3x2x4xf32> {
  %0 = graph.conv_filter_gradient %x, %d {groups = 1 : i64,
    window = array<i64: 3, 2>, strides = array<i64: 2, 1>,
    pad_low = array<i64: 1, 0>, dilations = array<i64: 1, 1>}
    : (tensor<2x9x5x4xf32>, tensor<2x5x4x6xf32>) -> tensor<6x3x2x4xf32>
  return %0 : tensor<6x3x2x4xf32>
}

// -----

func.func @filter_gradient_batch(%x: tensor<2x9x4xf32>, %d: tensor<1x9x6xf32>) {
  // expected-error@+1 {{expected operands of one type and batch}}
  %0 = graph.conv_filter_gradient %x, %d {groups = 1 : i64,
    window = array<i64: 3>, strides = array<i64: 1>, pad_low = array<i64: 1>,
    dilations = array<i64: 1>}
    : (tensor<2x9x4xf32>, tensor<1x9x6xf32>) -> tensor<6x3x4xf32>
  return
}
