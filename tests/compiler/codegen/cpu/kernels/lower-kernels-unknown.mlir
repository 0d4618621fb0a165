// RUN: tcc-opt %s --tcc-lower-kernels | FileCheck %s

// Bytes along an axis of any extent are no unit that a tile could move: there is a loop
// over all of them.
// CHECK-LABEL: func.func @bytes(
// CHECK-NOT:     vector.shuffle
// CHECK:         %[[LOADED:.+]] = llvm.load {{.*}} -> i64
// CHECK-NEXT:    %[[SIZE:.+]] = {{.*}} %[[LOADED]] : i64 to index
// CHECK:         scf.for %{{.+}} = %c0{{.*}} to %[[SIZE]]
// CHECK-NOT:     vector.shuffle
// CHECK:         return
module attributes {graph.symbols = [#graph.symbol<"n", 1 to 400 by 1>]} {
func.func @bytes(%x: tensor<32x48x?xi8, affine_map<()[s0] -> (32, 48, s0)>>)
    -> tensor<48x32x?xi8, affine_map<()[s0] -> (48, 32, s0)>> {
  %y = graph.fused <pointwise> (%x) : (tensor<32x48x?xi8, affine_map<()[s0] -> (32, 48, s0)>>)
      -> tensor<48x32x?xi8, affine_map<()[s0] -> (48, 32, s0)>> {
  ^bb0(%a: tensor<32x48x?xi8, affine_map<()[s0] -> (32, 48, s0)>>):
    %0 = graph.transpose %a [1, 0, 2] : (tensor<32x48x?xi8, affine_map<()[s0] -> (32, 48, s0)>>)
      -> tensor<48x32x?xi8, affine_map<()[s0] -> (48, 32, s0)>>
    graph.yield %0 : tensor<48x32x?xi8, affine_map<()[s0] -> (48, 32, s0)>>
  }
  return %y : tensor<48x32x?xi8, affine_map<()[s0] -> (48, 32, s0)>>
}
}
