// RUN: tcc-opt %s --tcc-lower-kernels | FileCheck %s

// A scatter copies its operand, then applies the updates in order; a bad index
// sets the fault flag and goes on with a good one.
// CHECK-LABEL: func.func @scatter(
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK:             scf.for
// CHECK:               llvm.store
// CHECK:           scf.for
// CHECK:             scf.for
// CHECK:               %[[GOOD:.+]] = arith.cmpi ult, %[[INDEX:.+]], %{{.+}}
// CHECK:               scf.if
// CHECK-COUNT-2:         llvm.store {{.*}} : i64
// CHECK:               arith.select %[[GOOD]], %[[INDEX]]
// CHECK:               arith.addf
// CHECK:               llvm.store
func.func @scatter(%x: tensor<5x7xf32>, %i: tensor<2x1xi64>, %u: tensor<2x7xf32>) -> tensor<5x7xf32> {
  %y = graph.fused <irregular> (%x, %i, %u) : (tensor<5x7xf32>, tensor<2x1xi64>, tensor<2x7xf32>) -> tensor<5x7xf32> {
  ^bb0(%a: tensor<5x7xf32>, %b: tensor<2x1xi64>, %c: tensor<2x7xf32>):
    %0 = graph.scatter_nd %a, %b, %c {kind = #graph<scatter_kind<add>>} : (tensor<5x7xf32>, tensor<2x1xi64>, tensor<2x7xf32>) -> tensor<5x7xf32>
    graph.yield %0 : tensor<5x7xf32>
  }
  return %y : tensor<5x7xf32>
}
