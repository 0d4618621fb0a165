// RUN: tcc-opt %s --tcc-recognize-attention | FileCheck %s

// Windows: a bias is added to the scores of all, and a mask that every fourth one
// has to those with an axis of their own for the windows. Both become one mask, of
// one image.
// CHECK-LABEL: func @windows
// CHECK-SAME:      %[[BIAS:[a-z0-9]+]]: tensor<2x8x8xf32>, %[[APART:[a-z0-9]+]]: tensor<1x4x1x8x8xf32>
// CHECK-DAG:     %[[B:.+]] = graph.reshape {{.*}} -> tensor<1x1x2x8x8xf32>
// CHECK-DAG:     %[[RB:.+]] = graph.broadcast %[[B]] {{.*}} -> tensor<1x4x2x8x8xf32>
// CHECK-DAG:     %[[RA:.+]] = graph.broadcast %[[APART]] {{.*}} -> tensor<1x4x2x8x8xf32>
// CHECK:         %[[SUM:.+]] = graph.add %[[RB]], %[[RA]]
// CHECK:         %[[MASK:.+]] = graph.reshape %[[SUM]] {{.*}} -> tensor<4x2x8x8xf32>
// CHECK:         graph.attention %arg0, %arg0, %arg0 mask %[[MASK]]
// CHECK-NOT:     graph.softmax
func.func @windows(%q: tensor<12x2x8x16xf32>, %bias: tensor<2x8x8xf32>,
    %apart: tensor<1x4x1x8x8xf32>) -> tensor<12x2x8x16xf32> {
  %0 = graph.matmul %q, %q {transpose_rhs}
    : (tensor<12x2x8x16xf32>, tensor<12x2x8x16xf32>) -> tensor<12x2x8x8xf32>
  %1 = graph.broadcast %bias : (tensor<2x8x8xf32>) -> tensor<12x2x8x8xf32>
  %2 = graph.add %0, %1
    : (tensor<12x2x8x8xf32>, tensor<12x2x8x8xf32>) -> tensor<12x2x8x8xf32>
  %3 = graph.reshape %2 : (tensor<12x2x8x8xf32>) -> tensor<3x4x2x8x8xf32>
  %4 = graph.broadcast %apart : (tensor<1x4x1x8x8xf32>) -> tensor<3x4x2x8x8xf32>
  %5 = graph.add %3, %4
    : (tensor<3x4x2x8x8xf32>, tensor<3x4x2x8x8xf32>) -> tensor<3x4x2x8x8xf32>
  %6 = graph.reshape %5 : (tensor<3x4x2x8x8xf32>) -> tensor<12x2x8x8xf32>
  %7 = graph.softmax %6 {axis = 3 : i64} : (tensor<12x2x8x8xf32>) -> tensor<12x2x8x8xf32>
  %y = graph.matmul %7, %q
    : (tensor<12x2x8x8xf32>, tensor<12x2x8x16xf32>) -> tensor<12x2x8x16xf32>
  return %y : tensor<12x2x8x16xf32>
}

// A mask that neighbours share is no repeat of a whole.
// CHECK-LABEL: func @neighbours
// CHECK:         %[[R:.+]] = graph.broadcast %arg1 {{.*}} -> tensor<3x4x8x8xf32>
// CHECK:         %[[MASK:.+]] = graph.reshape %[[R]] {{.*}} -> tensor<12x8x8xf32>
// CHECK:         graph.attention %arg0, %arg0, %arg0 mask %[[MASK]]
func.func @neighbours(%q: tensor<12x8x16xf32>, %m: tensor<3x1x8x8xf32>)
    -> tensor<12x8x16xf32> {
  %0 = graph.matmul %q, %q {transpose_rhs}
    : (tensor<12x8x16xf32>, tensor<12x8x16xf32>) -> tensor<12x8x8xf32>
  %1 = graph.reshape %0 : (tensor<12x8x8xf32>) -> tensor<3x4x8x8xf32>
  %2 = graph.broadcast %m : (tensor<3x1x8x8xf32>) -> tensor<3x4x8x8xf32>
  %3 = graph.add %1, %2
    : (tensor<3x4x8x8xf32>, tensor<3x4x8x8xf32>) -> tensor<3x4x8x8xf32>
  %4 = graph.reshape %3 : (tensor<3x4x8x8xf32>) -> tensor<12x8x8xf32>
  %5 = graph.softmax %4 {axis = 2 : i64} : (tensor<12x8x8xf32>) -> tensor<12x8x8xf32>
  %y = graph.matmul %5, %q
    : (tensor<12x8x8xf32>, tensor<12x8x16xf32>) -> tensor<12x8x16xf32>
  return %y : tensor<12x8x16xf32>
}

// A reshape that joins rows or columns of scores leaves none of them.
// CHECK-LABEL: func @joined_rows
// CHECK-NOT:     graph.attention
func.func @joined_rows(%q: tensor<4x8x16xf32>, %m: tensor<2x16x8xf32>)
    -> tensor<4x8x16xf32> {
  %0 = graph.matmul %q, %q {transpose_rhs}
    : (tensor<4x8x16xf32>, tensor<4x8x16xf32>) -> tensor<4x8x8xf32>
  %1 = graph.reshape %0 : (tensor<4x8x8xf32>) -> tensor<2x16x8xf32>
  %2 = graph.add %1, %m
    : (tensor<2x16x8xf32>, tensor<2x16x8xf32>) -> tensor<2x16x8xf32>
  %3 = graph.reshape %2 : (tensor<2x16x8xf32>) -> tensor<4x8x8xf32>
  %4 = graph.softmax %3 {axis = 2 : i64} : (tensor<4x8x8xf32>) -> tensor<4x8x8xf32>
  %y = graph.matmul %4, %q
    : (tensor<4x8x8xf32>, tensor<4x8x16xf32>) -> tensor<4x8x16xf32>
  return %y : tensor<4x8x16xf32>
}
