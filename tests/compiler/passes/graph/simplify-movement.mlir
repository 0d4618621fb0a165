// RUN: tcc-opt %s --tcc-simplify | FileCheck %s

// Transposes cancel across a pointwise op and the bias between them.
// CHECK-LABEL: func @transposes_cancel
// CHECK-NOT:     graph.transpose
// CHECK:         graph.add
func.func @transposes_cancel(%x: tensor<1x8x4x4xf32>, %b: tensor<8xf32>)
    -> tensor<1x8x4x4xf32> {
  %t = graph.transpose %x [0, 2, 3, 1]
    : (tensor<1x8x4x4xf32>) -> tensor<1x4x4x8xf32>
  %c = graph.broadcast %b : (tensor<8xf32>) -> tensor<1x4x4x8xf32>
  %s = graph.add %t, %c : (tensor<1x4x4x8xf32>, tensor<1x4x4x8xf32>)
    -> tensor<1x4x4x8xf32>
  %y = graph.transpose %s [0, 3, 1, 2]
    : (tensor<1x4x4x8xf32>) -> tensor<1x8x4x4xf32>
  return %y : tensor<1x8x4x4xf32>
}

// The other operand would need a transpose of its own.
// CHECK-LABEL: func @transpose_stays
// CHECK-COUNT-2: graph.transpose
func.func @transpose_stays(%x: tensor<4x8xf32>, %z: tensor<8x4xf32>)
    -> tensor<4x8xf32> {
  %t = graph.transpose %x [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %s = graph.add %t, %z : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %y = graph.transpose %s [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// The last step of a key's transpose is a flag of the product.
// CHECK-LABEL: func @matmul_takes_transpose
// CHECK:         graph.transpose %{{.*}} [0, 2, 1, 3]
// CHECK:         graph.matmul %{{.*}} {transpose_rhs}
func.func @matmul_takes_transpose(%q: tensor<1x2x8x4xf32>,
    %k: tensor<1x8x2x4xf32>) -> tensor<1x2x8x8xf32> {
  %t = graph.transpose %k [0, 2, 3, 1]
    : (tensor<1x8x2x4xf32>) -> tensor<1x2x4x8xf32>
  %y = graph.matmul %q, %t : (tensor<1x2x8x4xf32>, tensor<1x2x4x8xf32>)
    -> tensor<1x2x8x8xf32>
  return %y : tensor<1x2x8x8xf32>
}

// CHECK-LABEL: func @unit_axes
// CHECK-NEXT:    graph.reshape %{{.*}} -> tensor<8x1x1xf32>
// CHECK-NEXT:    return
func.func @unit_axes(%x: tensor<1x8x1xf32>) -> tensor<8x1x1xf32> {
  %t = graph.transpose %x [1, 0, 2] : (tensor<1x8x1xf32>) -> tensor<8x1x1xf32>
  return %t : tensor<8x1x1xf32>
}

// CHECK-LABEL: func @slice_of_concat
// CHECK-SAME:    (%[[X:.+]]: tensor<4xf32>, %[[Y:.+]]: tensor<4xf32>
// CHECK:         return %[[Y]]
func.func @slice_of_concat(%x: tensor<4xf32>, %y: tensor<4xf32>)
    -> tensor<4xf32> {
  %c = graph.concat %x, %y {axis = 0}
    : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %s = graph.slice %c {starts = affine_map<() -> (4)>, steps = array<i64: 1>}
    : (tensor<8xf32>) -> tensor<4xf32>
  return %s : tensor<4xf32>
}

// CHECK-LABEL: func @gather_of_one
// CHECK:         graph.slice %{{.*}} -> tensor<2x1x8xf32>
// CHECK-NOT:     graph.gather
func.func @gather_of_one(%x: tensor<2x4x8xf32>) -> tensor<2x8xf32> {
  %i = graph.constant dense<-1> : tensor<i64>
  %y = graph.gather %x, %i {axis = 1}
    : (tensor<2x4x8xf32>, tensor<i64>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

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
