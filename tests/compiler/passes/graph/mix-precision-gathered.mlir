// RUN: tcc-opt %s --split-input-file --tcc-set-target=name=cuda --tcc-mix-precision --tcc-simplify | FileCheck %s
// Sums of elements of one narrow value.

// As in the gradient of a pooling, elements of a product are moved, picked and
// added: what all others read of it is narrow.
// CHECK-LABEL: func @one_product
// CHECK:         %[[A:.+]] = graph.add {{.*}} -> tensor<4x8xf32>
// CHECK:         %[[P:.+]] = graph.select %arg1, {{.*}}%[[A]]
// CHECK:         %[[S:.+]] = graph.cast %[[P]] : {{.*}} -> tensor<4x8xbf16>
// CHECK:         %[[W:.+]] = graph.cast %[[S]] : {{.*}} -> tensor<4x8xf32>
// CHECK:         graph.exp %[[W]]
func.func @one_product(%x: tensor<4x8xf32>, %m: tensor<4x8xi1>)
    -> tensor<4x8xf32> {
  %zero = graph.constant dense<0.0> : tensor<4x8xf32>
  %w = graph.weight "w" : tensor<8x8xf32>
  %y = graph.matmul %x, %w
    : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %s = graph.slice %y {starts = affine_map<() -> (3, 0)>, steps = array<i64: -1, 1>}
    : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %a = graph.add %y, %s : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %p = graph.select %m, %zero, %a
    : (tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %e = graph.exp %p : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %z = graph.matmul %e, %w
    : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %z : tensor<4x8xf32>
}

// -----

// What is scaled in between is not: it was rounded in f32.
// CHECK-LABEL: func @scaled
// CHECK:         %[[A:.+]] = graph.add {{.*}} -> tensor<4x8xf32>
// CHECK-NEXT:    graph.exp %[[A]]
func.func @scaled(%x: tensor<4x8xf32>, %c: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %w = graph.weight "w" : tensor<8x8xf32>
  %y = graph.matmul %x, %w
    : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %s = graph.mul %y, %c : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %a = graph.add %y, %s : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %e = graph.exp %a : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %z = graph.matmul %e, %w
    : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  return %z : tensor<4x8xf32>
}
