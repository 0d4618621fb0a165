// RUN: tcc-opt %s --split-input-file --verify-diagnostics | FileCheck %s
// The result has what the windows of all positions of x cover, but for pads.

// CHECK-LABEL: func @transposed
// CHECK: graph.conv_transpose {{.*}} -> tensor<2x6x20x9xf32>
func.func @transposed(%x: tensor<2x4x10x4xf32>, %w: tensor<4x3x4x3xf32>) -> tensor<2x6x20x9xf32> {
  %0 = graph.conv_transpose %x, %w {groups = 2 : i64, window = array<i64: 4, 3>,
    strides = array<i64: 2, 2>, pad_low = array<i64: 1, 1>,
    pad_high = array<i64: 1, -1>, dilations = array<i64: 1, 1>}
    : (tensor<2x4x10x4xf32>, tensor<4x3x4x3xf32>) -> tensor<2x6x20x9xf32>
  return %0 : tensor<2x6x20x9xf32>
}

// -----

func.func @transposed_filter(%x: tensor<2x4x10xf32>, %w: tensor<3x4x4xf32>) {
  // expected-error@+2 {{expected a filter of the channels of x and of the window}}
  // expected-error@+1 {{'graph.conv_transpose' op failed to infer returned types}}
  %0 = graph.conv_transpose %x, %w {groups = 1 : i64, window = array<i64: 4>,
    strides = array<i64: 2>, pad_low = array<i64: 1>, pad_high = array<i64: 1>,
    dilations = array<i64: 1>}
    : (tensor<2x4x10xf32>, tensor<3x4x4xf32>) -> tensor<2x4x20xf32>
  return
}

// -----

func.func @transposed_groups(%x: tensor<2x4x10xf32>, %w: tensor<4x4x4xf32>) {
  // expected-error@+2 {{cannot split 4 channels into 3 groups}}
  // expected-error@+1 {{'graph.conv_transpose' op failed to infer returned types}}
  %0 = graph.conv_transpose %x, %w {groups = 3 : i64, window = array<i64: 4>,
    strides = array<i64: 2>, pad_low = array<i64: 1>, pad_high = array<i64: 1>,
    dilations = array<i64: 1>}
    : (tensor<2x4x10xf32>, tensor<4x4x4xf32>) -> tensor<2x12x20xf32>
  return
}

// -----

func.func @transposed_pads(%x: tensor<2x4x1xf32>, %w: tensor<4x4x3xf32>) {
  // expected-error@+2 {{pads take more than there is of axis 2}}
  // expected-error@+1 {{'graph.conv_transpose' op failed to infer returned types}}
  %0 = graph.conv_transpose %x, %w {groups = 1 : i64, window = array<i64: 3>,
    strides = array<i64: 2>, pad_low = array<i64: 2>, pad_high = array<i64: 2>,
    dilations = array<i64: 1>}
    : (tensor<2x4x1xf32>, tensor<4x4x3xf32>) -> tensor<2x4x1xf32>
  return
}
