// RUN: tcc-opt %s --tcc-set-target=name=cuda --tcc-lower-kernels --canonicalize --cse | FileCheck %s

// Of an image that may have no rows nothing is read then: a tap outside of it
// has no place inside to be read at.
module attributes {graph.symbols = [#graph.symbol<"h", 0 to 8 by 1>]} {
// CHECK-LABEL: gpu.func @largest(
// CHECK:         %[[SOME:.+]] = arith.cmpi {{.+}} : index
// CHECK:         scf.if {{.*}} -> (f32)
// CHECK:           llvm.load
// CHECK:         } else {
// CHECK-NEXT:      scf.yield
func.func @largest(%x: tensor<1x?x9x16xf32, affine_map<()[s0] -> (1, s0, 9, 16)>>)
    -> tensor<1x?x9x16xf32, affine_map<()[s0] -> (1, s0 + 2, 9, 16)>> {
  %y = graph.fused <window> (%x)
      : (tensor<1x?x9x16xf32, affine_map<()[s0] -> (1, s0, 9, 16)>>)
      -> tensor<1x?x9x16xf32, affine_map<()[s0] -> (1, s0 + 2, 9, 16)>> {
  ^bb0(%a: tensor<1x?x9x16xf32, affine_map<()[s0] -> (1, s0, 9, 16)>>):
    %p = graph.pool <max> %a {window = array<i64: 3, 3>,
        strides = array<i64: 1, 1>, pad_low = array<i64: 2, 1>,
        pad_high = array<i64: 2, 1>, dilations = array<i64: 1, 1>,
        count_low = array<i64: 0, 0>, count_high = array<i64: 0, 0>,
        channels_last}
        : (tensor<1x?x9x16xf32, affine_map<()[s0] -> (1, s0, 9, 16)>>)
        -> tensor<1x?x9x16xf32, affine_map<()[s0] -> (1, s0 + 2, 9, 16)>>
    graph.yield %p : tensor<1x?x9x16xf32, affine_map<()[s0] -> (1, s0 + 2, 9, 16)>>
  }
  return %y : tensor<1x?x9x16xf32, affine_map<()[s0] -> (1, s0 + 2, 9, 16)>>
}
}
