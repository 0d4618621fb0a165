// RUN: tcc-opt %s --tcc-simplify --split-input-file | FileCheck %s

// Dilated by 12 over 10 x 40 elements: of three taps down only the one in the middle meets
// elements, across all do.
// CHECK-LABEL: @pyramid
// CHECK:       %[[F:.+]] = graph.slice %arg1 {{.*}} -> tensor<5x4x1x3xf32>
// CHECK:       graph.conv %arg0, %[[F]] {{.*}}pad_high = array<i64: 0, 12>, pad_low = array<i64: 0, 12>
// CHECK-SAME:  window = array<i64: 1, 3>
// CHECK-SAME:  -> tensor<2x5x10x40xf32>
func.func @pyramid(%x: tensor<2x4x10x40xf32>, %f: tensor<5x4x3x3xf32>) -> tensor<2x5x10x40xf32> {
  %y = graph.conv %x, %f {filters = 5 : i64, groups = 1 : i64, window = array<i64: 3, 3>,
    strides = array<i64: 1, 1>, pad_low = array<i64: 12, 12>, pad_high = array<i64: 12, 12>,
    dilations = array<i64: 12, 12>} : (tensor<2x4x10x40xf32>, tensor<5x4x3x3xf32>) -> tensor<2x5x10x40xf32>
  return %y : tensor<2x5x10x40xf32>
}

// -----

// The first of four taps meets none, whatever the position.
// CHECK-LABEL: @first
// CHECK:       graph.slice %arg1 {{.*}} -> tensor<2x1x3xf32>
// CHECK:       graph.conv {{.*}}pad_high = array<i64: 3>, pad_low = array<i64: 4>
// CHECK-SAME:  window = array<i64: 3>
func.func @first(%x: tensor<1x1x4xf32>, %f: tensor<2x1x4xf32>) -> tensor<1x2x5xf32> {
  %y = graph.conv %x, %f {filters = 2 : i64, groups = 1 : i64, window = array<i64: 4>,
    strides = array<i64: 1>, pad_low = array<i64: 7>, pad_high = array<i64: 3>,
    dilations = array<i64: 3>} : (tensor<1x1x4xf32>, tensor<2x1x4xf32>) -> tensor<1x2x5xf32>
  return %y : tensor<1x2x5xf32>
}

// -----

// Sizes that are not known, and taps that all meet an element.
// CHECK-LABEL: @left
// CHECK-NOT:   graph.slice
#x = affine_map<()[s0] -> (1, 1, s0)>
module attributes {graph.symbols = [#graph.symbol<"n", 1 to 4 by 1>]} {
func.func @left(%x: tensor<1x1x?xf32, #x>, %z: tensor<1x1x9xf32>, %f: tensor<2x1x3xf32>)
    -> (tensor<1x2x?xf32, affine_map<()[s0] -> (1, 2, s0)>>, tensor<1x2x9xf32>) {
  %y = graph.conv %x, %f {filters = 2 : i64, groups = 1 : i64, window = array<i64: 3>,
    strides = array<i64: 1>, pad_low = array<i64: 8>, pad_high = array<i64: 8>,
    dilations = array<i64: 8>} : (tensor<1x1x?xf32, #x>, tensor<2x1x3xf32>)
    -> tensor<1x2x?xf32, affine_map<()[s0] -> (1, 2, s0)>>
  %w = graph.conv %z, %f {filters = 2 : i64, groups = 1 : i64, window = array<i64: 3>,
    strides = array<i64: 1>, pad_low = array<i64: 8>, pad_high = array<i64: 8>,
    dilations = array<i64: 8>} : (tensor<1x1x9xf32>, tensor<2x1x3xf32>) -> tensor<1x2x9xf32>
  return %y, %w : tensor<1x2x?xf32, affine_map<()[s0] -> (1, 2, s0)>>, tensor<1x2x9xf32>
}
}

// -----

// CHECK-LABEL: @elements
// CHECK-NEXT:  %[[P:.+]] = graph.pool <max>
// CHECK-NEXT:  return %arg0, %[[P]]
func.func @elements(%x: tensor<1x4x6x6xf32>) -> (tensor<1x4x6x6xf32>, tensor<1x4x3x3xf32>) {
  %y = graph.pool <average> %x {window = array<i64: 1, 1>, strides = array<i64: 1, 1>,
    pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>,
    count_low = array<i64: 0, 0>, count_high = array<i64: 0, 0>, count_padding}
    : (tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  %z = graph.pool <max> %x {window = array<i64: 1, 1>, strides = array<i64: 2, 2>,
    pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>,
    count_low = array<i64: 0, 0>, count_high = array<i64: 0, 0>}
    : (tensor<1x4x6x6xf32>) -> tensor<1x4x3x3xf32>
  return %y, %z : tensor<1x4x6x6xf32>, tensor<1x4x3x3xf32>
}
