// RUN: tcc-opt %s --tcc-lower-kernels | FileCheck %s

// A running sum is carried along its axis; the loops around it are the tasks'.
// CHECK-LABEL: func.func @sums(
// CHECK:         scf.for
// CHECK:           scf.for {{.*}} iter_args(%[[SUM:.+]] = %{{.+}}) -> (f32)
// CHECK:             %[[NEXT:.+]] = arith.addf %[[SUM]]
// CHECK:             llvm.store %[[NEXT]]
// CHECK:             scf.yield %[[NEXT]]
func.func @sums(%x: tensor<4x30xf32>) -> tensor<4x30xf32> {
  %y = graph.fused <scan> (%x) : (tensor<4x30xf32>) -> tensor<4x30xf32> {
  ^bb0(%a: tensor<4x30xf32>):
    %0 = graph.cumulative <sum> %a {axis = 1 : i64} : (tensor<4x30xf32>) -> tensor<4x30xf32>
    graph.yield %0 : tensor<4x30xf32>
  }
  return %y : tensor<4x30xf32>
}
