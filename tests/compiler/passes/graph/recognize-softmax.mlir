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

// Shifted by twice the maximum, or by the least element, it may overflow.
// CHECK-LABEL: func @other_shifts_stay
// CHECK-NOT:     graph.softmax
// CHECK:         return
func.func @other_shifts_stay(%x: tensor<4x8xf32>)
    -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %am = graph.reduce <max> %x [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %at = graph.constant dense<2.0> : tensor<4xf32>
  %as = graph.mul %am, %at
    : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %ar = graph.reshape %as : (tensor<4xf32>) -> tensor<4x1xf32>
  %ab = graph.broadcast %ar : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %ad = graph.sub %x, %ab
    : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %ae = graph.exp %ad : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %au = graph.reduce <sum> %ae [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %av = graph.reshape %au : (tensor<4xf32>) -> tensor<4x1xf32>
  %aw = graph.broadcast %av : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %ay = graph.div %ae, %aw
    : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %bm = graph.reduce <min> %x [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %bt = graph.constant dense<1.0> : tensor<4xf32>
  %bs = graph.mul %bm, %bt
    : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %br = graph.reshape %bs : (tensor<4xf32>) -> tensor<4x1xf32>
  %bb = graph.broadcast %br : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %bd = graph.sub %x, %bb
    : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %be = graph.exp %bd : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %bu = graph.reduce <sum> %be [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  %bv = graph.reshape %bu : (tensor<4xf32>) -> tensor<4x1xf32>
  %bw = graph.broadcast %bv : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %by = graph.div %be, %bw
    : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %ay, %by : tensor<4x8xf32>, tensor<4x8xf32>
}
