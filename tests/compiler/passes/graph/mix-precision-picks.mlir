// RUN: tcc-opt %s --split-input-file --tcc-mix-precision --tcc-simplify | FileCheck %s

// What relu's gradient picks of a product and several read is stored narrow: it
// is no more exact than the product.

// CHECK-LABEL: func @picked
// CHECK-SAME: %[[M:[^:]*]]: tensor<16x8xi1>)
// CHECK: %[[P:.*]] = graph.matmul {{.*}} -> tensor<16x8xf32>
// CHECK: %[[S:.*]] = graph.select %[[M]], %{{.*}}, %[[P]]
// CHECK: %[[N:.*]] = graph.cast %[[S]] {{.*}} -> tensor<16x8xbf16>
// CHECK: %[[W:.*]] = graph.cast %[[N]] {{.*}} -> tensor<16x8xf32>
// CHECK: graph.reduce <sum> %[[W]]
// CHECK: graph.exp %[[W]]
func.func @picked(%x: tensor<16x8xf32>, %m: tensor<16x8xi1>)
    -> (tensor<8xf32>, tensor<8x8xf32>) {
  %w = graph.weight "w" : tensor<8x8xf32>
  %z = graph.constant dense<0.0> : tensor<16x8xf32>
  %p = graph.matmul %x, %w : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  %s = graph.select %m, %z, %p : (tensor<16x8xi1>, tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
  %b = graph.reduce <sum> %s [0] : (tensor<16x8xf32>) -> tensor<8xf32>
  %e = graph.exp %s : (tensor<16x8xf32>) -> tensor<16x8xf32>
  %t = graph.transpose %x [1, 0] : (tensor<16x8xf32>) -> tensor<8x16xf32>
  %h = graph.matmul %t, %e : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  return %b, %h : tensor<8xf32>, tensor<8x8xf32>
}

// -----

// A sum that nothing picks of stays wide where only what adds to it reads it.

// CHECK-LABEL: func @added
// CHECK: %[[P:.*]] = graph.matmul {{.*}} -> tensor<16x8xf32>
// CHECK: %[[S:.*]] = graph.add %[[P]], %{{.*}} -> tensor<16x8xf32>
// CHECK: graph.reduce <sum> %[[S]]
// CHECK: graph.exp %[[S]]
func.func @added(%x: tensor<16x8xf32>)
    -> (tensor<8xf32>, tensor<8x8xf32>) {
  %w = graph.weight "w" : tensor<8x8xf32>
  %b = graph.weight "b" : tensor<8xf32>
  %r = graph.broadcast %b : (tensor<8xf32>) -> tensor<16x8xf32>
  %p = graph.matmul %x, %w : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
  %s = graph.add %p, %r : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
  %d = graph.reduce <sum> %s [0] : (tensor<16x8xf32>) -> tensor<8xf32>
  %e = graph.exp %s : (tensor<16x8xf32>) -> tensor<16x8xf32>
  %t = graph.transpose %x [1, 0] : (tensor<16x8xf32>) -> tensor<8x16xf32>
  %g = graph.matmul %t, %e : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  return %d, %g : tensor<8xf32>, tensor<8x8xf32>
}
