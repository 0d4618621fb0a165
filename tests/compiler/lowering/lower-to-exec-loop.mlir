// RUN: tcc-opt %s --tcc-lower-to-exec | FileCheck %s

// A carried value swaps halves of one buffer; slices lie one after the other.
// CHECK-DAG: #[[SWAP:.+]] = affine_map<()[s0, s1] -> ((s1 mod 2) * 64)>
// CHECK-DAG: #[[NEXT:.+]] = affine_map<()[s0, s1] -> (((s1 + 1) mod 2) * 64)>
// CHECK-DAG: #[[SLICE:.+]] = affine_map<()[s0, s1] -> (s1 * 16)>
// CHECK: exec.entry @main
// CHECK: %[[Y:.+]] = exec.buffer output 0
// CHECK: %[[Z:.+]] = exec.buffer output 1
// CHECK: exec.read_size 0 from %{{.+}} as i64
// CHECK: %[[BOTH:.+]] = exec.buffer scratch bytes #{{.+}} bound 128
// CHECK: exec.copy
// CHECK: %[[CURRENT:.+]] = exec.view %[[BOTH]] at #[[SWAP]]
// CHECK: %[[TO:.+]] = exec.view %[[BOTH]] at #[[NEXT]]
// CHECK: %[[S:.+]] = exec.view %[[Z]] at #[[SLICE]]
// CHECK: exec.loop 1 trips #{{.+}} max 3
// CHECK: exec.launch @k0{{.*}} ins(%[[CURRENT]]) outs(%[[TO]])
// CHECK: exec.copy %[[TO]] to %[[S]]
// CHECK: exec.copy %[[CURRENT]] to %[[Y]]
func.func @main(%n: tensor<i64>, %x: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<3x4xf32>) {
  %r:2 = graph.loop trips %n : tensor<i64> inits %x : tensor<4xf32>
      -> tensor<4xf32>, tensor<3x4xf32> {
  ^bb0(%i: tensor<i64>, %a: tensor<4xf32>):
    %go = graph.constant dense<true> : tensor<i1>
    %0 = graph.fused <pointwise> (%a) : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%p: tensor<4xf32>):
      %b = graph.exp %p : (tensor<4xf32>) -> tensor<4xf32>
      graph.yield %b : tensor<4xf32>
    }
    graph.yield %go, %0, %0 : tensor<i1>, tensor<4xf32>, tensor<4xf32>
  }
  return %r#0, %r#1 : tensor<4xf32>, tensor<3x4xf32>
}
