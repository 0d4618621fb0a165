// RUN: tcc-opt %s --tcc-simplify | FileCheck %s
// A reduction of all axes reads tensors in the order that they lie in.

// CHECK-LABEL: func @all_axes
// CHECK:         %[[S:.+]] = graph.mul %arg0, %arg0
// CHECK:         graph.reduce <sum> %[[S]] {{.*}} -> tensor<f32>
func.func @all_axes(%x: tensor<4x5x6xf32>) -> (tensor<f32>, tensor<6x4x5xf32>) {
  %0 = graph.transpose %x [2, 0, 1] : (tensor<4x5x6xf32>) -> tensor<6x4x5xf32>
  %1 = graph.mul %0, %0 : (tensor<6x4x5xf32>, tensor<6x4x5xf32>) -> tensor<6x4x5xf32>
  %2 = graph.reduce <sum> %1 [0, 1, 2] : (tensor<6x4x5xf32>) -> tensor<f32>
  return %2, %0 : tensor<f32>, tensor<6x4x5xf32>
}

// CHECK-LABEL: func @one_axis
// CHECK:         graph.transpose
// CHECK:         graph.reduce
func.func @one_axis(%x: tensor<4x5x6xf32>) -> (tensor<4x5xf32>, tensor<6x4x5xf32>) {
  %0 = graph.transpose %x [2, 0, 1] : (tensor<4x5x6xf32>) -> tensor<6x4x5xf32>
  %1 = graph.mul %0, %0 : (tensor<6x4x5xf32>, tensor<6x4x5xf32>) -> tensor<6x4x5xf32>
  %2 = graph.reduce <sum> %1 [0] : (tensor<6x4x5xf32>) -> tensor<4x5xf32>
  return %2, %0 : tensor<4x5xf32>, tensor<6x4x5xf32>
}

// CHECK-LABEL: func @another_order
// CHECK:         graph.transpose
// CHECK:         graph.reduce
func.func @another_order(%x: tensor<4x5x6xf32>, %y: tensor<6x4x5xf32>) -> tensor<f32> {
  %0 = graph.transpose %x [2, 0, 1] : (tensor<4x5x6xf32>) -> tensor<6x4x5xf32>
  %1 = graph.mul %0, %y : (tensor<6x4x5xf32>, tensor<6x4x5xf32>) -> tensor<6x4x5xf32>
  %2 = graph.reduce <sum> %1 [0, 1, 2] : (tensor<6x4x5xf32>) -> tensor<f32>
  return %2 : tensor<f32>
}
