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

// -----

// It reads what was computed, moved or not, and not what others read of that.
// CHECK-LABEL: func @shared
// CHECK:         %[[R:.+]] = graph.relu %{{.+}} -> tensor<16x8xf32>
// CHECK:         %[[S:.+]] = graph.cast %[[R]] {{.*}} -> tensor<16x8xbf16>
// CHECK:         %[[T:.+]] = graph.transpose %[[R]] {{.*}} -> tensor<8x16xf32>
// CHECK:         graph.matmul %[[R]], %{{.+}} : (tensor<16x8xf32>, tensor<8x8xf32>)
// CHECK:         graph.matmul %{{.+}}, %[[T]] : (tensor<8x8xf32>, tensor<8x16xf32>)
// CHECK:         graph.matmul %[[S]], %{{.+}} : (tensor<16x8xbf16>, tensor<8x8xbf16>)
func.func @shared(%x: tensor<16x8xf32>, %y: tensor<8x8xf32>)
    -> (tensor<16x8xf32>, tensor<8x16xf32>, tensor<16x8xf32>) {
  %r = graph.relu %x : (tensor<16x8xf32>) -> tensor<16x8xf32>
  %t = graph.transpose %r [1, 0] : (tensor<16x8xf32>) -> tensor<8x16xf32>
  %a = graph.matmul %r, %y
    : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32> loc("node_7")
  %b = graph.matmul %y, %t
    : (tensor<8x8xf32>, tensor<8x16xf32>) -> tensor<8x16xf32> loc("node_7")
  %c = graph.matmul %r, %y
    : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32> loc("node_2")
  return %a, %b, %c : tensor<16x8xf32>, tensor<8x16xf32>, tensor<16x8xf32>
}
