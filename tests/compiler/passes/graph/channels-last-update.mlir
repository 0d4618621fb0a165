// RUN: tcc-opt %s --tcc-channels-last --canonicalize --cse | FileCheck %s

// What a weight is updated by is transposed, not the weight: it is stored in
// its order.

// CHECK-LABEL: func @update
// CHECK-SAME:  (%[[G:[^:]*]]: tensor<8x3x3x16xf32>, %[[W:[^:]*]]: tensor<8x16x3x3xf32>
// CHECK:       %[[T:.*]] = graph.transpose %{{.*}} [0, 3, 1, 2] : (tensor<8x3x3x16xf32>)
// CHECK:       %[[D:.*]] = graph.mul %[[W]], %{{.*}} : (tensor<8x16x3x3xf32>
// CHECK:       %[[S:.*]] = graph.add %[[T]], %[[D]] : (tensor<8x16x3x3xf32>
// CHECK:       %[[N:.*]] = graph.sub %[[W]], %[[S]] : (tensor<8x16x3x3xf32>
// CHECK:       return %{{.*}}, %[[N]]
func.func @update(%g: tensor<8x3x3x16xf32>, %w: tensor<8x16x3x3xf32>,
                  %decay: tensor<f32>, %x: tensor<1x16x9x9xf32>)
    -> (tensor<1x8x7x7xf32>, tensor<8x16x3x3xf32>) {
  %y = graph.conv %x, %w {filters = 8 : i64, groups = 1 : i64, window = array<i64: 3, 3>, strides = array<i64: 1, 1>, pad_low = array<i64: 0, 0>, pad_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x16x9x9xf32>, tensor<8x16x3x3xf32>) -> tensor<1x8x7x7xf32>
  %0 = graph.neg %g : (tensor<8x3x3x16xf32>) -> tensor<8x3x3x16xf32>
  %1 = graph.transpose %0 [0, 3, 1, 2] : (tensor<8x3x3x16xf32>) -> tensor<8x16x3x3xf32>
  %2 = graph.broadcast %decay : (tensor<f32>) -> tensor<8x16x3x3xf32>
  %3 = graph.mul %w, %2 : (tensor<8x16x3x3xf32>, tensor<8x16x3x3xf32>) -> tensor<8x16x3x3xf32>
  %4 = graph.add %1, %3 : (tensor<8x16x3x3xf32>, tensor<8x16x3x3xf32>) -> tensor<8x16x3x3xf32>
  %5 = graph.sub %w, %4 : (tensor<8x16x3x3xf32>, tensor<8x16x3x3xf32>) -> tensor<8x16x3x3xf32>
  return %y, %5 : tensor<1x8x7x7xf32>, tensor<8x16x3x3xf32>
}
