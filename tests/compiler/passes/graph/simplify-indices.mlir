// RUN: tcc-opt %s --tcc-simplify | FileCheck %s

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

// Tuples of one index choose slices of the first axis.
// CHECK-LABEL: func @gather_first_axis
// CHECK-SAME:  (%[[X:.*]]: tensor<9x5xf32>, %[[I:.*]]: tensor<4x1xi64>)
// CHECK:       %[[LIST:.*]] = graph.reshape %[[I]] : (tensor<4x1xi64>) -> tensor<4xi64>
// CHECK:       graph.gather %[[X]], %[[LIST]] {axis = 0 : i64} : {{.*}} -> tensor<4x5xf32>
func.func @gather_first_axis(%x: tensor<9x5xf32>, %i: tensor<4x1xi64>) -> tensor<4x5xf32> {
  %0 = graph.gather_nd %x, %i {batch_dims = 0 : i64} : (tensor<9x5xf32>, tensor<4x1xi64>) -> tensor<4x5xf32>
  return %0 : tensor<4x5xf32>
}

// Nor are extents that are the same but written in another way, as types are told apart.
// CHECK-LABEL: func @keep_symbolic
// CHECK:       graph.scatter_elements
func.func @keep_symbolic(%x: tensor<9x?xf32, affine_map<()[s0, s1] -> (9, s0 * s1 + s0)>>, %i: tensor<4x1xi64>,
                         %u: tensor<4x?xf32, affine_map<()[s0, s1] -> (4, s0 * (s1 + 1))>>)
    -> tensor<9x?xf32, affine_map<()[s0, s1] -> (9, s0 * s1 + s0)>> {
  %0 = graph.broadcast %i : (tensor<4x1xi64>) -> tensor<4x?xi64, affine_map<()[s0, s1] -> (4, s0 * (s1 + 1))>>
  %1 = graph.scatter_elements %x, %0, %u {axis = 0 : i64, kind = #graph.scatter_kind<add>}
    : (tensor<9x?xf32, affine_map<()[s0, s1] -> (9, s0 * s1 + s0)>>, tensor<4x?xi64, affine_map<()[s0, s1] -> (4, s0 * (s1 + 1))>>,
       tensor<4x?xf32, affine_map<()[s0, s1] -> (4, s0 * (s1 + 1))>>)
    -> tensor<9x?xf32, affine_map<()[s0, s1] -> (9, s0 * s1 + s0)>>
  return %1 : tensor<9x?xf32, affine_map<()[s0, s1] -> (9, s0 * s1 + s0)>>
}

// Constant indices in a progression are a slice, other ones and those out of range are none.
// CHECK-LABEL: func @gather_progression
// CHECK-SAME:  (%[[X:.*]]: tensor<2x9xf32>)
// CHECK:       %[[A:.*]] = graph.slice %[[X]] {starts = #map{{.*}}, steps = array<i64: 1, -2>} : (tensor<2x9xf32>) -> tensor<2x4xf32>
// CHECK:       %[[B:.*]] = graph.reshape %[[A]] : (tensor<2x4xf32>) -> tensor<2x2x2xf32>
// CHECK:       %[[C:.*]] = graph.gather %[[X]]
// CHECK:       %[[D:.*]] = graph.gather %[[X]]
// CHECK:       %[[E:.*]] = graph.gather %[[X]]
// CHECK:       return %[[B]], %[[C]], %[[D]], %[[E]], %[[X]]
func.func @gather_progression(%x: tensor<2x9xf32>)
    -> (tensor<2x2x2xf32>, tensor<2x3xf32>, tensor<2x2xf32>, tensor<2x3xf32>, tensor<2x9xf32>) {
  %i = graph.constant dense<[[-1, 6], [4, 2]]> : tensor<2x2xi64>
  %0 = graph.gather %x, %i {axis = 1 : i64} : (tensor<2x9xf32>, tensor<2x2xi64>) -> tensor<2x2x2xf32>
  %j = graph.constant dense<[0, 1, 3]> : tensor<3xi64>
  %1 = graph.gather %x, %j {axis = 1 : i64} : (tensor<2x9xf32>, tensor<3xi64>) -> tensor<2x3xf32>
  %k = graph.constant dense<[3, 3]> : tensor<2xi64>
  %2 = graph.gather %x, %k {axis = 1 : i64} : (tensor<2x9xf32>, tensor<2xi64>) -> tensor<2x2xf32>
  %l = graph.constant dense<[7, 8, 9]> : tensor<3xi64>
  %3 = graph.gather %x, %l {axis = 1 : i64} : (tensor<2x9xf32>, tensor<3xi64>) -> tensor<2x3xf32>
  %m = graph.constant dense<[0, 1]> : tensor<2xi32>
  %4 = graph.gather %x, %m {axis = 0 : i64} : (tensor<2x9xf32>, tensor<2xi32>) -> tensor<2x9xf32>
  return %0, %1, %2, %3, %4 : tensor<2x2x2xf32>, tensor<2x3xf32>, tensor<2x2xf32>, tensor<2x3xf32>, tensor<2x9xf32>
}

// Rows of a weight may be an embedding, which training knows by its gather.
// CHECK-LABEL: func @positions
// CHECK:       graph.gather
func.func @positions() -> tensor<3x8xf32> {
  %w = graph.weight "w" : tensor<9x8xf32>
  %i = graph.constant dense<[0, 1, 2]> : tensor<3xi64>
  %0 = graph.gather %w, %i {axis = 0 : i64} : (tensor<9x8xf32>, tensor<3xi64>) -> tensor<3x8xf32>
  return %0 : tensor<3x8xf32>
}
