// RUN: tcc-opt %s --split-input-file '--tcc-differentiate=of=y wrt=x' --tcc-simplify | FileCheck %s

// The branch that was taken is computed again, and its gradient.
// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[C:.*]]: tensor<i1> {{.*}}, %[[X:.*]]: tensor<4xf32>
// CHECK:       graph.if %[[C]]
// CHECK:       %[[D:.*]] = graph.if %[[C]]
// CHECK-NEXT:    %[[Y:.*]] = graph.exp %[[X]]
// CHECK-NEXT:    graph.yield %[[Y]]
// CHECK:       } else {
// CHECK-NOT:     graph.exp
// CHECK:       return %{{.*}}, %[[D]]
func.func @main(%c: tensor<i1> {graph.name = "c"}, %x: tensor<4xf32> {graph.name = "x"})
    -> (tensor<4xf32> {graph.name = "y"}) {
  %0 = graph.if %c : (tensor<i1>) -> tensor<4xf32> {
    %1 = graph.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    graph.yield %1 : tensor<4xf32>
  } else {
    %1 = graph.neg %x : (tensor<4xf32>) -> tensor<4xf32>
    graph.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

// The loop keeps the carried values of its iterations; another one goes through
// them from the last to the first.
// CHECK-LABEL: func.func @main
// CHECK:       %[[TRIPS:.*]] = graph.constant dense<3> : tensor<i64>
// CHECK:       %[[Y:.*]]:2 = graph.loop trips %[[TRIPS]] {{.*}} -> tensor<4xf32>, tensor<3x4xf32>
// CHECK:       %[[D:.*]] = graph.loop trips %[[TRIPS]]
// CHECK-NEXT:  ^bb0(%[[I:.*]]: tensor<i64>, %[[DY:.*]]: tensor<4xf32>):
// CHECK:         %[[LAST:.*]] = graph.sub %{{.*}}, %[[I]]
// CHECK:         graph.dynamic_slice %[[Y]]#1
// CHECK:         graph.cos
// CHECK:       return %[[Y]]#0, %[[D]]
func.func @main(%x: tensor<4xf32> {graph.name = "x"}) -> (tensor<4xf32> {graph.name = "y"}) {
  %trips = graph.constant dense<3> : tensor<i64>
  %0 = graph.loop trips %trips : tensor<i64> inits %x : tensor<4xf32> -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %carried: tensor<4xf32>):
    %on = graph.constant dense<true> : tensor<i1>
    %1 = graph.sin %carried : (tensor<4xf32>) -> tensor<4xf32>
    graph.yield %on, %1 : tensor<i1>, tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
