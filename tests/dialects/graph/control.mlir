// RUN: tcc-opt %s --split-input-file --verify-diagnostics | FileCheck %s
// Branches yield the results; a loop yields its condition, then what it carries.

// CHECK-LABEL: func @types
func.func @types(%c: tensor<i1>, %n: tensor<i64>, %x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: graph.if %{{.*}} : (tensor<i1>) -> tensor<4xf32>
  %0 = graph.if %c : (tensor<i1>) -> tensor<4xf32> {
    graph.yield %x : tensor<4xf32>
  } else {
    %neg = graph.neg %x : (tensor<4xf32>) -> tensor<4xf32>
    graph.yield %neg : tensor<4xf32>
  }
  // CHECK: graph.loop trips %{{.*}} while %{{.*}} inits
  %1 = graph.loop trips %n : tensor<i64> while %c : tensor<i1>
      inits %0 : tensor<4xf32> -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %y: tensor<4xf32>):
    %next = graph.exp %y : (tensor<4xf32>) -> tensor<4xf32>
    graph.yield %c, %next : tensor<i1>, tensor<4xf32>
  }
  return %1 : tensor<4xf32>
}

// -----

func.func @condition(%c: tensor<2xi1>, %x: tensor<4xf32>) {
  // expected-error@+1 {{expected a boolean condition with one element}}
  %0 = graph.if %c : (tensor<2xi1>) -> tensor<4xf32> {
    graph.yield %x : tensor<4xf32>
  } else {
    graph.yield %x : tensor<4xf32>
  }
  return
}
