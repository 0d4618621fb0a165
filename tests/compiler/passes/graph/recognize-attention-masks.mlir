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

// As many axes, of other extents: the mask of eight is a part of the sixteen.
// CHECK-LABEL: func @other_axes
// CHECK:         %[[MASK:.+]] = graph.reshape %arg1 {{.*}} -> tensor<8x1x4x4xf32>
// CHECK:         graph.attention %arg0, %arg0, %arg0 mask %[[MASK]]
func.func @other_axes(%q: tensor<16x1x4x16xf32>, %m: tensor<1x8x4x4xf32>)
    -> tensor<16x1x4x16xf32> {
  %0 = graph.matmul %q, %q {transpose_rhs}
    : (tensor<16x1x4x16xf32>, tensor<16x1x4x16xf32>) -> tensor<16x1x4x4xf32>
  %1 = graph.reshape %0 : (tensor<16x1x4x4xf32>) -> tensor<2x8x4x4xf32>
  %2 = graph.broadcast %m : (tensor<1x8x4x4xf32>) -> tensor<2x8x4x4xf32>
  %3 = graph.add %1, %2
    : (tensor<2x8x4x4xf32>, tensor<2x8x4x4xf32>) -> tensor<2x8x4x4xf32>
  %4 = graph.reshape %3 : (tensor<2x8x4x4xf32>) -> tensor<16x1x4x4xf32>
  %5 = graph.softmax %4 {axis = 3 : i64} : (tensor<16x1x4x4xf32>) -> tensor<16x1x4x4xf32>
  %y = graph.matmul %5, %q
    : (tensor<16x1x4x4xf32>, tensor<16x1x4x16xf32>) -> tensor<16x1x4x16xf32>
  return %y : tensor<16x1x4x16xf32>
}

// Windows that only a run counts are no known part: the mask is repeated whole.
// CHECK-LABEL: func @unknown_windows
// CHECK:         graph.attention %arg0, %arg0, %arg0 mask
// CHECK-NOT:     graph.softmax
!q = tensor<?x4x16xf32, affine_map<()[s0, s1] -> (s0 * s1, 4, 16)>>
!s = tensor<?x4x4xf32, affine_map<()[s0, s1] -> (s0 * s1, 4, 4)>>
!w = tensor<?x?x4x4xf32, affine_map<()[s0, s1] -> (s0, s1, 4, 4)>>
!m = tensor<1x?x4x4xf32, affine_map<()[s0, s1] -> (1, s1, 4, 4)>>
func.func @unknown_windows(%q: !q, %m: !m) -> !q {
  %0 = graph.matmul %q, %q {transpose_rhs} : (!q, !q) -> !s
  %1 = graph.reshape %0 : (!s) -> !w
  %2 = graph.broadcast %m : (!m) -> !w
  %3 = graph.add %1, %2 : (!w, !w) -> !w
  %4 = graph.reshape %3 : (!w) -> !s
  %5 = graph.softmax %4 {axis = 2 : i64} : (!s) -> !s
  %y = graph.matmul %5, %q : (!s, !q) -> !q
  return %y : !q
}
