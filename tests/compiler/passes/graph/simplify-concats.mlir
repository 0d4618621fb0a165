// RUN: tcc-opt %s --tcc-simplify | FileCheck %s

// The gradients of three slices of one tensor, in any order, lie side by side;
// other terms stay.
// CHECK-LABEL: func @segments_of_a_sum
// CHECK-SAME:    (%[[X:.+]]: tensor<4x2x8xf32>, %[[Y:.+]]: tensor<4x3x8xf32>,
// CHECK-SAME:     %[[Z:.+]]: tensor<4x2x8xf32>, %[[W:.+]]: tensor<4x7x8xf32>
// CHECK-DAG:     %[[C:.+]] = graph.concat %[[X]], %[[Y]], %[[Z]] {axis = 1
// CHECK:         %[[S:.+]] = graph.add %[[C]], %[[W]]
// CHECK-NEXT:    return %[[S]]
func.func @segments_of_a_sum(%x: tensor<4x2x8xf32>, %y: tensor<4x3x8xf32>,
    %z: tensor<4x2x8xf32>, %w: tensor<4x7x8xf32>) -> tensor<4x7x8xf32> {
  %c0 = graph.constant dense<0.0> : tensor<f32>
  %a = graph.pad %z, %c0 {low = array<i64: 0, 5, 0>,
    high = array<i64: 0, 0, 0>, interior = array<i64: 0, 0, 0>}
    : (tensor<4x2x8xf32>, tensor<f32>) -> tensor<4x7x8xf32>
  %b = graph.pad %x, %c0 {low = array<i64: 0, 0, 0>,
    high = array<i64: 0, 5, 0>, interior = array<i64: 0, 0, 0>}
    : (tensor<4x2x8xf32>, tensor<f32>) -> tensor<4x7x8xf32>
  %c = graph.pad %y, %c0 {low = array<i64: 0, 2, 0>,
    high = array<i64: 0, 2, 0>, interior = array<i64: 0, 0, 0>}
    : (tensor<4x3x8xf32>, tensor<f32>) -> tensor<4x7x8xf32>
  %s = graph.add %a, %b
    : (tensor<4x7x8xf32>, tensor<4x7x8xf32>) -> tensor<4x7x8xf32>
  %t = graph.add %s, %w
    : (tensor<4x7x8xf32>, tensor<4x7x8xf32>) -> tensor<4x7x8xf32>
  %u = graph.add %t, %c
    : (tensor<4x7x8xf32>, tensor<4x7x8xf32>) -> tensor<4x7x8xf32>
  return %u : tensor<4x7x8xf32>
}

// They overlap, or are not surrounded by zeros.
// CHECK-LABEL: func @no_segments
// CHECK-NOT:     graph.concat
func.func @no_segments(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<8xf32> {
  %c0 = graph.constant dense<0.0> : tensor<f32>
  %c1 = graph.constant dense<1.0> : tensor<f32>
  %a = graph.pad %x, %c0 {low = array<i64: 3>, high = array<i64: 1>,
    interior = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<8xf32>
  %b = graph.pad %y, %c0 {low = array<i64: 0>, high = array<i64: 4>,
    interior = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<8xf32>
  %c = graph.pad %x, %c1 {low = array<i64: 4>, high = array<i64: 0>,
    interior = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<8xf32>
  %s = graph.add %a, %b
    : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %t = graph.add %s, %c
    : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %t : tensor<8xf32>
}

// CHECK-LABEL: func @reshape_before_concat
// CHECK-DAG:     %[[X:.+]] = graph.reshape %{{.+}} -> tensor<6x16xf32>
// CHECK-DAG:     %[[Y:.+]] = graph.reshape %{{.+}} -> tensor<6x8xf32>
// CHECK:         graph.concat %[[X]], %[[Y]] {axis = 1
// CHECK-SAME:      -> tensor<6x24xf32>
func.func @reshape_before_concat(%x: tensor<2x3x2x8xf32>,
    %y: tensor<2x3x1x8xf32>) -> tensor<6x24xf32> {
  %c = graph.concat %x, %y {axis = 2}
    : (tensor<2x3x2x8xf32>, tensor<2x3x1x8xf32>) -> tensor<2x3x3x8xf32>
  %r = graph.reshape %c : (tensor<2x3x3x8xf32>) -> tensor<6x24xf32>
  return %r : tensor<6x24xf32>
}

// An element of the new axis would hold parts of both.
// CHECK-LABEL: func @reshape_tears
// CHECK:         graph.concat
// CHECK-NEXT:    graph.reshape
func.func @reshape_tears(%x: tensor<3x4xf32>, %y: tensor<5x4xf32>)
    -> tensor<4x8xf32> {
  %c = graph.concat %x, %y {axis = 0}
    : (tensor<3x4xf32>, tensor<5x4xf32>) -> tensor<8x4xf32>
  %r = graph.reshape %c : (tensor<8x4xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// All of a tensor, in its order, is that tensor.
// CHECK-LABEL: func @concat_of_slices
// CHECK-SAME:    %[[X:.+]]: tensor<3x8xf32>
// CHECK:         %[[O:.+]] = graph.concat
// CHECK:         return %[[X]], %[[O]]
func.func @concat_of_slices(%x: tensor<3x8xf32>)
    -> (tensor<3x8xf32>, tensor<3x8xf32>) {
  %a = graph.slice %x {starts = affine_map<() -> (0, 0)>, steps = array<i64: 1, 1>}
    : (tensor<3x8xf32>) -> tensor<3x5xf32>
  %b = graph.slice %x {starts = affine_map<() -> (0, 5)>, steps = array<i64: 1, 1>}
    : (tensor<3x8xf32>) -> tensor<3x3xf32>
  %0 = graph.concat %a, %b {axis = 1}
    : (tensor<3x5xf32>, tensor<3x3xf32>) -> tensor<3x8xf32>
  %1 = graph.concat %b, %a {axis = 1}
    : (tensor<3x3xf32>, tensor<3x5xf32>) -> tensor<3x8xf32>
  return %0, %1 : tensor<3x8xf32>, tensor<3x8xf32>
}

// So it is where parts are seen in another shape, unless that tears rows apart.
// CHECK-LABEL: func @concat_of_reshaped_slices
// CHECK:         %[[Y:.+]] = graph.reshape %arg0 : (tensor<2x4x3xf32>) -> tensor<2x12xf32>
// CHECK:         %[[O:.+]] = graph.concat
// CHECK:         return %[[Y]], %[[O]]
func.func @concat_of_reshaped_slices(%x: tensor<2x4x3xf32>) -> (tensor<2x12xf32>, tensor<24xf32>) {
  %a = graph.slice %x {starts = affine_map<() -> (0, 0, 0)>, steps = array<i64: 1, 1, 1>}
    : (tensor<2x4x3xf32>) -> tensor<2x1x3xf32>
  %b = graph.slice %x {starts = affine_map<() -> (0, 1, 0)>, steps = array<i64: 1, 1, 1>}
    : (tensor<2x4x3xf32>) -> tensor<2x3x3xf32>
  %p = graph.reshape %a : (tensor<2x1x3xf32>) -> tensor<2x3xf32>
  %q = graph.reshape %b : (tensor<2x3x3xf32>) -> tensor<2x9xf32>
  %0 = graph.concat %p, %q {axis = 1} : (tensor<2x3xf32>, tensor<2x9xf32>) -> tensor<2x12xf32>
  %r = graph.reshape %a : (tensor<2x1x3xf32>) -> tensor<6xf32>
  %s = graph.reshape %b : (tensor<2x3x3xf32>) -> tensor<18xf32>
  %1 = graph.concat %r, %s {axis = 0} : (tensor<6xf32>, tensor<18xf32>) -> tensor<24xf32>
  return %0, %1 : tensor<2x12xf32>, tensor<24xf32>
}
