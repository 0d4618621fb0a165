// RUN: tcc-opt %s --tcc-lower-to-exec --tcc-share-buffers --split-input-file \
// RUN:   | FileCheck %s

// What reads a state last, each element for its own next value, writes over it.
// CHECK-LABEL: exec.kernel @k0
// CHECK:         in_place = [array<i64: 0, 1>]
// CHECK-LABEL: exec.entry @main
// CHECK:         exec.buffer state 0{{.*}} bound 16 in_place
// CHECK:         exec.buffer state 0{{.*}} bound 16 next in_place
func.func @main(%x: tensor<4xf32>, %s: tensor<4xf32>) -> tensor<4xf32>
    attributes {graph.states = [[1, 0]]} {
  %0 = graph.fused <pointwise> (%x, %s)
      : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    %c = graph.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    graph.yield %c : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

// The next value is written before the current one is read last.
// CHECK-LABEL: exec.entry @main
// CHECK:         exec.buffer state 0
// CHECK-NOT:     in_place
// CHECK:         exec.launch @k0
// CHECK-NEXT:    exec.launch @k1
func.func @main(%x: tensor<4xf32>, %s: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>) attributes {graph.states = [[1, 0]]} {
  %0 = graph.fused <pointwise> (%x, %s)
      : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    %c = graph.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    graph.yield %c : tensor<4xf32>
  }
  %1 = graph.fused <pointwise> (%0, %s)
      : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    %c = graph.mul %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    graph.yield %c : tensor<4xf32>
  }
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// A product reads each element for many next values.
// CHECK-LABEL: exec.kernel @k0
// CHECK-NOT:     in_place
// CHECK-LABEL: exec.entry @main
// CHECK:         exec.buffer state 0
// CHECK-NOT:     in_place
// CHECK:         exec.launch @k0
func.func @main(%s: tensor<4x4xf32>) -> tensor<4x4xf32>
    attributes {graph.states = [[0, 0]]} {
  %0 = graph.fused <contraction> (%s) : (tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%a: tensor<4x4xf32>):
    %b = graph.matmul %a, %a
        : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    graph.yield %b : tensor<4x4xf32>
  }
  return %0 : tensor<4x4xf32>
}
