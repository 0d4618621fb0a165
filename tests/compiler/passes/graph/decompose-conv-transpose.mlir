// RUN: tcc-opt %s --tcc-decompose --canonicalize | FileCheck %s

// A transposed convolution with strides is a convolution that has the phases of
// the result as filters, of as many taps as a phase has.

#in = affine_map<()[s0] -> (1, 8, s0)>
#out = affine_map<()[s0] -> (1, 5, s0 * 2)>
module attributes {graph.symbols = [#graph.symbol<"n", 4 to 64 by 1>]} {

// Each element of x makes a block of its own: nothing is zero.
// CHECK-LABEL: func @blocks
// CHECK-NOT:     interior = array<i64: 0, 0, 1
// CHECK:         graph.conv {{.*}}filters = 20 {{.*}}window = array<i64: 1, 1>}
// CHECK:         return {{.*}} tensor<1x5x6x8xf32>
func.func @blocks(%x: tensor<1x6x3x4xf32>, %w: tensor<6x5x2x2xf32>) -> tensor<1x5x6x8xf32> {
  %y = graph.conv_transpose %x, %w {groups = 1 : i64, window = array<i64: 2, 2>,
    strides = array<i64: 2, 2>, pad_low = array<i64: 0, 0>,
    pad_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>}
    : (tensor<1x6x3x4xf32>, tensor<6x5x2x2xf32>) -> tensor<1x5x6x8xf32>
  return %y : tensor<1x5x6x8xf32>
}

// Of a window of 4 by strides of 2 each phase has two taps where it begins with a
// window; the element before the result is cut off. Sizes do not matter.
// CHECK-LABEL: func @symbolic
// CHECK:         graph.conv {{.*}}filters = 10 {{.*}}pad_high = array<i64: 1>, pad_low = array<i64: 1>, {{.*}}window = array<i64: 2>}
// CHECK:         graph.slice {{.*}} -> tensor<1x?x5xf32
// CHECK:         return {{.*}} tensor<1x5x?xf32
func.func @symbolic(%x: tensor<1x8x?xf32, #in>, %w: tensor<8x5x4xf32>) -> tensor<1x5x?xf32, #out> {
  %y = graph.conv_transpose %x, %w {groups = 1 : i64, window = array<i64: 4>,
    strides = array<i64: 2>, pad_low = array<i64: 1>, pad_high = array<i64: 1>,
    dilations = array<i64: 1>}
    : (tensor<1x8x?xf32, #in>, tensor<8x5x4xf32>) -> tensor<1x5x?xf32, #out>
  return %y : tensor<1x5x?xf32, #out>
}

// Groups have their phases by themselves.
// CHECK-LABEL: func @grouped
// CHECK:         graph.conv {{.*}}filters = 18 {{.*}}groups = 3 {{.*}}window = array<i64: 2>}
func.func @grouped(%x: tensor<1x3x4xf32>, %w: tensor<3x3x3xf32>) -> tensor<1x9x9xf32> {
  %y = graph.conv_transpose %x, %w {groups = 3 : i64, window = array<i64: 3>,
    strides = array<i64: 2>, pad_low = array<i64: 0>, pad_high = array<i64: 0>,
    dilations = array<i64: 1>}
    : (tensor<1x3x4xf32>, tensor<3x3x3xf32>) -> tensor<1x9x9xf32>
  return %y : tensor<1x9x9xf32>
}

// Narrow ones slide over x with the channels last, past the zeros between its elements.
// CHECK-LABEL: func @narrow
// CHECK:         %[[X:.+]] = graph.transpose %arg0 [0, 2, 1]
// CHECK:         graph.conv %[[X]], {{.*}}channels_last, {{.*}}input_dilations = array<i64: 2>, pad_high = array<i64: 2>, pad_low = array<i64: 1>, {{.*}}window = array<i64: 3>}
func.func @narrow(%x: tensor<1x4x4xf32>, %w: tensor<4x2x3xf32>) -> tensor<1x8x8xf32> {
  %y = graph.conv_transpose %x, %w {groups = 4 : i64, window = array<i64: 3>,
    strides = array<i64: 2>, pad_low = array<i64: 1>, pad_high = array<i64: 0>,
    dilations = array<i64: 1>}
    : (tensor<1x4x4xf32>, tensor<4x2x3xf32>) -> tensor<1x8x8xf32>
  return %y : tensor<1x8x8xf32>
}

// Dilated windows meet x with zeros between its elements.
// CHECK-LABEL: func @dilated
// CHECK:         graph.pad {{.*}}interior = array<i64: 0, 0, 1>
// CHECK:         graph.conv {{.*}}dilations = array<i64: 2>{{.*}}strides = array<i64: 1>, window = array<i64: 3>}
func.func @dilated(%x: tensor<1x3x4xf32>, %w: tensor<3x2x3xf32>) -> tensor<1x2x11xf32> {
  %y = graph.conv_transpose %x, %w {groups = 1 : i64, window = array<i64: 3>,
    strides = array<i64: 2>, pad_low = array<i64: 0>, pad_high = array<i64: 0>,
    dilations = array<i64: 2>}
    : (tensor<1x3x4xf32>, tensor<3x2x3xf32>) -> tensor<1x2x11xf32>
  return %y : tensor<1x2x11xf32>
}

// No more than there is can be cut off x: the rest shortens the other border.
// CHECK-LABEL: func @cut
// CHECK:         graph.pad {{.*}} -> tensor<1x3x0xf32>
// CHECK:         graph.conv {{.*}}pad_high = array<i64: 7>, pad_low = array<i64: 0>
func.func @cut(%x: tensor<1x3x1xf32>, %w: tensor<3x2x2xf32>) -> tensor<1x2x2xf32> {
  %y = graph.conv_transpose %x, %w {groups = 1 : i64, window = array<i64: 2>,
    strides = array<i64: 1>, pad_low = array<i64: 8>, pad_high = array<i64: -4>,
    dilations = array<i64: 5>}
    : (tensor<1x3x1xf32>, tensor<3x2x2xf32>) -> tensor<1x2x2xf32>
  return %y : tensor<1x2x2xf32>
}

// Elements of a window of one lie apart, or beside pads that are cut off.
// CHECK-LABEL: func @pixels
// CHECK:         graph.conv
// CHECK:         graph.pad {{.*}}high = array<i64: 0, 0, -1>, interior = array<i64: 0, 0, 1>, low = array<i64: 0, 0, -1>
func.func @pixels(%x: tensor<1x3x3xf32>, %w: tensor<3x2x1xf32>) -> tensor<1x2x3xf32> {
  %y = graph.conv_transpose %x, %w {groups = 1 : i64, window = array<i64: 1>,
    strides = array<i64: 2>, pad_low = array<i64: 1>, pad_high = array<i64: 1>,
    dilations = array<i64: 1>}
    : (tensor<1x3x3xf32>, tensor<3x2x1xf32>) -> tensor<1x2x3xf32>
  return %y : tensor<1x2x3xf32>
}

// So many phases that the result does not reach are none.
// CHECK-LABEL: func @far_apart
// CHECK-NOT:     zero_taps
// CHECK:         return
func.func @far_apart(%x: tensor<1x1x1xf32>, %w: tensor<1x1x2xf32>) -> tensor<1x1x2xf32> {
  %y = graph.conv_transpose %x, %w {groups = 1 : i64, window = array<i64: 2>,
    strides = array<i64: 65536>, pad_low = array<i64: 0>, pad_high = array<i64: 0>,
    dilations = array<i64: 1>}
    : (tensor<1x1x1xf32>, tensor<1x1x2xf32>) -> tensor<1x1x2xf32>
  return %y : tensor<1x1x2xf32>
}
}
