// RUN: tcc-opt %s --tcc-simplify | FileCheck %s
// CHECK-DAG: #[[MAP:.+]] = affine_map<() -> (0, 3, 0)>
// Moves meet other moves, or the products that take them in.

// A pointwise op with one tensor moves to what makes it, also with a scalar.
// CHECK-LABEL: func @pointwise_before_move
// CHECK-SAME:    (%[[X:.+]]: tensor<2x3x4xf32>, %[[S:.+]]: tensor<f32>
// CHECK-NEXT:    %[[B:.+]] = graph.broadcast %[[S]] {{.*}} -> tensor<2x3x4xf32>
// CHECK-NEXT:    %[[M:.+]] = graph.mul %[[X]], %[[B]]
// CHECK-NEXT:    %[[R:.+]] = graph.relu %[[M]]
// CHECK-NEXT:    %[[T:.+]] = graph.transpose %[[R]] [0, 2, 1]
// CHECK-NEXT:    %[[Y:.+]] = graph.reshape %[[T]]
// CHECK-NEXT:    return %[[Y]]
func.func @pointwise_before_move(%x: tensor<2x3x4xf32>, %s: tensor<f32>)
    -> tensor<8x3xf32> {
  %t = graph.transpose %x [0, 2, 1] : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
  %b = graph.broadcast %s : (tensor<f32>) -> tensor<2x4x3xf32>
  %m = graph.mul %t, %b
    : (tensor<2x4x3xf32>, tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
  %r = graph.reshape %m : (tensor<2x4x3xf32>) -> tensor<8x3xf32>
  %y = graph.relu %r : (tensor<8x3xf32>) -> tensor<8x3xf32>
  return %y : tensor<8x3xf32>
}

// What else reads the transposed tensor keeps it: nothing would be gained.
// CHECK-LABEL: func @shared_move_stays
// CHECK:         %[[T:.+]] = graph.transpose
// CHECK-NEXT:    graph.relu %[[T]]
func.func @shared_move_stays(%x: tensor<3x4xf32>)
    -> (tensor<4x3xf32>, tensor<4x3xf32>) {
  %t = graph.transpose %x [1, 0] : (tensor<3x4xf32>) -> tensor<4x3xf32>
  %y = graph.relu %t : (tensor<4x3xf32>) -> tensor<4x3xf32>
  return %t, %y : tensor<4x3xf32>, tensor<4x3xf32>
}

// Unit axes are placed before a transpose, so that two transposes meet.
// CHECK-LABEL: func @unit_axes_between_transposes
// CHECK-SAME:    (%[[X:.+]]: tensor<1x3x4x5xf32>
// CHECK-NEXT:    %[[T:.+]] = graph.transpose %[[X]] [0, 2, 3, 1]
// CHECK-NEXT:    return %[[T]]
func.func @unit_axes_between_transposes(%x: tensor<1x3x4x5xf32>)
    -> tensor<1x4x5x3xf32> {
  %0 = graph.transpose %x [0, 2, 1, 3]
    : (tensor<1x3x4x5xf32>) -> tensor<1x4x3x5xf32>
  %1 = graph.reshape %0 : (tensor<1x4x3x5xf32>) -> tensor<4x3x5xf32>
  %2 = graph.transpose %1 [0, 2, 1] : (tensor<4x3x5xf32>) -> tensor<4x5x3xf32>
  %3 = graph.reshape %2 : (tensor<4x5x3xf32>) -> tensor<1x4x5x3xf32>
  return %3 : tensor<1x4x5x3xf32>
}

// Splitting the axis of batch and heads comes first, so that the product takes
// the transpose in, whatever the batch.
// CHECK-LABEL: func @split_before_transpose
// CHECK-SAME:    (%[[Q:[^:]+]]: {{.*}}, %[[K:[^:]+]]:
// CHECK-NEXT:    graph.matmul %[[Q]], %[[K]] {transpose_rhs}
func.func @split_before_transpose(
    %q: tensor<?x12x8x4xf32, affine_map<()[s0] -> (s0, 12, 8, 4)>>,
    %k: tensor<?x12x8x4xf32, affine_map<()[s0] -> (s0, 12, 8, 4)>>)
    -> tensor<?x12x8x8xf32, affine_map<()[s0] -> (s0, 12, 8, 8)>> {
  %0 = graph.reshape %k
    : (tensor<?x12x8x4xf32, affine_map<()[s0] -> (s0, 12, 8, 4)>>)
    -> tensor<?x8x4xf32, affine_map<()[s0] -> (s0 * 12, 8, 4)>>
  %1 = graph.transpose %0 [0, 2, 1]
    : (tensor<?x8x4xf32, affine_map<()[s0] -> (s0 * 12, 8, 4)>>)
    -> tensor<?x4x8xf32, affine_map<()[s0] -> (s0 * 12, 4, 8)>>
  %2 = graph.reshape %1
    : (tensor<?x4x8xf32, affine_map<()[s0] -> (s0 * 12, 4, 8)>>)
    -> tensor<?x12x4x8xf32, affine_map<()[s0] -> (s0, 12, 4, 8)>>
  %y = graph.matmul %q, %2
    : (tensor<?x12x8x4xf32, affine_map<()[s0] -> (s0, 12, 8, 4)>>,
       tensor<?x12x4x8xf32, affine_map<()[s0] -> (s0, 12, 4, 8)>>)
    -> tensor<?x12x8x8xf32, affine_map<()[s0] -> (s0, 12, 8, 8)>>
  return %y : tensor<?x12x8x8xf32, affine_map<()[s0] -> (s0, 12, 8, 8)>>
}

// Axes that were adjacent before the transpose are joined there.
// CHECK-LABEL: func @join_before_transpose
// CHECK-NEXT:    %[[R:.+]] = graph.reshape {{.*}} -> tensor<2x3x20xf32>
// CHECK-NEXT:    graph.transpose %[[R]] [0, 2, 1]
func.func @join_before_transpose(%x: tensor<2x3x4x5xf32>)
    -> tensor<2x20x3xf32> {
  %t = graph.transpose %x [0, 2, 3, 1]
    : (tensor<2x3x4x5xf32>) -> tensor<2x4x5x3xf32>
  %y = graph.reshape %t : (tensor<2x4x5x3xf32>) -> tensor<2x20x3xf32>
  return %y : tensor<2x20x3xf32>
}

// Batch and rows lie apart before the transpose: it cannot come later.
// CHECK-LABEL: func @join_of_distant_axes_stays
// CHECK:         %[[T:.+]] = graph.transpose
// CHECK-NEXT:    graph.reshape %[[T]]
func.func @join_of_distant_axes_stays(%x: tensor<2x3x4x5xf32>)
    -> tensor<8x3x5xf32> {
  %t = graph.transpose %x [0, 2, 1, 3]
    : (tensor<2x3x4x5xf32>) -> tensor<2x4x3x5xf32>
  %y = graph.reshape %t : (tensor<2x4x3x5xf32>) -> tensor<8x3x5xf32>
  return %y : tensor<8x3x5xf32>
}

// A reshape comes before a slice that it does not tear apart.
// CHECK-LABEL: func @heads_of_a_part
// CHECK-NEXT:    %[[R:.+]] = graph.reshape %arg0 {{.*}} -> tensor<2x9x4xf32>
// CHECK-NEXT:    %[[S:.+]] = graph.slice %[[R]] {starts = #[[MAP]], steps = array<i64: 1, 1, 1>}
// CHECK-NEXT:    return %[[S]]
func.func @heads_of_a_part(%x: tensor<2x36xf32>) -> tensor<2x3x4xf32> {
  %s = graph.slice %x {starts = affine_map<() -> (0, 12)>, steps = array<i64: 1, 1>}
    : (tensor<2x36xf32>) -> tensor<2x12xf32>
  %y = graph.reshape %s : (tensor<2x12xf32>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// CHECK-LABEL: func @torn_slice_stays
// CHECK-NEXT:    graph.slice
// CHECK-NEXT:    graph.reshape
func.func @torn_slice_stays(%x: tensor<2x36xf32>) -> tensor<2x3x4xf32> {
  %s = graph.slice %x {starts = affine_map<() -> (0, 10)>, steps = array<i64: 1, 1>}
    : (tensor<2x36xf32>) -> tensor<2x12xf32>
  %y = graph.reshape %s : (tensor<2x12xf32>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}
