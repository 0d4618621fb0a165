// RUN: tcc-opt %s --tcc-simplify | FileCheck %s
// Moves pass axes of extent 1.

// An axis of which the slice takes one index is dropped behind it.
// CHECK-LABEL: func @heads_of_an_index
// CHECK-NEXT:    %[[R:.+]] = graph.reshape %arg0 {{.*}} -> tensor<3x7x3x4xf32>
// CHECK-NEXT:    %[[S:.+]] = graph.slice %[[R]] {{.*}} -> tensor<1x7x3x4xf32>
// CHECK-NEXT:    %[[Y:.+]] = graph.reshape %[[S]] {{.*}} -> tensor<7x1x3x4xf32>
// CHECK-NEXT:    return %[[Y]]
func.func @heads_of_an_index(%x: tensor<3x7x1x12xf32>) -> tensor<7x1x3x4xf32> {
  %s = graph.slice %x {starts = affine_map<() -> (2, 0, 0, 0)>, steps = array<i64: 1, 1, 1, 1>}
    : (tensor<3x7x1x12xf32>) -> tensor<1x7x1x12xf32>
  %y = graph.reshape %s : (tensor<1x7x1x12xf32>) -> tensor<7x1x3x4xf32>
  return %y : tensor<7x1x3x4xf32>
}

// A reshape that only drops the axis stays behind the slice.
// CHECK-LABEL: func @index_alone
// CHECK-NEXT:    %[[S:.+]] = graph.slice %arg0
// CHECK-NEXT:    graph.reshape %[[S]] {{.*}} -> tensor<7x12xf32>
func.func @index_alone(%x: tensor<3x7x12xf32>) -> tensor<7x12xf32> {
  %s = graph.slice %x {starts = affine_map<() -> (2, 0, 0)>, steps = array<i64: 1, 1, 1>}
    : (tensor<3x7x12xf32>) -> tensor<1x7x12xf32>
  %y = graph.reshape %s : (tensor<1x7x12xf32>) -> tensor<7x12xf32>
  return %y : tensor<7x12xf32>
}

// A transpose takes in a reshape that only moves an axis of extent 1.
// CHECK-LABEL: func @transpose_of_moved_unit
// CHECK-NEXT:    %[[T:.+]] = graph.transpose %arg0 [0, 2, 1, 3]
// CHECK-NEXT:    return %[[T]]
func.func @transpose_of_moved_unit(%x: tensor<1x7x3x4xf32>) -> tensor<1x3x7x4xf32> {
  %y = graph.reshape %x : (tensor<1x7x3x4xf32>) -> tensor<7x1x3x4xf32>
  %t = graph.transpose %y [1, 2, 0, 3]
    : (tensor<7x1x3x4xf32>) -> tensor<1x3x7x4xf32>
  return %t : tensor<1x3x7x4xf32>
}
