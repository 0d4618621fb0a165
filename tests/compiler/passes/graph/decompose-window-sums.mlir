// RUN: tcc-opt %s --split-input-file --tcc-decompose | FileCheck %s
// The gradient of a filter of narrow groups has a kernel where the target does.

// CHECK-LABEL: func @host
// CHECK:         graph.conv_filter_gradient
func.func @host(%x: tensor<2x9x4xf32>, %d: tensor<2x9x4xf32>) -> tensor<4x3x1xf32> {
  %y = graph.conv_filter_gradient %x, %d {groups = 4 : i64, window = array<i64: 3>,
    strides = array<i64: 1>, pad_low = array<i64: 1>, dilations = array<i64: 1>}
    : (tensor<2x9x4xf32>, tensor<2x9x4xf32>) -> tensor<4x3x1xf32>
  return %y : tensor<4x3x1xf32>
}

// -----

module attributes {graph.target = "cuda"} {
  // CHECK-LABEL: func @device
  // CHECK-NOT:     graph.conv_filter_gradient
  func.func @device(%x: tensor<2x9x4xf32>, %d: tensor<2x9x4xf32>) -> tensor<4x3x1xf32> {
    %y = graph.conv_filter_gradient %x, %d {groups = 4 : i64, window = array<i64: 3>,
      strides = array<i64: 1>, pad_low = array<i64: 1>, dilations = array<i64: 1>}
      : (tensor<2x9x4xf32>, tensor<2x9x4xf32>) -> tensor<4x3x1xf32>
    return %y : tensor<4x3x1xf32>
  }
}
