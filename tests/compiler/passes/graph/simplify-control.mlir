// RUN: tcc-opt %s --tcc-simplify | FileCheck %s

// CHECK:       graph.decisions = [{decision = "took else", node = "branch"

// A decided branch is taken, a branch on an input stays.
// CHECK-LABEL: func @decided
// CHECK-NOT:     graph.if
// CHECK:         graph.neg
func.func @decided(%x: tensor<4xf32>) -> tensor<4xf32> {
  %rate = graph.constant dense<8000> : tensor<i64>
  %want = graph.constant dense<16000> : tensor<i64>
  %c = graph.compare <eq> %rate, %want
    : (tensor<i64>, tensor<i64>) -> tensor<i1>
  %y = graph.if %c : (tensor<i1>) -> tensor<4xf32> {
    graph.yield %x : tensor<4xf32>
  } else {
    %n = graph.neg %x : (tensor<4xf32>) -> tensor<4xf32>
    graph.yield %n : tensor<4xf32>
  } loc("branch")
  return %y : tensor<4xf32>
}

// CHECK-LABEL: func @undecided
// CHECK:         graph.if
func.func @undecided(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.if %c : (tensor<i1>) -> tensor<4xf32> {
    graph.yield %x : tensor<4xf32>
  } else {
    %n = graph.neg %x : (tensor<4xf32>) -> tensor<4xf32>
    graph.yield %n : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}
