// RUN: tcc-opt %s --split-input-file '--tcc-differentiate=of=y wrt=x' --tcc-decompose --tcc-simplify | FileCheck %s
// The gradient of an operator of a plugin is its own, else that of its body.

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<4xf32> {graph.name = "x"})
    -> (tensor<4xf32> {graph.name = "y"}) {
  // CHECK: %[[Y:.+]] = graph.add %arg0, %arg0
  // CHECK: %[[D:.+]] = graph.exp %[[Y]]
  // CHECK: return %[[Y]], %[[D]]
  %0 = graph.custom "mine::twice"(%x) : (tensor<4xf32>) -> tensor<4xf32> body {
  ^bb0(%a: tensor<4xf32>):
    %b = graph.add %a, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    graph.yield %b : tensor<4xf32>
  } gradient {
  ^bb0(%a: tensor<4xf32>, %y: tensor<4xf32>, %dy: tensor<4xf32>):
    %b = graph.exp %y : (tensor<4xf32>) -> tensor<4xf32>
    %c = graph.mul %b, %dy : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    graph.yield %c : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<4xf32> {graph.name = "x"})
    -> (tensor<4xf32> {graph.name = "y"}) {
  // CHECK: %[[Y:.+]] = graph.exp %arg0
  // CHECK: return %[[Y]], %[[Y]]
  %0 = graph.custom "mine::exp"(%x) : (tensor<4xf32>) -> tensor<4xf32> body {
  ^bb0(%a: tensor<4xf32>):
    %b = graph.exp %a : (tensor<4xf32>) -> tensor<4xf32>
    graph.yield %b : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
