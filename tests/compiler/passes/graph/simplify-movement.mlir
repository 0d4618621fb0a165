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
