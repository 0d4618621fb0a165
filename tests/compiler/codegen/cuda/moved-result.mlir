// RUN: tcc-opt %s --tcc-set-target=name=cuda --tcc-lower-kernels --canonicalize --cse | FileCheck %s

// Four heads of 16 columns lie beside each other, (row * 4 + head) * 16;
// neighbours stay neighbours.
// CHECK-LABEL: gpu.func @heads(
// CHECK:         %[[HEAD:.+]] = gpu.block_id{{ +}}x
// CHECK:         arith.divf
// CHECK:         %[[ROW:.+]] = arith.muli %{{.+}}, %c4 : index
// CHECK-NEXT:    %[[PLACE:.+]] = arith.addi %[[ROW]], %[[HEAD]]
// CHECK-NEXT:    arith.muli %[[PLACE]], %c16
// CHECK-COUNT-4: llvm.store %{{.+}} : f32, !llvm.ptr
func.func @heads(%q: tensor<4x32x16xf32>) -> tensor<32x4x16xf32> {
  %y = graph.fused <attention> (%q)
      : (tensor<4x32x16xf32>) -> tensor<32x4x16xf32> {
  ^bb0(%a: tensor<4x32x16xf32>):
    %r = graph.attention %a, %a, %a {scale = 2.5e-01 : f64}
        : (tensor<4x32x16xf32>, tensor<4x32x16xf32>, tensor<4x32x16xf32>) -> tensor<4x32x16xf32>
    %t = graph.transpose %r [1, 0, 2]
        : (tensor<4x32x16xf32>) -> tensor<32x4x16xf32>
    graph.yield %t : tensor<32x4x16xf32>
  }
  return %y : tensor<32x4x16xf32>
}
