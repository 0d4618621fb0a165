// RUN: tcc-opt %s --split-input-file '--tcc-differentiate=of=y wrt=x,w' --tcc-simplify | FileCheck %s
// What a backward loop need not carry.

// The product is saved, not computed again. The gradient of its weights is one product of what
// all iterations give, and each gives its own slice of x's, in the opposite order.
// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[X:.*]]: tensor<5x2x3xf32> {{.*}}, %[[W:.*]]: tensor<3x3xf32>
// CHECK:       %[[Y:.*]]:3 = graph.loop {{.*}} -> tensor<2x3xf32>, tensor<5x2x3xf32>, tensor<5x2x3xf32>
// CHECK:       %[[D:.*]]:3 = graph.loop {{.*}} : tensor<2x3xf32> -> tensor<2x3xf32>, tensor<5x2x3xf32>, tensor<5x2x3xf32>
// CHECK-COUNT-1: graph.matmul
// CHECK-NOT:     graph.matmul
// CHECK:         graph.yield
// CHECK:       %[[L:.*]] = graph.reshape %[[D]]#{{.}} : (tensor<5x2x3xf32>) -> tensor<10x3xf32>
// CHECK:       %[[R:.*]] = graph.reshape %[[D]]#{{.}} : (tensor<5x2x3xf32>) -> tensor<10x3xf32>
// CHECK:       %[[DW:.*]] = graph.matmul %[[L]], %[[R]] {transpose_lhs}
// CHECK:       %[[DX:.*]] = graph.slice %[[D]]#{{.}} {{.*}}steps = array<i64: -1, 1, 1>
// CHECK:       return %[[Y]]#0, %[[DX]], %[[DW]]
func.func @main(%x: tensor<5x2x3xf32> {graph.name = "x"}, %w: tensor<3x3xf32> {graph.name = "w"})
    -> (tensor<2x3xf32> {graph.name = "y"}) {
  %trips = graph.constant dense<5> : tensor<i64>
  %none = graph.constant dense<0.0> : tensor<2x3xf32>
  %0 = graph.loop trips %trips : tensor<i64> inits %none : tensor<2x3xf32> -> tensor<2x3xf32> {
  ^bb0(%i: tensor<i64>, %h: tensor<2x3xf32>):
    %on = graph.constant dense<true> : tensor<i1>
    %zeros = graph.constant dense<0> : tensor<2xi64>
    %at = graph.reshape %i : (tensor<i64>) -> tensor<1xi64>
    %starts = graph.concat %at, %zeros {axis = 0 : i64} : (tensor<1xi64>, tensor<2xi64>) -> tensor<3xi64>
    %s = graph.dynamic_slice %x, %starts : (tensor<5x2x3xf32>, tensor<3xi64>) -> tensor<1x2x3xf32>
    %r = graph.reshape %s : (tensor<1x2x3xf32>) -> tensor<2x3xf32>
    %p = graph.matmul %h, %w : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>
    %a = graph.add %p, %r : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %t = graph.tanh %a : (tensor<2x3xf32>) -> tensor<2x3xf32>
    graph.yield %on, %t : tensor<i1>, tensor<2x3xf32>
  }
  return %0 : tensor<2x3xf32>
}

// -----

// Gradients of what iterations read otherwise are summed as the loop goes.
// CHECK-LABEL: func.func @main
// CHECK:       graph.loop {{.*}} -> tensor<4xf32>, tensor<3x4xf32>
// CHECK:       graph.loop {{.*}} inits %{{.*}}, %{{.*}}, %{{.*}} : tensor<4xf32>, tensor<{{.*}}xf32>, tensor<{{.*}}xf32> ->
func.func @main(%x: tensor<8xf32> {graph.name = "x"}, %w: tensor<4xf32> {graph.name = "w"})
    -> (tensor<4xf32> {graph.name = "y"}) {
  %trips = graph.constant dense<3> : tensor<i64>
  %0 = graph.loop trips %trips : tensor<i64> inits %w : tensor<4xf32> -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>):
    %on = graph.constant dense<true> : tensor<i1>
    %at = graph.reshape %i : (tensor<i64>) -> tensor<1xi64>
    %s = graph.dynamic_slice %x, %at : (tensor<8xf32>, tensor<1xi64>) -> tensor<4xf32>
    %m = graph.mul %h, %s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %v = graph.mul %m, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    graph.yield %on, %v : tensor<i1>, tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
