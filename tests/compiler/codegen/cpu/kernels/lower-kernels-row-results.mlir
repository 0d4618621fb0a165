// RUN: tcc-opt %s --tcc-lower-kernels | FileCheck %s

// Results of which there is one a row are made before the first one is stored:
// it may lie in the buffer of what another one reads.
// CHECK-LABEL: func.func @two_results(
// CHECK:         vector.extract %{{.+}}[0] : f32
// CHECK:         %[[B:.+]] = llvm.load {{.*}} : !llvm.ptr -> f32
// CHECK:         %[[FIRST:.+]] = arith.addf %{{.+}}, %[[B]] : f32
// CHECK:         %[[SECOND:.+]] = arith.mulf %{{.+}}, %{{.+}} : f32
// CHECK:         llvm.store %[[FIRST]]
// CHECK-NOT:     llvm.load
// CHECK:         llvm.store %[[SECOND]]
func.func @two_results(%x: tensor<16xf32>, %y: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %0:2 = graph.fused <row> (%x, %y) {in_place = [array<i64: 0, 1>]}
      : (tensor<16xf32>, tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  ^bb0(%a: tensor<16xf32>, %b: tensor<f32>):
    %s = graph.reduce <sum> %a [0] : (tensor<16xf32>) -> tensor<f32>
    %1 = graph.add %s, %b : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %2 = graph.mul %s, %b : (tensor<f32>, tensor<f32>) -> tensor<f32>
    graph.yield %1, %2 : tensor<f32>, tensor<f32>
  }
  return %0#0, %0#1 : tensor<f32>, tensor<f32>
}
