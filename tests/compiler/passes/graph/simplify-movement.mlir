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

// Indices that are the same throughout a slice move slices.
// CHECK-LABEL: func @gather_slices
// CHECK-SAME:  (%[[X:.*]]: tensor<2x9x5xf32>, %[[I:.*]]: tensor<2x4x1xi64>)
// CHECK:       %[[Y:.*]] = graph.gather_nd %[[X]], %[[I]] {batch_dims = 1 : i64}
// CHECK:       return %[[Y]]
func.func @gather_slices(%x: tensor<2x9x5xf32>, %i: tensor<2x4x1xi64>) -> tensor<2x4x5xf32> {
  %0 = graph.broadcast %i : (tensor<2x4x1xi64>) -> tensor<2x4x5xi64>
  %1 = graph.gather_elements %x, %0 {axis = 1 : i64}
    : (tensor<2x9x5xf32>, tensor<2x4x5xi64>) -> tensor<2x4x5xf32>
  return %1 : tensor<2x4x5xf32>
}

// Outer axes have an index of their own; one list of indices may serve all of them.
// CHECK-LABEL: func @scatter_slices
// CHECK-SAME:  (%[[X:.*]]: tensor<2x9x5xf32>, %[[I:.*]]: tensor<4x1xi64>, %[[U:.*]]: tensor<2x4x5xf32>)
// CHECK-DAG:   %[[BATCH:.*]] = graph.constant dense<{{\[\[\[0\], \[0\], \[0\], \[0\]\], \[\[1\],}}
// CHECK-DAG:   %[[LIST:.*]] = graph.reshape %[[I]] : (tensor<4x1xi64>) -> tensor<1x4xi64>
// CHECK-DAG:   %[[ALL:.*]] = graph.broadcast %[[LIST]] : (tensor<1x4xi64>) -> tensor<2x4xi64>
// CHECK-DAG:   %[[ONES:.*]] = graph.reshape %[[ALL]]
// CHECK:       %[[TUPLES:.*]] = graph.concat %[[BATCH]], %[[ONES]] {axis = 2 : i64}
// CHECK:       graph.scatter_nd %[[X]], %[[TUPLES]], %[[U]] {kind = #graph.scatter_kind<add>}
func.func @scatter_slices(%x: tensor<2x9x5xf32>, %i: tensor<4x1xi64>, %u: tensor<2x4x5xf32>) -> tensor<2x9x5xf32> {
  %0 = graph.broadcast %i : (tensor<4x1xi64>) -> tensor<2x4x5xi64>
  %1 = graph.scatter_elements %x, %0, %u {axis = 1 : i64, kind = #graph.scatter_kind<add>}
    : (tensor<2x9x5xf32>, tensor<2x4x5xi64>, tensor<2x4x5xf32>) -> tensor<2x9x5xf32>
  return %1 : tensor<2x9x5xf32>
}

// Neither a part of a slice nor indices that differ within one.
// CHECK-LABEL: func @keep_elements
// CHECK:       graph.gather_elements
// CHECK:       graph.gather_elements
// CHECK:       graph.gather_elements
func.func @keep_elements(%x: tensor<2x9x5xf32>, %i: tensor<2x4x1xi64>, %j: tensor<1x4x1xi64>, %k: tensor<2x1x5xi64>)
    -> (tensor<2x4x3xf32>, tensor<1x4x5xf32>, tensor<2x4x5xf32>) {
  %0 = graph.broadcast %i : (tensor<2x4x1xi64>) -> tensor<2x4x3xi64>
  %1 = graph.gather_elements %x, %0 {axis = 1 : i64}
    : (tensor<2x9x5xf32>, tensor<2x4x3xi64>) -> tensor<2x4x3xf32>
  %2 = graph.broadcast %j : (tensor<1x4x1xi64>) -> tensor<1x4x5xi64>
  %3 = graph.gather_elements %x, %2 {axis = 1 : i64}
    : (tensor<2x9x5xf32>, tensor<1x4x5xi64>) -> tensor<1x4x5xf32>
  %4 = graph.broadcast %k : (tensor<2x1x5xi64>) -> tensor<2x4x5xi64>
  %5 = graph.gather_elements %x, %4 {axis = 1 : i64}
    : (tensor<2x9x5xf32>, tensor<2x4x5xi64>) -> tensor<2x4x5xf32>
  return %1, %3, %5 : tensor<2x4x3xf32>, tensor<1x4x5xf32>, tensor<2x4x5xf32>
}
