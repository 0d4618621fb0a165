// RUN: tcc-opt %s --tcc-set-target=name=cuda --tcc-lower-kernels --canonicalize --cse | FileCheck %s

// A sum of a row that is found by a division by a size passes through the rest
// of the kernel.
// CHECK-LABEL: gpu.func @rows(
// CHECK:         math.fma
// CHECK:         arith.remui
// CHECK:         math.tanh
// CHECK:         llvm.store %{{.+}} : f32, !llvm.ptr
#x = affine_map<()[s0, s1] -> (s0, s1, 8)>
#y = affine_map<()[s0, s1] -> (s0, s1, 16)>
module attributes {graph.symbols = [#graph.symbol<"b", 1 to 8 by 1>,
                                    #graph.symbol<"n", 1 to 64 by 1>]} {
func.func @rows(%x: tensor<?x?x8xf32, #x>, %w: tensor<8x16xf32>)
    -> tensor<?x?x16xf32, #y> {
  %r = graph.fused <contraction> (%x, %w)
      : (tensor<?x?x8xf32, #x>, tensor<8x16xf32>) -> tensor<?x?x16xf32, #y> {
  ^bb0(%a: tensor<?x?x8xf32, #x>, %b: tensor<8x16xf32>):
    %c = graph.matmul %a, %b
        : (tensor<?x?x8xf32, #x>, tensor<8x16xf32>) -> tensor<?x?x16xf32, #y>
    %d = graph.tanh %c : (tensor<?x?x16xf32, #y>) -> tensor<?x?x16xf32, #y>
    graph.yield %d : tensor<?x?x16xf32, #y>
  }
  return %r : tensor<?x?x16xf32, #y>
}
}
