// RUN: tcc-opt %s --tcc-simplify --tcc-recognize-softmax --canonicalize \
// RUN:   | FileCheck %s

// CHECK-LABEL: func @softmax
// CHECK-SAME:    (%[[X:.+]]: tensor<4x8xf32>
// CHECK-NEXT:    %[[Y:.+]] = graph.softmax %[[X]] {axis = 1 : i64}
// CHECK-NEXT:    return %[[Y]]
func.func @softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %m0 = graph.reduce <max> %x [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %m1 = graph.reshape %m0 : (tensor<4xf32>) -> tensor<4x1xf32>
  %m2 = graph.broadcast %m1 : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %s = graph.sub %x, %m2 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %e = graph.exp %s : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %t0 = graph.reduce <sum> %e [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %t1 = graph.reshape %t0 : (tensor<4xf32>) -> tensor<4x1xf32>
  %t2 = graph.broadcast %t1 : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %y = graph.div %e, %t2 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// The sum of each row is spread over the columns: not a softmax, though the
// extents agree.
// CHECK-LABEL: func @other_axis_stays
// CHECK-NOT:     graph.softmax
// CHECK:         graph.div
func.func @other_axis_stays(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %m0 = graph.reduce <max> %x [1] : (tensor<8x8xf32>) -> tensor<8xf32>
  %m1 = graph.reshape %m0 : (tensor<8xf32>) -> tensor<8x1xf32>
  %m2 = graph.broadcast %m1 : (tensor<8x1xf32>) -> tensor<8x8xf32>
  %s = graph.sub %x, %m2 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %e = graph.exp %s : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %t0 = graph.reduce <sum> %e [1] : (tensor<8x8xf32>) -> tensor<8xf32>
  %t2 = graph.broadcast %t0 : (tensor<8xf32>) -> tensor<8x8xf32>
  %y = graph.div %e, %t2 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// Of one row, whose broadcasts need no leading axis.
// CHECK-LABEL: func @one_row
// CHECK-NEXT:    %[[Y:.+]] = graph.softmax %{{.*}} {axis = 1 : i64}
// CHECK-NEXT:    return %[[Y]]
func.func @one_row(%x: tensor<1x8xf32>) -> tensor<1x8xf32> {
  %0 = graph.reduce <max> %x [1] : (tensor<1x8xf32>) -> tensor<1xf32>
  %1 = graph.broadcast %0 : (tensor<1xf32>) -> tensor<1x8xf32>
  %2 = graph.sub %x, %1
    : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
  %3 = graph.exp %2 : (tensor<1x8xf32>) -> tensor<1x8xf32>
  %4 = graph.reduce <sum> %3 [1] : (tensor<1x8xf32>) -> tensor<1xf32>
  %5 = graph.broadcast %4 : (tensor<1xf32>) -> tensor<1x8xf32>
  %6 = graph.div %3, %5
    : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
  return %6 : tensor<1x8xf32>
}
