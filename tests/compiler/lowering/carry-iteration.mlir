// RUN: tcc-opt %s --tcc-carry-iteration | FileCheck %s

// An iteration number that is used becomes a carried value.
// CHECK-LABEL: func @used
// CHECK: %[[ZERO:.+]] = graph.constant dense<0> : tensor<i64>
// CHECK: graph.loop trips %{{.+}} inits %{{.+}}, %[[ZERO]]
// CHECK: ^bb0(%{{.+}}: tensor<i64>, %[[A:.+]]: tensor<i64>, %[[I:.+]]: tensor<i64>):
// CHECK: %[[SUM:.+]] = graph.add %[[A]], %[[I]]
// CHECK: %[[NEXT:.+]] = graph.add %[[I]], %{{.+}}
// CHECK: graph.yield %{{.+}}, %[[SUM]], %[[NEXT]]
func.func @used(%n: tensor<i64>, %x: tensor<i64>) -> tensor<i64> {
  %r = graph.loop trips %n : tensor<i64> inits %x : tensor<i64>
      -> tensor<i64> {
  ^bb0(%i: tensor<i64>, %a: tensor<i64>):
    %go = graph.constant dense<true> : tensor<i1>
    %0 = graph.add %a, %i : (tensor<i64>, tensor<i64>) -> tensor<i64>
    graph.yield %go, %0 : tensor<i1>, tensor<i64>
  }
  return %r : tensor<i64>
}

// CHECK-LABEL: func @unused
// CHECK: graph.loop trips %{{.+}} inits %{{[a-z0-9]+}} :
func.func @unused(%n: tensor<i64>, %x: tensor<i64>) -> tensor<i64> {
  %r = graph.loop trips %n : tensor<i64> inits %x : tensor<i64>
      -> tensor<i64> {
  ^bb0(%i: tensor<i64>, %a: tensor<i64>):
    %go = graph.constant dense<true> : tensor<i1>
    %0 = graph.add %a, %a : (tensor<i64>, tensor<i64>) -> tensor<i64>
    graph.yield %go, %0 : tensor<i1>, tensor<i64>
  }
  return %r : tensor<i64>
}
