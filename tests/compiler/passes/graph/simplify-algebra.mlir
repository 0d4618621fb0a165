// RUN: tcc-opt %s --tcc-simplify | FileCheck %s

// A splat of the neutral element goes, seen through its broadcast.
// CHECK-LABEL: func @times_one
// CHECK-SAME:    (%[[X:.+]]: tensor<4xf32>
// CHECK-NEXT:    return %[[X]]
func.func @times_one(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = graph.constant dense<1.0> : tensor<f32>
  %b = graph.broadcast %c : (tensor<f32>) -> tensor<4xf32>
  %y = graph.mul %b, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// x + 0.0 is not x: it turns -0.0 into 0.0.
// CHECK-LABEL: func @plus_zero_stays
// CHECK:         graph.add
func.func @plus_zero_stays(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = graph.constant dense<0.0> : tensor<4xf32>
  %y = graph.add %x, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// A bias of zeros, as some exporters write it: a sum of products starts at 0.0.
// CHECK-LABEL: func @product_plus_zero
// CHECK-NEXT:    %[[Y:.+]] = graph.matmul
// CHECK-NEXT:    return %[[Y]]
func.func @product_plus_zero(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %c = graph.constant dense<0.0> : tensor<8x8xf32>
  %p = graph.matmul %x, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %y = graph.add %c, %p : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// A division by a power of two is exact as a product, by another number not.
// CHECK-LABEL: func @divisors
// CHECK-DAG:     %[[E:.+]] = graph.constant dense<1.250000e-01>
// CHECK-DAG:     graph.mul
// CHECK-DAG:     graph.div
func.func @divisors(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %c = graph.constant dense<8.0> : tensor<4xf32>
  %d = graph.constant dense<3.0> : tensor<4xf32>
  %y = graph.div %x, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %z = graph.div %x, %d : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y, %z : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func @square
// CHECK-SAME:    (%[[X:.+]]: tensor<4xf32>
// CHECK-NEXT:    graph.mul %[[X]], %[[X]]
func.func @square(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = graph.constant dense<2.0> : tensor<4xf32>
  %y = graph.pow %x, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// A widening cast in between changes nothing, a narrowing one does.
// CHECK-LABEL: func @casts
// CHECK-SAME:    (%[[X:.+]]: tensor<4xf16>, %[[Y:.+]]: tensor<4xf32>
// CHECK:         graph.cast %[[Y]] {{.*}} -> tensor<4xf16>
// CHECK-NEXT:    %[[Z:.+]] = graph.cast {{.*}} -> tensor<4xf32>
// CHECK-NEXT:    return %[[X]], %[[Z]]
func.func @casts(%x: tensor<4xf16>, %y: tensor<4xf32>)
    -> (tensor<4xf16>, tensor<4xf32>) {
  %a = graph.cast %x : (tensor<4xf16>) -> tensor<4xf32>
  %b = graph.cast %a : (tensor<4xf32>) -> tensor<4xf16>
  %c = graph.cast %y : (tensor<4xf32>) -> tensor<4xf16>
  %d = graph.cast %c : (tensor<4xf16>) -> tensor<4xf32>
  return %b, %d : tensor<4xf16>, tensor<4xf32>
}

// Floats saturate where integers wrap: 300 becomes 127 by way of a float, 44
// without. Where every value fits, and to boolean, there is no difference.
// CHECK-LABEL: func @integers_by_way_of_floats
// CHECK-SAME:    (%[[X:.+]]: tensor<4xi32>, %[[Y:.+]]: tensor<4xi16>
// CHECK-DAG:     %[[F:.+]] = graph.cast %[[X]] {{.*}} -> tensor<4xf64>
// CHECK-DAG:     %[[A:.+]] = graph.cast %[[F]] {{.*}} -> tensor<4xi8>
// CHECK-DAG:     %[[G:.+]] = graph.cast %[[Y]] {{.*}} -> tensor<4xf32>
// CHECK-DAG:     %[[B:.+]] = graph.cast %[[G]] {{.*}} -> tensor<4xui16>
// CHECK-DAG:     %[[C:.+]] = graph.cast %[[Y]] {{.*}} -> tensor<4xi64>
// CHECK-DAG:     %[[D:.+]] = graph.cast %[[X]] {{.*}} -> tensor<4xi1>
// CHECK:         return %[[A]], %[[B]], %[[C]], %[[D]]
func.func @integers_by_way_of_floats(%x: tensor<4xi32>, %y: tensor<4xi16>)
    -> (tensor<4xi8>, tensor<4xui16>, tensor<4xi64>, tensor<4xi1>) {
  %f = graph.cast %x : (tensor<4xi32>) -> tensor<4xf64>
  %g = graph.cast %y : (tensor<4xi16>) -> tensor<4xf32>
  %a = graph.cast %f : (tensor<4xf64>) -> tensor<4xi8>
  %b = graph.cast %g : (tensor<4xf32>) -> tensor<4xui16>
  %c = graph.cast %g : (tensor<4xf32>) -> tensor<4xi64>
  %d = graph.cast %f : (tensor<4xf64>) -> tensor<4xi1>
  return %a, %b, %c, %d
    : tensor<4xi8>, tensor<4xui16>, tensor<4xi64>, tensor<4xi1>
}

// The start of a maximum adds nothing: softmax is written with it.
// CHECK-LABEL: func @max_with_infinity
// CHECK-SAME:    (%[[X:.+]]: tensor<4xf32>
// CHECK-NEXT:    return %[[X]]
func.func @max_with_infinity(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = graph.constant dense<0xFF800000> : tensor<f32>
  %b = graph.broadcast %c : (tensor<f32>) -> tensor<4xf32>
  %y = graph.max %b, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
