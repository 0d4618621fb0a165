// RUN: tcc-opt %s --split-input-file "--tcc-mix-precision=keep=head.*,node_7" | FileCheck %s

// A product of a parameter that a glob names stays wide, as does its gradient, which
// has its location; another one of the same operand does not.
// CHECK-LABEL: func @parameter
// CHECK-SAME:    %[[X:.+]]: tensor<16x8xf32>, %[[DY:.+]]: tensor<16x8xf32>)
// CHECK:         %[[T:.+]] = graph.transpose {{.*}} -> tensor<8x8xf32>
// CHECK:         graph.matmul %[[X]], %[[T]] : {{.*}} -> tensor<16x8xf32>
// CHECK:         graph.matmul %[[X]], %[[DY]] {transpose_lhs} : {{.*}} -> tensor<8x8xf32>
// CHECK:         graph.matmul {{.*}} : (tensor<16x8xbf16>, tensor<8x8xbf16>) -> tensor<16x8xf32>
func.func @parameter(%x: tensor<16x8xf32>, %dy: tensor<16x8xf32>)
    -> (tensor<16x8xf32>, tensor<8x8xf32>, tensor<16x8xf32>) {
  %w = graph.weight "head.weight" : tensor<8x8xf32>
  %v = graph.weight "body.weight" : tensor<8x8xf32>
  %t = graph.transpose %w [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %y = graph.matmul %x, %t
    : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32> loc("node_1")
  %g = graph.matmul %x, %dy {transpose_lhs}
    : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<8x8xf32> loc("node_1")
  %z = graph.matmul %x, %v
    : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32> loc("node_2")
  return %y, %g, %z : tensor<16x8xf32>, tensor<8x8xf32>, tensor<16x8xf32>
}

// -----

// So does a node that is named itself.
// CHECK-LABEL: func @node
// CHECK-NOT:     bf16
// CHECK:         return
func.func @node(%x: tensor<16x8xf32>, %y: tensor<8x8xf32>) -> tensor<16x8xf32> {
  %z = graph.matmul %x, %y
    : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32> loc("node_7")
  return %z : tensor<16x8xf32>
}
