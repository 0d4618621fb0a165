// RUN: tcc-opt %s --tcc-fuse-ops --tcc-verify-fusion | FileCheck %s
// Blocks of branches and loops are partitioned by themselves.

// What a branch reads from outside is computed outside; views of it cost
// nothing in the branch.
// CHECK-LABEL: func @branch
// CHECK:         %[[A:.+]] = graph.fused <pointwise> (%arg0)
// CHECK:         graph.if
// CHECK:           %[[V:.+]] = graph.reshape %[[A]]
// CHECK:           graph.fused <pointwise> (%[[V]], %arg1)
// CHECK:             graph.exp
// CHECK:             graph.add
// CHECK:         else
// CHECK:           graph.yield %arg1
func.func @branch(%x: tensor<2x8xf32>, %y: tensor<16xf32>, %c: tensor<i1>) -> tensor<16xf32> {
  %a = graph.tanh %x : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %v = graph.reshape %a : (tensor<2x8xf32>) -> tensor<16xf32>
  %i = graph.if %c : (tensor<i1>) -> tensor<16xf32> {
    %e = graph.exp %v : (tensor<16xf32>) -> tensor<16xf32>
    %s = graph.add %e, %y : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    graph.yield %s : tensor<16xf32>
  } else {
    graph.yield %y : tensor<16xf32>
  }
  return %i : tensor<16xf32>
}

// A condition that the body computes is a kernel's result.
// CHECK-LABEL: func @loop
// CHECK:         graph.loop
// CHECK:           %[[R:.+]]:2 = graph.fused <pointwise>
// CHECK:           graph.yield %[[R]]#
func.func @loop(%x: tensor<f32>) -> tensor<f32> {
  %limit = graph.constant dense<100.0> : tensor<f32>
  %r = graph.loop inits %x : tensor<f32> -> tensor<f32> {
  ^bb0(%n: tensor<i64>, %v: tensor<f32>):
    %d = graph.add %v, %v : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %go = graph.compare <lt> %d, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
    graph.yield %go, %d : tensor<i1>, tensor<f32>
  }
  return %r : tensor<f32>
}
