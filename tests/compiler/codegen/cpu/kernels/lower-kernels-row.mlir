// RUN: tcc-opt %s --tcc-lower-kernels | FileCheck %s

// Softmax computes its exponentials once: they are kept in the worker's scratch.
// Partial results are vectors, combined in halves at the end.
// CHECK-LABEL: func.func @softmax(
// CHECK-SAME:    %[[SCRATCH:[a-z0-9]+]]: !llvm.ptr {llvm.noalias}) {
// CHECK:         %[[ROW:.+]] = llvm.getelementptr inbounds %[[SCRATCH]]
// CHECK:         arith.maximumf {{.*}} : vector<16xf32>
// CHECK:         arith.maximumf {{.*}} : vector<8xf32>
// CHECK:         %[[E:.+]] = math.exp
// CHECK:         %[[TILE:.+]] = llvm.getelementptr %[[ROW]]
// CHECK:         %[[AT:.+]] = llvm.getelementptr %[[TILE]]
// CHECK:         llvm.store %[[E]], %[[AT]]
// CHECK:         arith.addf {{.*}} : vector<16xf32>
// CHECK-NOT:     math.exp
// CHECK:         llvm.getelementptr inbounds %[[ROW]]
// CHECK:         arith.mulf
func.func @softmax(%x: tensor<40x128xf32>) -> tensor<40x128xf32> {
  %y = graph.fused <row> (%x) : (tensor<40x128xf32>) -> tensor<40x128xf32> {
  ^bb0(%a: tensor<40x128xf32>):
    %0 = graph.softmax %a {axis = 1 : i64} : (tensor<40x128xf32>) -> tensor<40x128xf32>
    graph.yield %0 : tensor<40x128xf32>
  }
  return %y : tensor<40x128xf32>
}
